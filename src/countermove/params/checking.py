"""An unknown setting, or one that makes no sense, is refused in one sentence."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import ValidationError

from countermove.errors import ParameterError, meant
from countermove.params._shape import in_words, item, kinds, models
from countermove.params.base import Parameters

COMMON = ("dataset", "seed")
"""Parameters that stand beside the groups."""
LARGEST_SEED = 2**32 - 1
"""What every generator in use takes."""


class _Place(NamedTuple):
    """Where an error is: its name, what is expected there, and what stands around it."""

    path: str
    annotation: Any
    metadata: tuple[Any, ...]
    around: type[Parameters] | None
    others: tuple[type[Parameters], ...]


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


def check_group(group: str, model: type[Parameters], given: Any) -> Parameters:
    """Return the settings of a group, or say in one sentence what is wrong with them."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        # An unknown name explains what else is missing, so it comes first.
        found = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")[0]
    raise ParameterError(_sentence(found, _place(group, model, found["loc"])))


def _sentence(found: Mapping[str, Any], place: _Place) -> str:
    kind, path, given = found["type"], place.path, found["input"]
    context = found.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(place)
    if kind == "missing":
        return f"{path} is not set; it must be {in_words(place.annotation, place.metadata)}"
    if kind == "union_tag_invalid":
        names = [name for model in place.others for name in kinds(model)]
        close = get_close_matches(str(context["tag"]), names, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"{path} is of kind {', '.join(names)}, not {context['tag']!r}{hint}"
    if kind == "union_tag_not_found":
        names = [name for model in place.others for name in kinds(model)]
        return f"{path} needs a kind: {', '.join(names)}"
    if kind == "value_error":
        return f"{path}: {context['error']}"
    if kind == "string_pattern_mismatch":
        return f"{path} must be letters, digits, '.', '_' and '-' only, got {given!r}"
    return f"{path} must be {in_words(place.annotation, place.metadata)}, got {given!r}"


def _unknown(place: _Place) -> str:
    parent, _, name = place.path.rpartition(".")
    names = [] if place.around is None else list(place.around.model_fields)
    having = [model for model in place.others if name in model.model_fields]
    if having and place.around is not None:
        of = ", ".join(kind for model in having for kind in kinds(model))
        own = ", ".join(kinds(place.around))
        return f"there is no setting {place.path} for kind {own}; it belongs to kind {of}"
    return f"there is no setting {place.path}{meant(name, names, parent + '.')}"


def _place(group: str, model: type[Parameters], location: Iterable[Any]) -> _Place:
    """Follow pydantic's location of an error; tags of unions in it are no names of settings."""
    place = _Place(group, model, (), model, ())
    for step in location:
        fits = models(place.annotation)
        around = fits[0] if len(fits) == 1 else None
        if len(fits) > 1:
            chosen = next((each for each in fits if step in kinds(each)), None)
            place = place._replace(annotation=chosen, metadata=(), around=chosen, others=fits)
        elif around is not None and step in around.model_fields:
            field, others = around.model_fields[step], place.others
            inner = models(field.annotation)
            others = inner if len(inner) > 1 else ()
            path = f"{place.path}.{step}"
            place = _Place(path, field.annotation, tuple(field.metadata), around, others)
        elif around is not None:
            place = place._replace(path=f"{place.path}.{step}", annotation=None, around=around)
        elif (inside := item(place.annotation, step)) is not None:
            inner = models(inside)
            others = inner if len(inner) > 1 else ()
            place = _Place(f"{place.path}.{step}", inside, (), None, others)
    return place
