"""What an annotation of a setting allows: models by kind, items of a list, null."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from countermove.params.base import Parameters


class Shape(NamedTuple):
    """An annotation taken apart: its alternatives but null, their limits, whether null is one."""

    types: tuple[Any, ...]
    limits: tuple[Any, ...]
    null: bool


def shape(annotation: Any, limits: tuple[Any, ...] = ()) -> Shape:
    """Take an annotation apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *metadata = get_args(annotation)
        return shape(inner, (*limits, *_limits(metadata)))
    if origin in (Union, UnionType):
        parts = [shape(part, limits) for part in get_args(annotation) if part is not NoneType]
        types = tuple(each for part in parts for each in part.types)
        found = tuple(each for part in parts for each in part.limits)
        null = NoneType in get_args(annotation) or any(part.null for part in parts)
        return Shape(types, found, null)
    return Shape((annotation,), limits, False)


def _limits(metadata: list[Any]) -> tuple[Any, ...]:
    inner = [each.metadata if isinstance(each, FieldInfo) else [each] for each in metadata]
    return tuple(one for each in inner for one in each)


def models(annotation: Any) -> tuple[type[Parameters], ...]:
    """Return the groups of settings that an annotation allows; by kind, if more than one."""
    return tuple(
        each
        for each in shape(annotation).types
        if isinstance(each, type) and issubclass(each, Parameters)
    )


def item(annotation: Any, step: int | str = 0) -> Any:
    """Return what a list holds at a position, or a mapping at a name; None: it is neither."""
    for each in shape(annotation).types:
        if get_origin(each) in (list, tuple) and isinstance(step, int):
            return get_args(each)[0]
        if get_origin(each) is dict and isinstance(step, str):
            return get_args(each)[1]
    return None


def kinds(model: type[Parameters]) -> tuple[str, ...]:
    """Return the values that ``kind`` of a model may have; none: it has no kind."""
    field = model.model_fields.get("kind")
    return () if field is None else get_args(field.annotation)


def in_words(annotation: Any, metadata: tuple[Any, ...] = ()) -> str:
    """Return what a setting of this annotation must be, as in "a number above 0"."""
    types, limits, null = shape(annotation, metadata)
    words = " or ".join(dict.fromkeys(_one_in_words(each, limits) for each in types))
    return f"{words} or null" if null else words


def _one_in_words(each: Any, limits: tuple[Any, ...]) -> str:
    origin = get_origin(each)
    if origin is Literal:
        return "one of " + ", ".join(map(str, get_args(each)))
    if origin in (list, tuple):
        least = _limit(limits, "min_length", " of at least")
        return f"a list{least or ''}, each {in_words(get_args(each)[0])}"
    if origin is dict or each is dict or (isinstance(each, type) and issubclass(each, Parameters)):
        return "a mapping of settings"
    if each is bool:
        return "true or false"
    if each in (int, float):
        return ("a whole number" if each is int else "a number") + _range(limits)
    return "text"


def _limit(limits: tuple[Any, ...], name: str, words: str) -> str | None:
    found = [getattr(one, name) for one in limits if getattr(one, name, None) is not None]
    return f"{words} {found[0]}" if found else None


def _range(limits: tuple[Any, ...]) -> str:
    low = _limit(limits, "gt", "above") or _limit(limits, "ge", "of at least")
    high = _limit(limits, "lt", "below") or _limit(limits, "le", "of at most")
    return "".join(f" {each}" for each in (low, "and" if low and high else None, high) if each)
