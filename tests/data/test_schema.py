"""A schema says one thing, and a contradictory one is refused by file and key."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from countermove.data.schema import Schema, load_schema
from countermove.errors import SchemaError, UnknownNameError

Spoil = Callable[[dict[str, Any]], Any]


def put(*keys: str, value: object) -> Spoil:
    """Return a change of a schema's content: the entry at ``keys`` becomes ``value``."""

    def spoil(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return spoil


CONTRADICTIONS: dict[str, tuple[Spoil, str]] = {
    "unknown key": (put("sensitiv", value=["sex"]), r"'sensitiv'; did you mean 'sensitive'"),
    "group is the label": (put("group_by", value="outcome"), r"group_by: is the label column"),
    "group is the id": (put("group_by", value="customer"), r"group_by: .*each row has its own"),
    "group ignored": (put("group_by", value="note"), r"group_by: is 'note', listed under ignore"),
    "groups": (put("group_by", value=["sex"]), r"group_by: must be text, not list"),
    "group reserved": (put("group_by", value="row_id"), r"group_by: .*kept for the typed table"),
    "time is the label": (put("time", value="outcome"), r"time: is the label column"),
    "time of categories": (put("time", value="level"), r"time: .*a number or a date"),
    "time sensitive": (put("time", value="sex"), r"time: .*a number or a date"),
    "time is the group": (
        lambda c: c.update(time="when", group_by="when"),
        r"time: is the group_by column too",
    ),
    "unknown feature key": (
        put("features", "income", "chnage", value="up"),
        r"features\.income: unknown key 'chnage'; did you mean 'change'",
    ),
    "unknown label key": (put("label", "colum", value="x"), r"label: unknown key 'colum'"),
    "unknown kind": (put("features", "income", "kind", value="numerical"), r"mean 'numeric'"),
    "unknown change": (put("features", "income", "change", value="upp"), r"income\.change"),
    "unknown recipe": (put("cleaning", value="crdit"), r"cleaning.*did you mean 'credit'"),
    "unknown source": (put("source", value="web"), r"source: is str 'web'"),
    "kind missing": (lambda c: c["features"]["income"].pop("kind"), r"income\.kind: is missing"),
    "label missing": (lambda c: c.pop("label"), r"label: is missing"),
    "features missing": (lambda c: c.pop("features"), r"features: is missing"),
    "no features": (put("features", value={}), r"at least one column"),
    "features as list": (put("features", value=["income"]), r"features: must map"),
    "feature without entry": (put("features", "income", value=None), r"features\.income"),
    "favourable missing": (lambda c: c["label"].pop("favourable"), r"label\.favourable"),
    "favourable empty": (put("label", "favourable", value=None), r"label\.favourable"),
    "favourable boolean": (put("label", "favourable", value=True), r"put it in quotes"),
    "category boolean": (
        put("features", "level", "categories", value=[False, "yes"]),
        r"level\.categories.*put it in quotes",
    ),
    "min above max": (put("features", "income", "min", value=2000), r"income\.min: 2000"),
    "min equals max": (put("features", "income", "min", value=1000), r"income\.min"),
    "min text": (put("features", "income", "min", value="0"), r"income\.min.*finite number"),
    "min boolean": (put("features", "income", "min", value=True), r"income\.min"),
    "max not finite": (put("features", "income", "max", value=math.inf), r"income\.max"),
    "step zero": (put("features", "loans", "step", value=0), r"loans\.step.*positive"),
    "step negative": (put("features", "loans", "step", value=-1), r"loans\.step"),
    "step boolean": (put("features", "loans", "step", value=True), r"loans\.step"),
    "step of an integer": (put("features", "loans", "step", value=0.5), r"whole numbers"),
    "bounds of a category": (put("features", "level", "min", value=0), r"level\.min"),
    "bounds of a binary": (put("features", "owner", "max", value=1), r"owner\.max"),
    "categories of a number": (
        put("features", "income", "categories", value=["a", "b"]),
        r"income\.categories",
    ),
    "no categories": (put("features", "level", "categories", value=[]), r"at least two"),
    "one category": (put("features", "region", "categories", value=["north"]), r"at least two"),
    "three for a binary": (
        put("features", "owner", "categories", value=["a", "b", "c"]),
        r"exactly two",
    ),
    "category twice": (
        put("features", "level", "categories", value=["low", "high", "low"]),
        r"list low twice",
    ),
    "category twice in disguise": (
        put("features", "level", "categories", value=[1, 1.0, 2]),
        r"list 1 twice",
    ),
    "order for one-hot": (put("features", "region", "change", value="up"), r"have no order"),
    "label as feature": (
        put("features", "outcome", value={"kind": "binary"}),
        r"features: holds the label column 'outcome'",
    ),
    "label as sensitive": (put("sensitive", value=["outcome"]), r"sensitive: holds the label"),
    "label as id": (put("id", value="outcome"), r"id: is the label column"),
    "id as feature": (put("id", value="income"), r"features: holds the id column"),
    "ignored feature": (put("ignore", value=["income"]), r"ignore: holds income"),
    "sensitive twice": (put("sensitive", value=["sex", "sex"]), r"names sex twice"),
    "reference without a column": (
        put("sensitive", value=[{"reference": "m"}]),
        r"sensitive\.column: must be text",
    ),
    "column without a reference": (
        put("sensitive", value=[{"column": "sex"}]),
        r"sensitive\.reference: must be text",
    ),
    "sensitive as text": (put("sensitive", value="sex"), r"must be a list"),
    "id a number": (put("id", value=3), r"id: must be text"),
    "column a number": (put("label", "column", value=3), r"label\.column: must be text"),
    "reserved name": (put("sensitive", value=["row_id"]), r"row_id: names kept"),
    "reserved prefix": (put("sensitive", value=["group:a"]), r"may start with"),
    "two rules for the label": (
        put("label", "at_least", value=3),
        r"label: has favourable and at_least; keep one",
    ),
    "threshold of words": (
        put("label", value={"column": "outcome", "at_least": "much"}),
        r"label\.at_least: must be a finite number",
    ),
    "group of one": (put("features", "owner", "group", value="home"), r"owner\.group.*one column"),
    "group of numbers": (
        put("features", "loans", "group", value="home"),
        r"loans\.group: is given, but a integer feature has none",
    ),
    "group named like a one-hot": (
        lambda c: c["features"].update(
            {name: {"kind": "binary", "group": "region"} for name in ("p", "q")}
        ),
        r"p\.group: is 'region', a one-hot column's name",
    ),
    "group that moves in part": (
        lambda c: c["features"].update(
            p={"kind": "binary", "group": "g", "change": "both"},
            q={"kind": "binary", "group": "g"},
        ),
        r"p\.group: .* change together or not at all: p both, q immutable",
    ),
    "group with a direction": (
        lambda c: c["features"].update(
            {name: {"kind": "binary", "group": "g", "change": "up"} for name in ("p", "q")}
        ),
        r"p\.change: is 'up', but the columns of the group 'g' have no order",
    ),
    "series beside an id": (
        put("series", value={"entity": "firm", "time": "year"}),
        r"id: is given beside series",
    ),
    "series without time": (put("series", value={"entity": "firm"}), r"series\.time: is missing"),
    "series of half a step": (
        put("series", value={"entity": "firm", "time": "year", "steps": 0.5}),
        r"series\.steps: must be a whole number from 1",
    ),
    "entity as a feature": (
        lambda c: (c.pop("id"), c.update(series={"entity": "loans", "time": "year"})),
        r"series\.entity: is 'loans', used under features too",
    ),
    "entity and time in one": (
        lambda c: (c.pop("id"), c.update(series={"entity": "firm", "time": "firm"})),
        r"series\.time: is the entity column 'firm' too",
    ),
    "history of no feature": (
        lambda c: (
            c.pop("id"),
            c.update(series={"entity": "firm", "time": "year", "earlier": ["lons"]}),
        ),
        r"series\.earlier: holds 'lons', no feature; did you mean 'loans'",
    ),
    "unknown rule for short series": (
        lambda c: (
            c.pop("id"),
            c.update(series={"entity": "firm", "time": "year", "shorter": "pad"}),
        ),
        r"series\.shorter: is str 'pad'",
    ),
    "model column twice": (
        put("features", "region=north", value={"kind": "numeric"}),
        r"model column region=north twice",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused_by_file_and_key(
    case: str, mapping: dict[str, Any], tmp_path: Path
) -> None:
    spoil, expected = CONTRADICTIONS[case]
    spoil(mapping)
    path = tmp_path / "shop.yml"
    path.write_text(yaml.safe_dump(mapping, sort_keys=False), encoding="utf-8")
    with pytest.raises(SchemaError, match=expected) as caught:
        load_schema("shop", tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label: {column: a", "not a YAML file"),
        ("- a\n- b\n", "must be a mapping"),
        ("", "must be a mapping"),
        ("features:\n  a: {kind: numeric}\n  a: {kind: binary}\n", "'a' is given twice"),
        ("id: a\nid: b\n", "'id' is given twice"),
        ("x: !!python/object/apply:os.getcwd []\n", "not a YAML file"),
    ],
)
def test_files_that_are_no_schema_are_refused(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "shop.yml").write_text(text, encoding="utf-8")
    with pytest.raises(SchemaError, match=expected):
        load_schema("shop", tmp_path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.yml").write_bytes("description: café".encode("latin-1"))
    with pytest.raises(SchemaError, match=r"shop\.yml"):
        load_schema("shop", tmp_path)


def test_an_unknown_schema_suggests_the_nearest(schemas: Path) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'german'"):
        load_schema("germna", schemas)


def test_model_columns_expand_categories(schema: Schema) -> None:
    columns = {column.name: column for column in schema.model_features()}
    assert schema.feature_names == tuple(columns)
    assert list(columns) == ["income", "loans", "owner", "level", "region=north", "region=south"]
    assert (columns["income"].min, columns["income"].max, columns["income"].step) == (0, 1000, None)
    assert (columns["level"].min, columns["level"].max, columns["level"].step) == (0, 2, 1)
    assert (columns["owner"].min, columns["owner"].max, columns["owner"].step) == (0, 1, 1)
    north = columns["region=north"]
    assert (north.source, north.group, north.change) == ("region", "region", "immutable")
    assert columns["level"].group is None


def test_open_bounds_are_infinite_and_integers_move_by_one() -> None:
    content = {"label": {"column": "y", "favourable": 1}, "features": {"a": {"kind": "integer"}}}
    (column,) = Schema.from_mapping("open", content).model_features()
    assert (column.min, column.max, column.step) == (-math.inf, math.inf, 1)


def test_columns_are_listed_once(mapping: dict[str, Any]) -> None:
    mapping["sensitive"] = ["sex", "owner"]
    schema = Schema.from_mapping("shop", mapping)
    features = ("income", "loans", "owner", "level", "region")
    assert schema.raw_columns == ("customer", *features, "sex", "outcome")
    assert schema.table_columns == ("row_id", *features, "sex", "label")


def test_the_columns_of_a_split_are_read_and_are_no_features(mapping: dict[str, Any]) -> None:
    plain = Schema.from_mapping("shop", mapping)
    schema = Schema.from_mapping("shop", mapping | {"group_by": "house", "time": "day"})
    assert schema.split_columns == ("house", "day")
    assert schema.raw_columns[-4:] == ("sex", "house", "day", "outcome")
    assert schema.table_columns[-4:] == ("sex", "house", "day", "label")
    assert schema.feature_names == plain.feature_names
    assert schema.digest() == plain.digest()  # a model read by one is read by the other
    assert Schema.from_mapping("shop", schema.to_mapping()) == schema != plain
    shared = Schema.from_mapping("shop", mapping | {"group_by": "region", "time": "loans"})
    assert shared.table_columns == plain.table_columns


def test_an_unknown_feature_is_refused(schema: Schema) -> None:
    assert schema.feature("loans").kind == "integer"
    with pytest.raises(SchemaError, match="no feature 'x'"):
        schema.feature("x")


def test_the_digest_follows_the_meaning(mapping: dict[str, Any]) -> None:
    digest = Schema.from_mapping("shop", mapping).digest()
    mapping["description"] = "other words"
    assert Schema.from_mapping("shop", mapping).digest() == digest
    mapping["features"]["loans"]["max"] = 8
    changed = Schema.from_mapping("shop", mapping).digest()
    assert changed != digest
    mapping["features"] = dict(reversed(mapping["features"].items()))
    assert Schema.from_mapping("shop", mapping).digest() not in (digest, changed)


@pytest.mark.parametrize("name", ["credit", "german", "tiny", "distress", "spam"])
def test_the_project_schemas_read_and_survive_a_round_trip(name: str, schemas: Path) -> None:
    schema = load_schema(name, schemas)
    assert schema.description
    again = Schema.from_mapping(name, schema.to_mapping())
    assert again == schema
    assert again.digest() == schema.digest()


@pytest.mark.parametrize("rule", [{"at_least": -0.5}, {"at_most": 3}])
def test_rules_groups_and_series_survive_a_round_trip(
    mapping: dict[str, Any], rule: dict[str, Any]
) -> None:
    del mapping["id"]
    mapping["label"] = {"column": "outcome", **rule}
    mapping["series"] = {"entity": "firm", "time": "year", "steps": 3, "earlier": ["loans"]}
    mapping["features"] |= {name: {"kind": "binary", "group": "g"} for name in ("g_a", "g_b")}
    schema = Schema.from_mapping("shop", mapping)
    text = yaml.safe_dump(schema.to_mapping(), sort_keys=False)
    again = Schema.from_mapping("shop", yaml.safe_load(text))
    assert again == schema
    assert again.digest() == schema.digest()
    mapping["series"]["steps"] = 2
    assert Schema.from_mapping("shop", mapping).digest() != schema.digest()


names = st.text("abcdefghij é", min_size=1, max_size=6).filter(lambda text: text.strip() == text)
entries = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.sampled_from(["numeric", "integer"])},
        optional={
            "min": st.integers(-5, 0),
            "max": st.integers(1, 5),
            "step": st.integers(1, 3),
            "unit": names,
            "change": st.sampled_from(["immutable", "up", "down", "both"]),
        },
    ),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["ordered", "onehot"]),
            "categories": st.lists(names, min_size=2, max_size=4, unique=True),
        },
        optional={"change": st.sampled_from(["immutable", "both"])},
    ),
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(names, entries, min_size=1, max_size=5), st.sampled_from(["yes", 1, 0.5]))
def test_every_schema_survives_yaml(features: dict[str, Any], favourable: object) -> None:
    content = {"label": {"column": "OUTCOME", "favourable": favourable}, "features": features}
    schema = Schema.from_mapping("any", content)
    text = yaml.safe_dump(schema.to_mapping(), sort_keys=False, allow_unicode=True)
    again = Schema.from_mapping("any", yaml.safe_load(text))
    assert again == schema
    assert again.digest() == schema.digest()


def test_a_range_stands_for_columns_that_share_an_entry(mapping: dict[str, Any]) -> None:
    mapping["features"] = {
        "V{1..3}": {"kind": "numeric", "unit": "volt", "min": 0},
        "p_{9..10}_{0..1}": {"kind": "binary"},
    }
    schema = Schema.from_mapping("shop", mapping)
    assert [feature.name for feature in schema.features] == [
        *("V1", "V2", "V3"),
        *("p_9_0", "p_9_1", "p_10_0", "p_10_1"),
    ]
    assert {feature.unit for feature in schema.features[:3]} == {"volt"}
    assert Schema.from_mapping("shop", schema.to_mapping()) == schema


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (("V{3..1}",), "counts from 3 down to 1"),
        (("V{1..3}", "V2"), "names V2 twice"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(
    mapping: dict[str, Any], features: tuple[str, ...], expected: str
) -> None:
    mapping["features"] = {name: {"kind": "numeric"} for name in features}
    with pytest.raises(SchemaError, match=expected):
        Schema.from_mapping("shop", mapping)


def test_a_sensitive_column_names_its_reference_group(mapping: dict[str, Any]) -> None:
    mapping["sensitive"] = ["owner", {"column": "sex", "reference": 1}]
    schema = Schema.from_mapping("shop", mapping)
    assert schema.sensitive == ("owner", "sex")
    assert dict(schema.references) == {"sex": "1"}
    assert Schema.from_mapping("shop", schema.to_mapping()) == schema
    mapping["sensitive"] = ["owner", "sex"]
    assert Schema.from_mapping("shop", mapping).digest() == schema.digest()
