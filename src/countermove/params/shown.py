"""The files conf/base/parameters*.yml that show every setting, written from the classes.

The chosen kinds stand as values, the other kinds as comments with their defaults. Run
``kedro countermove settings --write`` after a change of a default, a limit or its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from countermove.params import GROUPS
from countermove.params._shape import kinds, models
from countermove.params.base import Parameters

HEAD = """\
# Every setting of {groups} and its default, written by `kedro countermove settings --write`.
# Your own values go into conf/local, another environment, or --params.
"""
COMMON = """\
# Which table a run works on, and the seed of everything random: set them in globals.yml.
dataset: ${globals:dataset}
seed: ${globals:seed}
"""
FILES: Mapping[str, tuple[str, ...]] = {
    "parameters.yml": ("execution",),
    "parameters_ingest.yml": ("ingest",),
    "parameters_serm.yml": ("serm",),
    "parameters_recourse.yml": ("recourse",),
    "parameters_evaluation.yml": ("evaluation",),
    "parameters_retrain.yml": ("retrain",),
    "parameters_score.yml": ("score",),
    "parameters_audit.yml": ("audit",),
    "parameters_estimate_people.yml": ("estimate_people",),
}
WIDTH = 92
"""A comment that would reach beyond this stands above its setting."""


def files() -> dict[str, str]:
    """Return the text of each file of conf/base that shows settings."""
    return {name: _text(name, groups) for name, groups in FILES.items()}


def write(folder: Path) -> list[str]:
    """Write the files that differ into conf/base; return their names."""
    changed = [
        name
        for name, text in files().items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
    ]
    for name in changed:
        (folder / name).write_text(files()[name], encoding="utf-8")
    return changed


def _text(name: str, groups: tuple[str, ...]) -> str:
    lines = [HEAD.format(groups=", ".join(groups)).rstrip("\n")]
    if name == "parameters.yml":
        lines.append(COMMON.rstrip("\n"))
    for group in groups:
        lines += ["", f"# {_words(GROUPS[group])}", f"{group}:"]
        lines += [f"  {line}" for line in _block(GROUPS[group]())]
    return "\n".join(lines) + "\n"


def _words(model: type[Parameters]) -> str:
    return (model.__doc__ or "").strip().splitlines()[0]


def _block(settings: Parameters) -> Iterator[str]:
    """Yield the lines of the settings of a group."""
    for name, field in type(settings).model_fields.items():
        value, words = getattr(settings, name), field.description or _words(type(settings))
        if name == "kind":
            yield from _line(f"kind: {value}", words)
            continue
        fits = models(field.annotation)
        if isinstance(value, Parameters):
            yield f"# {words}"
            yield f"{name}:"
            yield from _indented(_block(value))
            for other in fits:
                if other is not type(value):
                    yield from (f"  # {line}" for line in _other(other, "or "))
        elif isinstance(value, tuple) and value and isinstance(value[0], Parameters):
            yield f"# {words}"
            yield f"{name}:"
            yield from (f"  - {flow(_changed(each))}" for each in value)
        else:
            yield from _line(f"{name}: {flow(value)}", words)
            if len(fits) == 1:
                yield f"# {name}:"
                yield from (f"#   {line}" for line in _other(fits[0]))


def _other(model: type[Parameters], lead: str = "") -> Iterator[str]:
    """Yield the lines of a kind that is not chosen."""
    for name, field in model.model_fields.items():
        words = field.description or _words(model)
        if name == "kind":
            yield from _line(f"{lead}kind: {kinds(model)[0]}", words)
        elif field.is_required():
            yield from _line(f"  {name}:" if lead else f"{name}:", f"(needed) {words}")
        else:
            value = field.get_default(call_default_factory=True, validated_data={})
            yield from _line(
                f"  {name}: {flow(value)}" if lead else f"{name}: {flow(value)}", words
            )


def _changed(settings: Parameters) -> dict[str, Any]:
    """Return the kind of some settings, and those that are not null."""
    return {
        name: value for name, value in settings.model_dump(mode="json").items() if value is not None
    }


def _line(text: str, words: str) -> list[str]:
    if len(text) + len(words) > WIDTH:
        return [f"# {words}", text]
    return [f"{text}  # {words}"]


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def flow(value: Any) -> str:
    """Return a value as YAML, in one line."""
    plain = value
    if isinstance(value, tuple):
        plain = [_changed(each) if isinstance(each, Parameters) else each for each in value]
    text = yaml.safe_dump(plain, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...")
