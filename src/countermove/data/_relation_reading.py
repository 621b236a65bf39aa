"""The entries ``relations:``, ``derived:``, ``path:`` and ``range:`` of a schema file.

Refusals name the key as everywhere in the schema; sentences are read by the grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from countermove.data._schema_entries import (
    mapping_entry,
    names_entry,
    number_entry,
    one_of,
    optional_text,
    refuse,
    refuse_repeated,
    spelled,
    text_entry,
    value_entry,
)
from countermove.data._wording_reading import read_verb
from countermove.data.relations._grammar import GrammarError, parse_formula, parse_rule
from countermove.data.relations._paths import HistoryPath, Summary
from countermove.data.relations._rules import (
    ConditionalRow,
    DerivedColumn,
    LinearRow,
    Relation,
    Rule,
)
from countermove.data.schema import Feature, Kind, Schema, Value, ValueRange, value_text
from countermove.errors import nearest, shown

RELATION_KEYS = ("relation", "because", "mixed_units")
DERIVED_KEYS = ("formula", "because", "mixed_units")
PATH_KEYS = ("columns", "window", "enters", "at_least", "states", "step", "because", "verb")
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


def read_derived(entry: object, features: Sequence[Feature]) -> tuple[DerivedColumn, ...]:
    """Return the columns that are functions of others."""
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        refuse("derived", f"must map each column to its formula, not {spelled(entry)}")
    by_name = {feature.name: feature for feature in features}
    derived = []
    for column, item in entry.items():
        key = f"derived.{column}"
        if column not in by_name:
            refuse(key, f"is no feature; {nearest(str(column), by_name)}")
        text, because, mixed = _sentence(item, "formula", DERIVED_KEYS, key)
        try:
            parsed = parse_formula(column, text, features)
        except GrammarError as error:
            refuse(key, f"{text!r} {error}")
        if not mixed and parsed.combination != "count":
            _check_units((*parsed.terms, (column, 1.0)), features, key, text)
        _check_derived(parsed, by_name, entry, key)
        parts = (parsed.column, parsed.combination, parsed.terms, parsed.constant)
        derived.append(DerivedColumn(*parts, because, mixed))
    return tuple(derived)


def _check_derived(
    derived: DerivedColumn, features: Mapping[str, Feature], others: Iterable[str], key: str
) -> None:
    """Refuse a derived column that could not follow the columns it is made of."""
    if features[derived.column].categorical:
        refuse(key, "holds categories; a derived column is a number")
    for source in derived.sources:
        if source in others:
            refuse(
                key, f"is made of {source!r}, which is derived itself; name what that is made of"
            )
    moving = [name for name in derived.sources if features[name].change != "immutable"]
    if moving and features[derived.column].change == "immutable":
        refuse(
            f"features.{derived.column}.change",
            f"is 'immutable', but the column moves with {shown(moving)}; write both, up or down",
        )


def read_paths(
    entry: object, schema: Schema, derived: Sequence[DerivedColumn]
) -> tuple[HistoryPath, ...]:
    """Return the paths of a schema that is read but for them."""
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        refuse("path", f"must map a name to columns and states, not {spelled(entry)}")
    paths = tuple(_path(text_entry(name, "path"), item, schema) for name, item in entry.items())
    governed = [(column, f"path.{path.name}") for path in paths for column in path.columns]
    governed += [(each.column, f"derived.{each.column}") for each in derived]
    owners: dict[str, str] = {}
    for column, owner in governed:
        if column in owners:
            refuse(owners[column], f"governs {column!r}, as {owner} does; keep one")
        owners[column] = owner
    return paths


def _path(name: str, entry: object, schema: Schema) -> HistoryPath:
    key = f"path.{name}"
    content = mapping_entry(entry, PATH_KEYS, key)
    if bool(content.get("window")) == bool(content.get("states")):
        found = "both window and states" if content.get("window") else "no states"
        refuse(key, f"has {found}; give window: (columns, newest first) or states: (in order)")
    read = _declared_path if content.get("states") else _window_path
    return replace(
        read(name, content, schema),
        step=optional_text(content.get("step"), f"{key}.step") or "step",
        because=optional_text(content.get("because"), f"{key}.because"),
        verb=read_verb(content.get("verb"), f"{key}.verb"),
    )


def _window_path(name: str, content: Mapping[str, Any], schema: Schema) -> HistoryPath:
    key = f"path.{name}"
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


def _declared_path(name: str, content: Mapping[str, Any], schema: Schema) -> HistoryPath:
    key = f"path.{name}"
    columns = names_entry(content.get("columns"), f"{key}.columns")
    if not columns:
        refuse(f"{key}.columns", "is missing; list the columns that the states give values for")
    for column in columns:
        _check_governed(column, schema, f"{key}.columns")
    for other in ("enters", "at_least"):
        if content.get(other) is not None:
            refuse(f"{key}.{other}", "is given, but belongs to a window, not to states")
    entry = content["states"]
    if not isinstance(entry, list) or len(entry) < 2:
        refuse(f"{key}.states", "must list at least two states, in the order of time")
    states = tuple(
        _state(state, columns, schema, f"{key}.states[{i}]") for i, state in enumerate(entry)
    )
    refuse_repeated(map(str, states), f"{key}.states", "lists")
    return HistoryPath(name=name, columns=columns, states=states)


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


def _state(entry: object, columns: Sequence[str], schema: Schema, key: str) -> tuple[Value, ...]:
    if not isinstance(entry, list) or len(entry) != len(columns):
        refuse(key, f"must list one value for each of {shown(columns)}, not {spelled(entry)}")
    state: list[Value] = []
    for column, item in zip(columns, entry, strict=True):
        feature = schema.feature(column)
        value = value_entry(item, key)
        if feature.categories:
            if value_text(value) not in feature.categories:
                known = nearest(value_text(value), feature.categories)
                refuse(key, f"holds {value!r}, no category of {column!r}; {known}")
            state.append(value_text(value))
        elif isinstance(value, str):
            refuse(key, f"holds {value!r}, but {column!r} is a number")
        else:
            state.append(value)
    return tuple(state)


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
