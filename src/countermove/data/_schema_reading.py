"""Reading schema files, and refusing those that contradict themselves.

Each refusal names the file and the key, says what was found and what belongs
there. YAML's trap is refused too: ``yes``/``no`` that YAML turns into booleans.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from countermove.data.schema import (
    CHANGES,
    GROUP_PREFIX,
    KINDS,
    LABEL,
    ROW_ID,
    SHORTER,
    SOURCES,
    Feature,
    Kind,
    Label,
    Schema,
    Series,
    Value,
    value_text,
)
from countermove.errors import SchemaError, nearest, shown

SCHEMA_KEYS = (
    "description",
    "source",
    "cleaning",
    "id",
    "series",
    "group_by",
    "time",
    "label",
    "features",
    "sensitive",
    "ignore",
)
FEATURE_KEYS = ("kind", "change", "unit", "min", "max", "step", "categories", "group")
LABEL_KEYS = ("column", "favourable", "at_least", "at_most")
SERIES_KEYS = ("entity", "time", "steps", "shorter", "earlier")

_RANGE = re.compile(r"\{(\d{1,4})\.\.(\d{1,4})\}")
"""A run of columns that share one entry, such as ``V{1..28}``."""

Choice = TypeVar("Choice", bound=str)


class _EntryError(Exception):
    """An entry that is wrong: its key, and what is wrong with it."""


def schema_from_mapping(name: str, mapping: object, origin: str) -> Schema:
    """Check every entry of ``mapping`` and build the schema; ``origin`` is named in errors."""
    try:
        return _schema(name, mapping)
    except _EntryError as error:
        raise SchemaError(f"{origin}: {error}") from error


def _schema(name: str, mapping: object) -> Schema:
    from countermove.data.recipes import RECIPES

    content = _mapping(mapping, SCHEMA_KEYS, "the file")
    for key in ("label", "features"):
        if key not in content:
            _refuse(key, "is missing")
    label = _label(content["label"])
    features = _features(content["features"])
    series = _series(content.get("series"))
    features += series.lagged(features) if series is not None else ()
    cleaning = content.get("cleaning")
    schema = Schema(
        name=name,
        label=label,
        features=features,
        id=_text(content["id"], "id") if content.get("id") is not None else None,
        sensitive=_names(content.get("sensitive"), "sensitive"),
        ignore=_names(content.get("ignore"), "ignore"),
        cleaning=None if cleaning is None else _one_of(cleaning, tuple(RECIPES), "cleaning"),
        source=_one_of(content.get("source", "file"), SOURCES, "source"),
        description=_optional_text(content.get("description"), "description"),
        series=series,
        group_by=_optional_text(content.get("group_by"), "group_by") or None,
        time=_optional_text(content.get("time"), "time") or None,
    )
    _check_roles(schema)
    _check_split_columns(schema)
    _check_series(schema)
    _check_groups(schema)
    return schema


def _check_roles(schema: Schema) -> None:
    """Refuse a column with two roles that exclude each other."""
    names = {feature.name for feature in schema.features}
    label = schema.label.column
    roles = {"features": names, "sensitive": set(schema.sensitive), "ignore": set(schema.ignore)}
    for role, columns in roles.items():
        if label in columns:
            _refuse(role, f"holds the label column {label!r}; the label has its own key")
        if schema.id is not None and schema.id in columns:
            _refuse(role, f"holds the id column {schema.id!r}; the id has its own key")
    if schema.id == label:
        _refuse("id", f"is the label column {label!r}")
    ignored = sorted(roles["ignore"] & (names | roles["sensitive"]))
    if ignored:
        _refuse("ignore", f"holds {shown(ignored)}, used elsewhere in the schema")
    reserved = sorted({ROW_ID, LABEL} & (names | roles["sensitive"]))
    if reserved:
        _refuse("features", f"{shown(reserved)}: names kept for the typed table; rename them")
    prefixed = sorted(n for n in names | roles["sensitive"] if n.startswith(GROUP_PREFIX))
    if prefixed:
        _refuse("features", f"{shown(prefixed)}: no name may start with {GROUP_PREFIX!r}")
    _refuse_repeated(schema.feature_names, "features", "gives the model column")


def _check_split_columns(schema: Schema) -> None:
    """Refuse a group or a time that cannot be one."""
    for key, column in (("group_by", schema.group_by), ("time", schema.time)):
        if column is None:
            continue
        if column == schema.label.column:
            _refuse(key, f"is the label column {column!r}; rows are not split by their outcome")
        if column in schema.ignore:
            _refuse(key, f"is {column!r}, listed under ignore too")
        if column in (ROW_ID, LABEL):
            _refuse(key, f"is {column!r}, a name kept for the typed table; rename the column")
    entity = schema.id if schema.series is None else schema.series.entity
    if schema.group_by is not None and schema.group_by == entity:
        _refuse("group_by", f"is {entity!r}, of which each row has its own; leave it out")
    if schema.time is not None and schema.time == schema.group_by:
        _refuse("time", f"is the group_by column too; rows of one {schema.time!r} stay together")
    counted = {f.name for f in schema.features if f.kind in ("numeric", "integer")}
    others = {f.name for f in schema.features} | set(schema.sensitive)
    if schema.time in others - counted:
        _refuse(
            "time", f"is {schema.time!r}, which is read as categories; a time is a number or a date"
        )


def _label(entry: object) -> Label:
    content = _mapping(entry, LABEL_KEYS, "label")
    if content.get("column") is None:
        _refuse("label.column", "is missing")
    column = _text(content["column"], "label.column")
    rules = [key for key in LABEL_KEYS[1:] if content.get(key) is not None]
    if not rules:
        remedy = "name the favourable value, or for numbers at_least: or at_most:"
        _refuse("label.favourable", f"is missing; {remedy}")
    if len(rules) > 1:
        _refuse("label", f"has {' and '.join(rules)}; keep one")
    if rules == ["favourable"]:
        return Label(column, _value(content["favourable"], "label.favourable"))
    return Label(
        column,
        at_least=_number(content.get("at_least"), "label.at_least"),
        at_most=_number(content.get("at_most"), "label.at_most"),
    )


def _series(entry: object) -> Series | None:
    if entry is None:
        return None
    content = _mapping(entry, SERIES_KEYS, "series")
    for key in ("entity", "time"):
        if content.get(key) is None:
            _refuse(f"series.{key}", "is missing; name the column")
    steps = content.get("steps", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        _refuse("series.steps", f"must be a whole number from 1, not {_spelled(steps)}")
    return Series(
        entity=_text(content["entity"], "series.entity"),
        time=_text(content["time"], "series.time"),
        steps=steps,
        shorter=_one_of(content.get("shorter", SHORTER[0]), SHORTER, "series.shorter"),
        earlier=_names(content.get("earlier"), "series.earlier"),
    )


def _features(entry: object) -> tuple[Feature, ...]:
    if not isinstance(entry, Mapping) or not entry:
        _refuse("features", "must map each column to its entry, and name at least one column")
    features = tuple(
        _feature(name, fields)
        for key, fields in entry.items()
        for name in _spelled_out(_text(key, "features"))
    )
    _refuse_repeated((feature.name for feature in features), "features", "names")
    return features


def _spelled_out(name: str) -> list[str]:
    """Return the columns that ``V{1..3}`` stands for: V1, V2, V3; several ranges multiply."""
    found = _RANGE.search(name)
    if found is None:
        return [name]
    first, last = int(found[1]), int(found[2])
    if first > last:
        _refuse(f"features.{name}", f"counts from {first} down to {last}")
    rest = _spelled_out(name[found.end() :])
    before = name[: found.start()]
    return [f"{before}{number}{end}" for number in range(first, last + 1) for end in rest]


def _feature(name: str, entry: object) -> Feature:
    where = f"features.{name}"
    content = _mapping(entry, FEATURE_KEYS, where)
    if "kind" not in content:
        _refuse(f"{where}.kind", f"is missing; one of {', '.join(KINDS)}")
    kind = _one_of(content["kind"], KINDS, f"{where}.kind")
    change = _one_of(content.get("change", "immutable"), CHANGES, f"{where}.change")
    if kind == "onehot" and change in ("up", "down"):
        _refuse(f"{where}.change", f"is {change!r}, but one-hot categories have no order")
    feature = Feature(
        name=name,
        kind=kind,
        change=change,
        unit=_optional_text(content.get("unit"), f"{where}.unit"),
        min=_number(content.get("min"), f"{where}.min"),
        max=_number(content.get("max"), f"{where}.max"),
        step=_number(content.get("step"), f"{where}.step"),
        categories=_categories(content.get("categories"), kind, where),
        group=_optional_text(content.get("group"), f"{where}.group") or None,
    )
    _check_bounds(feature, where)
    return feature


def _check_bounds(feature: Feature, where: str) -> None:
    """Refuse bounds and steps that leave no value or make no sense for the kind."""
    given = {"min": feature.min, "max": feature.max, "step": feature.step}
    if feature.kind not in ("numeric", "integer"):
        for key, value in given.items():
            if value is not None:
                _refuse(f"{where}.{key}", f"is given, but a {feature.kind} feature has none")
        return
    if feature.min is not None and feature.max is not None and feature.min >= feature.max:
        problem = f"{feature.min:g} is not below max {feature.max:g}"
        _refuse(f"{where}.min", problem)
    if feature.step is not None and feature.step <= 0:
        _refuse(f"{where}.step", f"is {feature.step:g}; it must be positive")
    if feature.kind == "integer":
        for key, value in given.items():
            if value is not None and not float(value).is_integer():
                _refuse(f"{where}.{key}", f"is {value:g}, but the feature holds whole numbers")


def _categories(entry: object, kind: Kind, where: str) -> tuple[str, ...]:
    key = f"{where}.categories"
    if kind in ("numeric", "integer"):
        if entry is not None:
            _refuse(key, f"are given, but a {kind} feature has none")
        return ()
    if entry is None and kind == "binary":
        return ()
    if not isinstance(entry, list) or len(entry) < 2:
        _refuse(key, "must list at least two values")
    if kind == "binary" and len(entry) != 2:
        _refuse(key, f"must list exactly two values for a binary feature, not {len(entry)}")
    texts = tuple(value_text(_value(value, key)) for value in entry)
    _refuse_repeated(texts, key, "list")
    return texts


def _refuse(key: str, problem: str) -> NoReturn:
    raise _EntryError(f"{key}: {problem}")


def _refuse_repeated(names: Iterable[str], key: str, verb: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        _refuse(key, f"{verb} {shown(repeated)} twice")


def _mapping(entry: object, known: Iterable[str], where: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        keys = ", ".join(known)
        _refuse(where, f"must be a mapping with keys {keys}, not {_spelled(entry)}")
    for key in entry:
        if key not in known:
            _refuse(where, f"unknown key {key!r}; {nearest(str(key), known)}")
    return entry


def _one_of(value: object, known: tuple[Choice, ...], key: str) -> Choice:
    for choice in known:
        if value == choice:
            return choice
    _refuse(key, f"is {_spelled(value)}; {nearest(str(value), known)}")


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value.strip():
        _refuse(key, f"must be text, not {_spelled(value)}")
    return value


def _optional_text(value: object, key: str) -> str:
    return "" if value is None else _text(value, key).strip()


def _value(value: object, key: str) -> Value:
    """Return a category or label value; YAML's booleans are refused with the remedy."""
    if isinstance(value, bool):
        _refuse(key, f"holds {_spelled(value)}; YAML reads yes and no so: put it in quotes")
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return _text(value, key)


def _number(value: object, key: str) -> float | None:
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(cast(float, value)):
        _refuse(key, f"must be a finite number, not {_spelled(value)}")
    return float(cast(float, value))


def _names(entry: object, key: str) -> tuple[str, ...]:
    if entry is None:
        return ()
    if not isinstance(entry, list):
        _refuse(key, f"must be a list of columns, not {_spelled(entry)}")
    names = tuple(_text(name, key) for name in entry)
    _refuse_repeated(names, key, "names")
    return names


def _spelled(value: object) -> str:
    return f"{type(value).__name__} {value!r}" if value is not None else "nothing"


def _check_series(schema: Schema) -> None:
    """Refuse an entity or a time that has another role too."""
    if schema.series is None:
        return
    entity, time = schema.series.entity, schema.series.time
    if schema.id is not None:
        _refuse("id", f"is given beside series; the entity {entity!r} is the id")
    if entity == time:
        _refuse("series.time", f"is the entity column {entity!r} too")
    known = [feature.name for feature in schema.observed]
    for column in schema.series.earlier:
        if column not in known:
            _refuse("series.earlier", f"holds {column!r}, no feature; {nearest(column, known)}")
    elsewhere = {
        "features": known,
        "sensitive": schema.sensitive,
        "ignore": schema.ignore,
        "label": (schema.label.column,),
    }
    for role, columns in elsewhere.items():
        for key, column in (("entity", entity), ("time", time)):
            if column in columns:
                _refuse(f"series.{key}", f"is {column!r}, used under {role} too")


def _check_groups(schema: Schema) -> None:
    """Refuse groups of expanded columns that cannot be one category."""
    members: dict[str, list[Feature]] = defaultdict(list)
    for feature in schema.features:
        if feature.group is not None:
            members[feature.group].append(feature)
    for group, features in members.items():
        _check_group(group, features)
        if any(f.kind == "onehot" and f.name == group for f in schema.features):
            _refuse(f"features.{features[0].name}.group", f"is {group!r}, a one-hot column's name")


def _check_group(group: str, features: list[Feature]) -> None:
    where = f"features.{features[0].name}.group"
    for feature in features:
        if feature.kind != "binary":
            problem = f"is given, but a {feature.kind} feature has none: it is for 0/1 columns"
            _refuse(f"features.{feature.name}.group", problem)
        if feature.change in ("up", "down"):
            problem = f"is {feature.change!r}, but the columns of the group {group!r} have no order"
            _refuse(f"features.{feature.name}.change", problem)
    if len(features) < 2:
        _refuse(where, f"is {group!r}, with one column; a group has at least two")
    changes = {feature.change for feature in features}
    if len(changes) > 1:
        listed = shown(f"{f.name} {f.change}" for f in features)
        _refuse(where, f"is {group!r}, whose columns change together or not at all: {listed}")
