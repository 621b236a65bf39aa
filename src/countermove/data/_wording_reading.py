"""Reading the words of a schema: names, verbs, horizons, and what causes the outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from countermove.data._schema_entries import (
    mapping_entry,
    one_of,
    optional_text,
    refuse,
    text_entry,
)
from countermove.data.schema import CAUSES, Cause, Change, Feature, Kind
from countermove.data.wording import VALUE, Wording

WORDING_KEYS = ("name", "verb", "horizon")
WAYS = ("up", "down")


def read_wording(
    content: Mapping[str, Any], kind: Kind, change: Change, where: str
) -> Wording | None:
    """Return the words of a feature, None where nothing is said."""
    if not any(content.get(key) is not None for key in WORDING_KEYS):
        return None
    up, down = _verbs(content.get("verb"), kind, change, f"{where}.verb")
    return Wording(
        name=optional_text(content.get("name"), f"{where}.name"),
        raising=up,
        lowering=down,
        horizon=optional_text(content.get("horizon"), f"{where}.horizon"),
    )


def read_cause(entry: object, key: str) -> Cause | None:
    """Return whether a column causes the outcome; YAML reads yes and no as booleans."""
    if entry is None:
        return None
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return one_of(entry, CAUSES, key)


def read_verb(entry: object, key: str, *, place: bool = True) -> str:
    """Return a verb with ``{value}`` at the one place of the value; ``…`` means the same."""
    if entry is None:
        return ""
    text = text_entry(entry, key).strip()
    verb = text.replace("…", VALUE)
    if verb.count(VALUE) > 1 or (place and VALUE not in verb):
        count = "no" if VALUE not in verb else "more than one"
        refuse(key, f"{text!r} has {count} place for the value; write … (or {VALUE}) once")
    if set("{}") & set(verb.replace(VALUE, "")):
        refuse(key, f"{text!r} has braces; only {VALUE} is filled in")
    return verb


def _verbs(entry: object, kind: Kind, change: Change, key: str) -> tuple[str, str]:
    """Return the verbs for raising and lowering a column."""
    if entry is None:
        return "", ""
    if change == "immutable":
        refuse(key, "is given, but nobody can change the column (change: immutable)")
    place = kind != "binary"  # what 0 and 1 mean, the verb says itself
    allowed = WAYS if change == "both" else (change,)
    if not isinstance(entry, Mapping):
        verb = read_verb(entry, key, place=place)
        return (verb if "up" in allowed else ""), (verb if "down" in allowed else "")
    content = mapping_entry(entry, WAYS, key)
    if kind == "onehot":
        refuse(key, "has up and down, but one-hot categories have no order; give one verb")
    for way in content:
        if way not in allowed:
            refuse(f"{key}.{way}", f"is given, but the column may only go {change}")
    up, down = (read_verb(content.get(way), f"{key}.{way}", place=place) for way in WAYS)
    return up, down


def check_names(features: Iterable[Feature]) -> None:
    """Refuse two columns with one display name: nobody could tell them apart."""
    owners: dict[str, str] = {}
    for feature in features:
        name = "" if feature.wording is None else feature.wording.name
        other = owners.setdefault(name, feature.name)
        if name and other != feature.name:
            refuse(f"features.{feature.name}.name", f"{name!r} is the name of {other!r} too")
