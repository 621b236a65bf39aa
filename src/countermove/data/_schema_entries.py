"""Single entries of a schema file: read as what they must be, or refused by their key."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from countermove.data.schema import Value
from countermove.errors import nearest, shown

Choice = TypeVar("Choice", bound=str)


class EntryError(Exception):
    """An entry that is wrong: its key, and what is wrong with it."""


def refuse(key: str, problem: str) -> NoReturn:
    """Raise what is wrong with the entry at a key."""
    raise EntryError(f"{key}: {problem}")


def refuse_repeated(names: Iterable[str], key: str, verb: str) -> None:
    """Refuse names that occur twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        refuse(key, f"{verb} {shown(repeated)} twice")


def mapping_entry(entry: object, known: Iterable[str], where: str) -> Mapping[str, Any]:
    """Return a mapping with known keys only."""
    if not isinstance(entry, Mapping):
        keys = ", ".join(known)
        refuse(where, f"must be a mapping with keys {keys}, not {spelled(entry)}")
    for key in entry:
        if key not in known:
            refuse(where, f"unknown key {key!r}; {nearest(str(key), known)}")
    return entry


def one_of(value: object, known: tuple[Choice, ...], key: str) -> Choice:
    """Return one of the known words."""
    for choice in known:
        if value == choice:
            return choice
    refuse(key, f"is {spelled(value)}; {nearest(str(value), known)}")


def text_entry(value: object, key: str) -> str:
    """Return text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        refuse(key, f"must be text, not {spelled(value)}")
    return value


def optional_text(value: object, key: str) -> str:
    """Return text, or none of it where the key is absent."""
    return "" if value is None else text_entry(value, key).strip()


def value_entry(value: object, key: str) -> Value:
    """Return a category or label value; YAML's booleans are refused with the remedy."""
    if isinstance(value, bool):
        refuse(key, f"holds {spelled(value)}; YAML reads yes and no so: put it in quotes")
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return text_entry(value, key)


def number_entry(value: object, key: str) -> float | None:
    """Return a finite number, or None where the key is absent."""
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(cast(float, value)):
        refuse(key, f"must be a finite number, not {spelled(value)}")
    return float(cast(float, value))


def names_entry(entry: object, key: str) -> tuple[str, ...]:
    """Return a list of columns, each once; an absent key lists none."""
    if entry is None:
        return ()
    if not isinstance(entry, list):
        refuse(key, f"must be a list of columns, not {spelled(entry)}")
    names = tuple(text_entry(name, key) for name in entry)
    refuse_repeated(names, key, "names")
    return names


def spelled(value: object) -> str:
    """Return a value with its type, as YAML read it."""
    return f"{type(value).__name__} {value!r}" if value is not None else "nothing"
