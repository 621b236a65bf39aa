"""Contradictions between the entries of a schema: roles in a series, columns of a group.

Each is a pair of the key concerned and what is wrong with it; the reader of the
file refuses the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from countermove.data.schema import Feature, Schema
from countermove.errors import nearest, shown

Contradiction = tuple[str, str]


def series_contradictions(schema: Schema) -> Iterator[Contradiction]:
    """Yield what the entity and the time of a series cannot be at the same time."""
    if schema.series is None:
        return
    entity, time = schema.series.entity, schema.series.time
    if schema.id is not None:
        yield "id", f"is given beside series; the entity {entity!r} is the id"
    if entity == time:
        yield "series.time", f"is the entity column {entity!r} too"
    known = [feature.name for feature in schema.observed]
    for column in schema.series.earlier:
        if column not in known:
            yield "series.earlier", f"holds {column!r}, no feature; {nearest(column, known)}"
    elsewhere = {
        "features": known,
        "sensitive": schema.sensitive,
        "ignore": schema.ignore,
        "label": (schema.label.column,),
    }
    for role, columns in elsewhere.items():
        for key, column in (("entity", entity), ("time", time)):
            if column in columns:
                yield f"series.{key}", f"is {column!r}, used under {role} too"


def group_contradictions(schema: Schema) -> Iterator[Contradiction]:
    """Yield groups of expanded columns that cannot be one category."""
    members: dict[str, list[Feature]] = defaultdict(list)
    for feature in schema.features:
        if feature.group is not None:
            members[feature.group].append(feature)
    for group, features in members.items():
        yield from _one_group(group, features)
        clash = [f.name for f in schema.features if f.kind == "onehot" and f.name == group]
        if clash:
            yield f"features.{features[0].name}.group", f"is {group!r}, a one-hot column's name"


def _one_group(group: str, features: list[Feature]) -> Iterator[Contradiction]:
    where = f"features.{features[0].name}.group"
    for feature in features:
        if feature.kind != "binary":
            problem = f"is given, but a {feature.kind} feature has none: it is for 0/1 columns"
            yield f"features.{feature.name}.group", problem
        if feature.change in ("up", "down"):
            problem = f"is {feature.change!r}, but the columns of the group {group!r} have no order"
            yield f"features.{feature.name}.change", problem
    if len(features) < 2:
        yield where, f"is {group!r}, with one column; a group has at least two"
    changes = {feature.change for feature in features}
    if len(changes) > 1:
        listed = shown(f"{f.name} {f.change}" for f in features)
        yield where, f"is {group!r}, whose columns change together or not at all: {listed}"
