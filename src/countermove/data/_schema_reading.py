"""Reading schema files, and refusing those that contradict themselves.

Each refusal names the file and the key, says what was found and what belongs
there. YAML's trap is refused too: ``yes``/``no`` that YAML turns into booleans.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from countermove.data._entries import (
    WORDING_KEYS,
    EntryError,
    check_feature,
    check_names,
    check_readings,
    check_stand_in,
    mapping_entry,
    names_entry,
    number_entry,
    one_of,
    optional_text,
    read_cause,
    read_column,
    read_columns,
    read_feature,
    read_layout,
    read_missing,
    read_verb,
    read_wording,
    refuse,
    refuse_repeated,
    spelled,
    text_entry,
    value_entry,
)
from countermove.data.reading import Reading, folded
from countermove.data.relations._grammar import GrammarError, parse_rule
from countermove.data.relations._paths import HistoryPath, Summary
from countermove.data.relations._rules import ConditionalRow, LinearRow, Relation, Rule
from countermove.data.schema import (
    CHANGES,
    CLUSTER_PREFIX,
    GROUP_PREFIX,
    KINDS,
    LABEL,
    QUARANTINE,
    ROW_ID,
    SHORTER,
    SOURCES,
    Feature,
    Kind,
    Label,
    Schema,
    Series,
    ValueRange,
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
    "relations",
    "path",
    "file",
    "read",
    "quarantine",
)
FEATURE_KEYS = (
    "kind", "change", "unit", "min", "max", "step", "range", "categories", "group",
    *WORDING_KEYS, "causal", "read", "missing", "supply",
)  # fmt: skip
LABEL_KEYS = ("column", "favourable", "at_least", "at_most", "unfavourable", "read", "date")
SERIES_KEYS = ("entity", "time", "steps", "shorter", "earlier")

_RANGE = re.compile(r"\{(\d{1,4})\.\.(\d{1,4})\}")
"""A run of columns that share one entry, such as ``V{1..28}``."""


def schema_from_mapping(name: str, mapping: object, origin: str) -> Schema:
    """Check every entry of ``mapping`` and build the schema; ``origin`` is named in errors."""
    try:
        return _schema(name, mapping)
    except EntryError as error:
        raise SchemaError(f"{origin}: {error}") from error


def _schema(name: str, mapping: object) -> Schema:
    from countermove.data.recipes import RECIPES

    content = mapping_entry(mapping, SCHEMA_KEYS, "the file")
    for key in ("label", "features"):
        if key not in content:
            refuse(key, "is missing")
    label = _label(content["label"])
    features = _features(content["features"])
    series = _series(content.get("series"))
    features += series.lagged(features) if series is not None else ()
    cleaning = content.get("cleaning")
    sensitive, references = _sensitive(content.get("sensitive"))
    schema = Schema(
        name=name,
        label=label,
        features=features,
        id=text_entry(content["id"], "id") if content.get("id") is not None else None,
        sensitive=sensitive,
        references=references,
        ignore=names_entry(content.get("ignore"), "ignore"),
        cleaning=None if cleaning is None else one_of(cleaning, tuple(RECIPES), "cleaning"),
        source=one_of(content.get("source", "file"), SOURCES, "source"),
        description=optional_text(content.get("description"), "description"),
        series=series,
        group_by=optional_text(content.get("group_by"), "group_by") or None,
        time=optional_text(content.get("time"), "time") or None,
        file=read_layout(content.get("file")),
        readings=read_columns(content.get("read")),
        quarantine=_share(content.get("quarantine"), "quarantine"),
    )
    _check_roles(schema)
    check_readings(schema)
    _check_split_columns(schema)
    _check_series(schema)
    _check_groups(schema)
    check_names(schema.features)
    paths = read_paths(content.get("path"), schema)
    for column in (column for path in paths for column in path.columns):
        if schema.feature(column).missing is not None:
            refuse(f"features.{column}.missing", "is given, but a path needs everybody's value")
    relations = read_relations(content.get("relations"), features)
    return replace(schema, relations=relations, paths=paths)


def _sensitive(entry: object) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return the sensitive columns, and those with a reference group beside it."""
    if not isinstance(entry, list):
        return names_entry(entry, "sensitive"), ()
    names, references = [], []
    for one in entry:
        if isinstance(one, dict):
            said = mapping_entry(one, ("column", "reference"), "sensitive")
            one = text_entry(said.get("column"), "sensitive.column")
            group = value_text(value_entry(said.get("reference"), "sensitive.reference"))
            references.append((one, group))
        names.append(one)
    return names_entry(names, "sensitive"), tuple(references)


def _share(entry: object, key: str) -> float:
    share = number_entry(entry, key)
    if share is None:
        return QUARANTINE
    if not 0 <= share < 1:
        refuse(key, f"is {share:g}; expected a share of the rows, from 0 to below 1, such as 0.05")
    return share


def _check_roles(schema: Schema) -> None:
    """Refuse a column with two roles that exclude each other."""
    names = {feature.name for feature in schema.features}
    label = schema.label.column
    roles = {"features": names, "sensitive": set(schema.sensitive), "ignore": set(schema.ignore)}
    for role, columns in roles.items():
        if label in columns:
            refuse(role, f"holds the label column {label!r}; the label has its own key")
        if schema.id is not None and schema.id in columns:
            refuse(role, f"holds the id column {schema.id!r}; the id has its own key")
    if schema.id == label:
        refuse("id", f"is the label column {label!r}")
    if schema.label.date is not None and schema.label.date in {label, schema.id, *schema.ignore}:
        refuse("label.date", f"is {schema.label.date!r}, which is the label, the id or ignored")
    ignored = sorted(roles["ignore"] & (names | roles["sensitive"]))
    if ignored:
        refuse("ignore", f"holds {shown(ignored)}, used elsewhere in the schema")
    reserved = sorted({ROW_ID, LABEL} & (names | roles["sensitive"]))
    if reserved:
        refuse("features", f"{shown(reserved)}: names kept for the typed table; rename them")
    prefixes = (GROUP_PREFIX, CLUSTER_PREFIX)
    prefixed = sorted(n for n in names | roles["sensitive"] if n.startswith(prefixes))
    if prefixed:
        words = " or ".join(map(repr, prefixes))
        refuse("features", f"{shown(prefixed)}: no name may start with {words}")
    refuse_repeated(schema.feature_names, "features", "gives the model column")


def _check_split_columns(schema: Schema) -> None:
    """Refuse a group or a time that cannot be one."""
    for key, column in (("group_by", schema.group_by), ("time", schema.time)):
        if column is None:
            continue
        if column == schema.label.column:
            refuse(key, f"is the label column {column!r}; rows are not split by their outcome")
        if column in schema.ignore:
            refuse(key, f"is {column!r}, listed under ignore too")
        if column in (ROW_ID, LABEL):
            refuse(key, f"is {column!r}, a name kept for the typed table; rename the column")
    entity = schema.id if schema.series is None else schema.series.entity
    if schema.group_by is not None and schema.group_by == entity:
        refuse("group_by", f"is {entity!r}, of which each row has its own; leave it out")
    if schema.time is not None and schema.time == schema.group_by:
        refuse("time", f"is the group_by column too; rows of one {schema.time!r} stay together")
    counted = {f.name for f in schema.features if f.kind in ("numeric", "integer")}
    others = {f.name for f in schema.features} | set(schema.sensitive)
    if schema.time in others - counted:
        refuse(
            "time", f"is {schema.time!r}, which is read as categories; a time is a number or a date"
        )


def _label(entry: object) -> Label:
    content = mapping_entry(entry, LABEL_KEYS, "label")
    if content.get("column") is None:
        refuse("label.column", "is missing")
    column = text_entry(content["column"], "label.column")
    rules = [key for key in LABEL_KEYS[1:4] if content.get(key) is not None]
    if not rules:
        remedy = "name the favourable value, or for numbers at_least: or at_most:"
        refuse("label.favourable", f"is missing; {remedy}")
    if len(rules) > 1:
        refuse("label", f"has {' and '.join(rules)}; keep one")
    given = content.get("read")
    words = rules == ["favourable"]
    reading = None if given is None else read_column(given, "label.read", words)
    date = optional_text(content.get("date"), "label.date") or None
    if words:
        return replace(_one_of_two(column, content, reading), date=date)
    if content.get("unfavourable") is not None:
        refuse("label.unfavourable", f"is given beside {rules[0]}; a number needs none")
    return Label(
        column,
        at_least=number_entry(content.get("at_least"), "label.at_least"),
        at_most=number_entry(content.get("at_most"), "label.at_most"),
        reading=reading,
        date=date,
    )


def _one_of_two(column: str, content: Mapping[str, Any], reading: Reading | None) -> Label:
    good = value_entry(content["favourable"], "label.favourable")
    bad = content.get("unfavourable")
    other = None if bad is None else value_entry(bad, "label.unfavourable")
    if other is not None and folded(value_text(other)) == folded(value_text(good)):
        refuse("label.unfavourable", f"is {other!r}, the favourable value")
    return Label(column, good, unfavourable=other, reading=reading)


def _series(entry: object) -> Series | None:
    if entry is None:
        return None
    content = mapping_entry(entry, SERIES_KEYS, "series")
    for key in ("entity", "time"):
        if content.get(key) is None:
            refuse(f"series.{key}", "is missing; name the column")
    steps = content.get("steps", 1)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        refuse("series.steps", f"must be a whole number from 1, not {spelled(steps)}")
    return Series(
        entity=text_entry(content["entity"], "series.entity"),
        time=text_entry(content["time"], "series.time"),
        steps=steps,
        shorter=one_of(content.get("shorter", SHORTER[0]), SHORTER, "series.shorter"),
        earlier=names_entry(content.get("earlier"), "series.earlier"),
    )


def _features(entry: object) -> tuple[Feature, ...]:
    if not isinstance(entry, Mapping) or not entry:
        refuse("features", "must map each column to its entry, and name at least one column")
    features = tuple(
        _feature(name, fields)
        for key, fields in entry.items()
        for name in _spelled_out(text_entry(key, "features"))
    )
    refuse_repeated((feature.name for feature in features), "features", "names")
    return features


def _spelled_out(name: str) -> list[str]:
    """Return the columns that ``V{1..3}`` stands for: V1, V2, V3; several ranges multiply."""
    found = _RANGE.search(name)
    if found is None:
        return [name]
    first, last = int(found[1]), int(found[2])
    if first > last:
        refuse(f"features.{name}", f"counts from {first} down to {last}")
    rest = _spelled_out(name[found.end() :])
    before = name[: found.start()]
    return [f"{before}{number}{end}" for number in range(first, last + 1) for end in rest]


def _feature(name: str, entry: object) -> Feature:
    where = f"features.{name}"
    content = mapping_entry(entry, FEATURE_KEYS, where)
    if "kind" not in content:
        refuse(f"{where}.kind", f"is missing; one of {', '.join(KINDS)}")
    kind = one_of(content["kind"], KINDS, f"{where}.kind")
    change = one_of(content.get("change", "immutable"), CHANGES, f"{where}.change")
    if kind == "onehot" and change in ("up", "down"):
        refuse(f"{where}.change", f"is {change!r}, but one-hot categories have no order")
    categories = _categories(content.get("categories"), kind, where)
    feature = Feature(
        name=name,
        kind=kind,
        change=change,
        unit=optional_text(content.get("unit"), f"{where}.unit"),
        min=number_entry(content.get("min"), f"{where}.min"),
        max=number_entry(content.get("max"), f"{where}.max"),
        step=number_entry(content.get("step"), f"{where}.step"),
        range=read_range(content.get("range"), kind, f"{where}.range"),
        categories=categories,
        group=optional_text(content.get("group"), f"{where}.group") or None,
        wording=read_wording(content, kind, change, where),
        causal=read_cause(content.get("causal"), f"{where}.causal"),
        reading=read_feature(content.get("read"), kind, categories, f"{where}.read"),
        missing=read_missing(content, kind, categories, where),
    )
    check_feature(feature, where)
    _check_bounds(feature, where)
    return feature


def _check_bounds(feature: Feature, where: str) -> None:
    """Refuse bounds and steps that leave no value or make no sense for the kind."""
    check_stand_in(feature, where)
    given = {"min": feature.min, "max": feature.max, "step": feature.step}
    if feature.kind not in ("numeric", "integer"):
        for key, value in given.items():
            if value is not None:
                refuse(f"{where}.{key}", f"is given, but a {feature.kind} feature has none")
        return
    if feature.min is not None and feature.max is not None and feature.min >= feature.max:
        problem = f"{feature.min:g} is not below max {feature.max:g}"
        refuse(f"{where}.min", problem)
    if feature.step is not None and feature.step <= 0:
        refuse(f"{where}.step", f"is {feature.step:g}; it must be positive")
    if feature.kind == "integer":
        for key, value in given.items():
            if value is not None and not float(value).is_integer():
                refuse(f"{where}.{key}", f"is {value:g}, but the feature holds whole numbers")


def _categories(entry: object, kind: Kind, where: str) -> tuple[str, ...]:
    key = f"{where}.categories"
    if kind in ("numeric", "integer"):
        if entry is not None:
            refuse(key, f"are given, but a {kind} feature has none")
        return ()
    if entry is None and kind == "binary":
        return ()
    if not isinstance(entry, list) or len(entry) < 2:
        refuse(key, "must list at least two values")
    if kind == "binary" and len(entry) != 2:
        refuse(key, f"must list exactly two values for a binary feature, not {len(entry)}")
    texts = tuple(value_text(value_entry(value, key)) for value in entry)
    refuse_repeated(texts, key, "list")
    return texts


def _check_series(schema: Schema) -> None:
    """Refuse an entity or a time that has another role too."""
    if schema.series is None:
        return
    entity, time = schema.series.entity, schema.series.time
    if schema.id is not None:
        refuse("id", f"is given beside series; the entity {entity!r} is the id")
    if entity == time:
        refuse("series.time", f"is the entity column {entity!r} too")
    known = [feature.name for feature in schema.observed]
    for column in schema.series.earlier:
        if column not in known:
            refuse("series.earlier", f"holds {column!r}, no feature; {nearest(column, known)}")
    elsewhere = {
        "features": known,
        "sensitive": schema.sensitive,
        "ignore": schema.ignore,
        "label": (schema.label.column,),
    }
    for role, columns in elsewhere.items():
        for key, column in (("entity", entity), ("time", time)):
            if column in columns:
                refuse(f"series.{key}", f"is {column!r}, used under {role} too")


def _check_groups(schema: Schema) -> None:
    """Refuse groups of expanded columns that cannot be one category."""
    members: dict[str, list[Feature]] = defaultdict(list)
    for feature in schema.features:
        if feature.group is not None:
            members[feature.group].append(feature)
    for group, features in members.items():
        _check_group(group, features)
        if any(f.kind == "onehot" and f.name == group for f in schema.features):
            refuse(f"features.{features[0].name}.group", f"is {group!r}, a one-hot column's name")


def _check_group(group: str, features: list[Feature]) -> None:
    where = f"features.{features[0].name}.group"
    for feature in features:
        if feature.kind != "binary":
            problem = f"is given, but a {feature.kind} feature has none: it is for 0/1 columns"
            refuse(f"features.{feature.name}.group", problem)
        if feature.change in ("up", "down"):
            problem = f"is {feature.change!r}, but the columns of the group {group!r} have no order"
            refuse(f"features.{feature.name}.change", problem)
    if len(features) < 2:
        refuse(where, f"is {group!r}, with one column; a group has at least two")
    changes = {feature.change for feature in features}
    if len(changes) > 1:
        listed = shown(f"{f.name} {f.change}" for f in features)
        refuse(where, f"is {group!r}, whose columns change together or not at all: {listed}")


RELATION_KEYS = ("relation", "because", "mixed_units")
PATH_KEYS = ("columns", "window", "enters", "at_least", "step", "because", "verb")
RANGE_WORDS = ("observed", "declared")


def read_relations(entry: object, features: Sequence[Feature]) -> tuple[Relation, ...]:
    """Return the relations of a schema, each a sentence or a mapping with its reason."""
    if entry is None:
        return ()
    if not isinstance(entry, list):
        refuse("relations", f"must be a list of sentences, not {spelled(entry)}")
    relations = []
    for place, item in enumerate(entry):
        key = f"relations[{place}]"
        text, because, mixed = _sentence(item, "relation", RELATION_KEYS, key)
        try:
            rule = parse_rule(text, features)
        except GrammarError as error:
            refuse(key, f"{text!r} {error}")
        if not mixed:
            _check_units(_terms(rule), features, key, text)
        relations.append(Relation(rule, because, mixed))
    refuse_repeated((relation.text for relation in relations), "relations", "says")
    return tuple(relations)


def read_paths(entry: object, schema: Schema) -> tuple[HistoryPath, ...]:
    """Return the paths of a schema that is read but for them."""
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        refuse("path", f"must map a name to a window and columns, not {spelled(entry)}")
    paths = tuple(_path(text_entry(name, "path"), item, schema) for name, item in entry.items())
    owners: dict[str, str] = {}
    for column, owner in ((c, f"path.{path.name}") for path in paths for c in path.columns):
        if column in owners:
            refuse(owners[column], f"governs {column!r}, as {owner} does; keep one")
        owners[column] = owner
    return paths


def _path(name: str, entry: object, schema: Schema) -> HistoryPath:
    key = f"path.{name}"
    content = mapping_entry(entry, PATH_KEYS, key)
    if not content.get("window"):
        refuse(f"{key}.window", "is missing: name the columns of the history, newest first")
    window = names_entry(content["window"], f"{key}.window")
    _check_window(window, schema, f"{key}.window")
    summaries = _summaries(content.get("columns"), schema, f"{key}.columns")
    names = {feature.name for feature in schema.features}
    months = tuple(column for column in window if column in names)
    if not summaries and not months:
        refuse(f"{key}.columns", "is missing; say what a column is of the window, as {late: sum}")
    return HistoryPath(
        name=name,
        columns=(*summaries, *months),
        summaries=tuple(summaries.values()),
        window=window,
        enters=number_entry(content.get("enters"), f"{key}.enters") or 0.0,
        at_least=number_entry(content.get("at_least"), f"{key}.at_least"),
        step=optional_text(content.get("step"), f"{key}.step") or "step",
        because=optional_text(content.get("because"), f"{key}.because"),
        verb=read_verb(content.get("verb"), f"{key}.verb"),
    )


def _check_window(window: Sequence[str], schema: Schema, key: str) -> None:
    """Refuse a window whose columns nobody would find."""
    from countermove.data.recipes import RECIPES

    if len(window) < 2:
        refuse(key, f"has {len(window)} column(s); a history has at least two")
    features = {feature.name: feature for feature in schema.features}
    inside = [column for column in window if column in features]
    if inside and len(inside) < len(window):
        others = [column for column in window if column not in features]
        refuse(key, f"holds features and {shown(others)}, which are none: take one sort")
    for column in inside:
        if features[column].categorical:
            refuse(key, f"holds {column!r}, whose values are categories")
    if inside:
        return
    taken = {schema.label.column, *schema.ignore, *schema.sensitive}
    if schema.series is not None:
        refuse(key, f"holds {shown(window)}; in a series a window is made of features")
    for column in window:
        if schema.cleaning is not None and column not in RECIPES[schema.cleaning].columns:
            known = RECIPES[schema.cleaning].columns
            refuse(key, f"holds {column!r}, no column of the raw table; {nearest(column, known)}")
        if schema.cleaning is None and column in taken:
            refuse(key, f"holds {column!r}, used elsewhere in the schema")


def _summaries(entry: object, schema: Schema, key: str) -> dict[str, Summary]:
    if entry is None:
        return {}
    if not isinstance(entry, Mapping):
        refuse(key, f"must say what each column is of the window, not {spelled(entry)}")
    summaries = {}
    for column, summary in entry.items():
        _check_governed(column, schema, key)
        summaries[str(column)] = one_of(summary, get_args(Summary), f"{key}.{column}")
    return cast(dict[str, Summary], summaries)


def _check_governed(column: object, schema: Schema, key: str) -> None:
    """Refuse a column that a path cannot move."""
    features = {feature.name: feature for feature in schema.features}
    if column not in features:
        refuse(key, f"holds {column!r}, no feature; {nearest(str(column), features)}")
    feature = features[str(column)]
    if feature.kind == "onehot" or feature.group is not None:
        refuse(key, f"holds {column!r}, which is one-hot; a path moves numbers and ordered columns")
    if feature.change == "immutable":
        refuse(f"features.{column}.change", f"is 'immutable', but {key} moves the column")


def read_range(entry: object, kind: Kind, where: str) -> ValueRange | None:
    """Return where advice may lead within a feature's bounds; None where nothing is said."""
    if entry is None:
        return None
    if not isinstance(entry, Mapping):
        return ValueRange(declared=one_of(entry, RANGE_WORDS, where) == "declared")
    if kind not in ("numeric", "integer"):
        refuse(where, f"gives numbers, but the feature is {kind}; {nearest('', RANGE_WORDS)}")
    content = mapping_entry(entry, ("low", "high"), where)
    low = number_entry(content.get("low"), f"{where}.low")
    high = number_entry(content.get("high"), f"{where}.high")
    if low is None and high is None:
        refuse(where, "is empty; give low:, high: or both")
    if low is not None and high is not None and low >= high:
        refuse(f"{where}.low", f"{low:g} is not below high {high:g}")
    return ValueRange(low=low, high=high)


def _sentence(item: object, name: str, known: Sequence[str], key: str) -> tuple[str, str, bool]:
    """Return the sentence, its reason, and whether its units were meant to differ."""
    if isinstance(item, int | float) and not isinstance(item, bool):
        item = str(item)
    if isinstance(item, str):
        return text_entry(item, key), "", False
    content = mapping_entry(item, known, key)
    if content.get(name) is None:
        refuse(f"{key}.{name}", "is missing")
    mixed = content.get("mixed_units", False)
    if not isinstance(mixed, bool):
        refuse(f"{key}.mixed_units", f"must be true or false, not {spelled(mixed)}")
    because = optional_text(content.get("because"), f"{key}.because")
    return text_entry(content[name], f"{key}.{name}"), because, mixed


def _terms(rule: Rule) -> tuple[tuple[str, float], ...]:
    """Return the columns that a rule compares with each other, with their weights."""
    row = rule.then if isinstance(rule, ConditionalRow) else rule
    return row.terms if isinstance(row, LinearRow) else ()


def _check_units(
    terms: Sequence[tuple[str, float]], features: Sequence[Feature], key: str, text: str
) -> None:
    """Refuse to add or compare what is measured differently, unless weights convert it."""
    units = {feature.name: feature.unit for feature in features}
    named = [f"{name} in {units[name]}" for name, _ in terms if units[name]]
    different = {units[name] for name, _ in terms if units[name]}
    if len(different) > 1 and all(abs(weight) == 1 for _, weight in terms):
        refuse(
            key,
            f"{text!r} compares different units: {shown(named)}; weight the columns, or write "
            "mixed_units: true beside the sentence if it was meant",
        )
