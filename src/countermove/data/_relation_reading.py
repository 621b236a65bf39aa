"""The entries ``relations:``, ``path:`` and ``range:`` of a schema file.

Refusals name the key as everywhere in the schema; sentences are read by the grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

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
)
from countermove.data._wording_reading import read_verb
from countermove.data.relations._grammar import GrammarError, parse_rule
from countermove.data.relations._paths import HistoryPath, Summary
from countermove.data.relations._rules import (
    ConditionalRow,
    LinearRow,
    Relation,
    Rule,
)
from countermove.data.schema import Feature, Kind, Schema, ValueRange
from countermove.errors import nearest, shown

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
