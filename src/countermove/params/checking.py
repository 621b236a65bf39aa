"""An unknown setting, or one that makes no sense, is refused in one sentence."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import ValidationError

from countermove.errors import ParameterError, meant
from countermove.params.base import Parameters

COMMON = ("dataset", "seed")
"""Parameters that stand beside the groups."""
LARGEST_SEED = 2**32 - 1
"""What every generator in use takes."""


def check_settings(
    params: Mapping[str, Any],
    groups: Mapping[str, type[Parameters]],
    read: Collection[str] | None = None,
    own: Collection[str] = (),
) -> None:
    """Refuse unknown groups, a seed that is none, and settings that make no sense.

    Of the groups, those in ``read`` are looked at (all of them: None), and only where they have
    a value: defaults are right, and slow to read. Groups in ``own`` are the user's: left alone.
    """
    known = (*COMMON, *groups)
    for group, given in params.items():
        if group not in known and group not in own:
            raise ParameterError(f"there is no setting {group}{meant(group, (*known, *own))}")
        looked_at = group in groups and (read is None or group in read)
        if looked_at and given not in ({}, None):
            check_group(group, groups[group], given)
    seed = params.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
        shown = reprlib.repr(seed)
        raise ParameterError(
            f"seed must be a whole number of at least 0 and at most {LARGEST_SEED}, got {shown}"
        )


def without_effect(
    params: Mapping[str, Any],
    groups: Mapping[str, type[Parameters]],
    used: Collection[str],
    given: Collection[str],
    read: Collection[str],
) -> Iterator[str]:
    """Yield a sentence for each group that has a value and changes nothing.

    Parameters
    ----------
    params, groups
        All parameters, and the groups of ours.
    used
        Groups that some pipeline reads: a user's own group beside them is the user's business,
        unless its name is almost one of ours.
    given, read
        Groups of ``--params``, and those that this run reads.
    """
    for group in params:
        near = get_close_matches(group, (*COMMON, *groups), n=1, cutoff=0.75)
        if near and group not in (*COMMON, *groups, *used):
            yield f"nothing reads the group {group} of your configuration; did you mean {near[0]}?"
    for group in given:
        if group in groups and group not in read:
            yield f"--params {group}…: this run does not read {group}, so that changes nothing"


def check_group(group: str, model: type[Parameters], settings: Any) -> Parameters:
    """Return the settings of a group, or say in one sentence what is wrong with them."""
    try:
        return model.model_validate(settings)
    except ValidationError as error:
        # An unknown name explains what else is missing, so it comes first.
        first = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")[0]
    path, siblings = _place(group, model, settings, first["loc"])
    raise ParameterError(_sentence(path, siblings, first))


def _sentence(path: str, siblings: Collection[str], error: Mapping[str, Any]) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        parent, _, name = path.rpartition(".")
        return f"there is no setting {path}{meant(name, siblings, parent + '.')}"
    if kind == "missing":
        return f"{path} is not set, and has no default"
    if kind == "union_tag_invalid":
        kinds = re.findall(r"'(\w+)'", context["expected_tags"])
        return f"{path} has no kind {context['tag']!r}{meant(context['tag'], kinds)}"
    if kind == "union_tag_not_found":
        return f"{path} needs a kind, as in {{kind: …}}"
    if kind == "value_error":
        return f"{path}: {context['error']}"
    if kind == "string_pattern_mismatch":
        return f"{path} must be letters, digits, '.', '_' and '-' only, got {error['input']!r}"
    if kind == "model_type":
        return f"{path} should be a mapping of settings, got {error['input']!r}"
    expected = error["msg"].removeprefix("Input ")
    return f"{path} {expected}, got {error['input']!r}"


def _place(
    group: str, model: type[Parameters], settings: Any, location: tuple[int | str, ...]
) -> tuple[str, Collection[str]]:
    """Return the path of a setting and the names beside it; pydantic's location has more steps."""
    path, models, names, value = group, [model], list(model.model_fields), settings
    for step in location:
        beside = [name for each in models for name in each.model_fields]
        held = _holds(value, step)
        if not held and step not in beside:  # A kind, or a type of a union.
            continue
        path, names, value = f"{path}.{step}", beside, value[step] if held else None
        fields = [each.model_fields[step] for each in models if step in each.model_fields]
        if fields:
            models = [one for field in fields for one in _models(field.annotation)]
        kind = value.get("kind") if isinstance(value, Mapping) else None
        models = [one for one in models if kind in _kinds(one)] or models
    return path, names


def _holds(value: Any, step: int | str) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)


def _models(annotation: Any) -> list[type[Parameters]]:
    """Return the groups of settings inside an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, Parameters):
        return [annotation]
    return [each for inner in get_args(annotation) for each in _models(inner)]


def _kinds(model: type[Parameters]) -> tuple[str, ...]:
    return get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
