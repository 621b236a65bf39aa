"""Histories, ranges, numbers and contradictions: who can exist, computed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countermove.data.relations import (
    ObservedRanges,
    broken_relations,
    contradictions,
    frozen_columns,
    numeric_relations,
    observed_ranges,
    path_states,
    relation_report,
)
from countermove.data.rows import coded_features
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError


def schema_of(features: dict[str, Any], **more: Any) -> Schema:
    content = {"label": {"column": "y", "favourable": 1}, "features": features, **more}
    return Schema.from_mapping("some", content)


WHOLE = {"kind": "integer", "change": "both", "min": 0, "max": 9}


def test_a_window_rolls_and_its_summaries_with_it() -> None:
    columns = {"late": "sum", "runs": "spells", "ever": "any", "worst": "max", "n": "count"}
    names = [*columns, "newest"]
    features = {name: {"kind": "integer", "change": "both"} for name in names}
    path = {"window": ["d0", "d1", "d2", "d3"], "at_least": 0}
    path["columns"] = {**columns, "newest": "latest"}
    schema = schema_of(features, path={"history": path})
    assert schema.window_columns == ("d0", "d1", "d2", "d3")
    raw = pd.DataFrame({"d0": [2], "d1": [-1], "d2": [1], "d3": [3]})
    table = pd.DataFrame([{"late": 6, "runs": 2, "ever": 1, "worst": 3, "n": 3, "newest": 2}])
    (found,) = path_states(schema, table, raw)
    assert found.states[0].tolist() == [
        [6, 2, 1, 3, 3, 2],  # 2 0 1 3
        [3, 2, 1, 2, 2, 0],  # 0 2 0 1
        [2, 1, 1, 2, 1, 0],  # 0 0 2 0
        [2, 1, 1, 2, 1, 0],  # 0 0 0 2
        [0, 0, 0, 0, 0, 0],
    ]
    with pytest.raises(DataError, match="give the raw rows as well"):
        path_states(schema, table)
    with pytest.raises(DataError, match=r"lacks the columns 'd3' of the path 'history'"):
        path_states(schema, table, raw.drop(columns="d3"))
    with pytest.raises(DataError, match="2 raw rows for 1 typed"):
        path_states(schema, table, pd.concat([raw, raw]))
    with pytest.raises(DataError, match=r"column 'd1': not a number, in 1 row"):
        path_states(schema, table, raw.assign(d1="x"))


def test_months_that_are_features_move_up_the_window() -> None:
    features = {"m1": {"kind": "integer"}, "m2": {"kind": "integer"}, "total": WHOLE}
    path = {"window": ["m1", "m2"], "enters": 1, "columns": {"total": "sum"}}
    schema = schema_of(features, path={"p": path})
    (found,) = path_states(schema, pd.DataFrame({"m1": [5], "m2": [3], "total": [8]}))
    assert found.states[0].tolist() == [[8, 5, 3], [6, 1, 5], [2, 1, 1]]
    assert found.columns == (2, 0, 1)
    unit = Standardiser(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 5.0]), ("m1", "m2", "total"))
    assert found.standardised(unit).states[0, 0].tolist() == [1.0, 2.0, 0.5]


def test_a_path_that_is_not_the_table_s_is_named_with_its_rows() -> None:
    features = {"late": {"kind": "integer", "change": "up"}, "owed": WHOLE}
    path = {"window": ["d0", "d1"], "columns": {"late": "sum"}}
    schema = schema_of(features, path={"p": path})
    raw = pd.DataFrame({"d0": [1, 0, 2], "d1": [1, 0, 0]})
    table = pd.DataFrame({"late": [2, 0, 9], "owed": [1, 2, 3]})
    problems = relation_report(raw, table, schema).problems
    assert problems == (
        "path 'p': 'late' is not what its window says now, in 1 row(s): 2",
        "path 'p' moves 'late' against its change: up, in 2 row(s): 0, 2",
    )


def test_ranges_are_percentiles_of_the_rows_unless_the_schema_says_otherwise() -> None:
    amount = {"kind": "numeric", "change": "both", "min": 0, "max": 2000}
    level = {"kind": "ordered", "categories": ["a", "b", "c", "d"]}
    features = {
        "usual": amount,
        "any": amount | {"range": "declared"},
        "from": amount | {"range": {"low": 5}},
        "open": {"kind": "numeric", "range": "declared"},
        "level": level,
        "levels": level | {"range": "declared"},
        "region": {"kind": "onehot", "categories": ["x", "y", "z"]},
    }
    schema = schema_of(features)
    rng = np.random.default_rng(0)
    values = rng.permutation(np.arange(1001.0))
    table = pd.DataFrame(dict.fromkeys(("usual", "any", "from", "open"), values))
    table = table.assign(
        level=np.where(values > 5, "c", "b"), region=np.where(values > 5, "x", "y")
    )
    table["levels"] = table["level"]
    ranges = observed_ranges(table, schema)
    found = {n: (lo, hi) for n, lo, hi in zip(ranges.names, ranges.low, ranges.high, strict=True)}
    assert found["usual"] == (10, 990)
    assert found["any"] == (0, 2000)
    assert found["from"] == (5, 990)
    assert found["open"] == (-np.inf, np.inf)
    assert found["level"] == (1, 2)
    assert found["levels"] == (0, 3)
    assert [found[f"region={c}"][1] for c in "xyz"] == [1, 1, 0]
    again = ObservedRanges.from_json(ranges.to_json())
    np.testing.assert_array_equal(again.low, ranges.low)
    np.testing.assert_array_equal(again.high, ranges.high)
    with pytest.raises(DataError, match="no rows"):
        observed_ranges(table[:0], schema)


def test_whoever_stands_outside_a_range_may_stay_or_move_inward() -> None:
    ranges = ObservedRanges(np.array([10.0]), np.array([20.0]), ("a",))
    low, high = ranges.box(np.array([[5.0], [12.0], [30.0]]))
    assert low.ravel().tolist() == [5, 10, 10]
    assert high.ravel().tolist() == [20, 20, 30]


@pytest.fixture
def mixed() -> Schema:
    level = {"kind": "ordered", "change": "both", "categories": ["low", "middle", "high"]}
    region = {"kind": "onehot", "change": "both", "categories": ["north", "south"]}
    phone = {"kind": "binary", "change": "both", "categories": ["none", "yes"]}
    features = {"a": WHOLE, "b": WHOLE, "t": WHOLE, "level": level}
    return schema_of(
        features | {"region": region, "phone": phone},
        relations=[
            "a <= b + 2",
            "if region == south then a <= 3",
            "if level == high then region == north",
            "if phone == yes then level >= middle",
            "if a == 0 then 2 * b == 4",
            "t == a + b",
        ],
    )


def test_numbers_say_what_sentences_say(mixed: Schema) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 5, 4000), rng.integers(0, 5, 4000)
    table = pd.DataFrame({"a": a, "b": b, "t": a + b})
    table["t"] += rng.random(4000) < 0.1
    table["level"] = rng.choice(["low", "middle", "high"], 4000)
    table["region"] = rng.choice(["north", "south"], 4000)
    table["phone"] = rng.integers(0, 2, 4000)
    expected = np.ones(4000, dtype=bool)
    for sentence in mixed.relations:
        expected &= sentence.holds(table)
    assert 100 < expected.sum() < 3000
    X, relations = coded_features(table, mixed), numeric_relations(mixed)
    np.testing.assert_array_equal(relations.holds(X), expected)
    unit = Standardiser.fit(X, mixed.feature_names)
    there = relations.standardised(unit)
    np.testing.assert_array_equal(there.holds(unit.transform(X)), expected)
    assert relations.rows.texts == ("a <= b + 2", "t == a + b")
    assert len(relations.conditional) == len(relations.premise_values) == 4
    south = mixed.feature_names.index("region=south")
    assert (relations.premise_columns[0], relations.premise_values[0]) == (south, 1.0)
    assert not numeric_relations(schema_of({"a": WHOLE}))


def test_a_consistent_schema_has_no_contradiction(mixed: Schema) -> None:
    assert list(contradictions(mixed)) == []


def test_a_value_that_a_column_does_not_have_is_named() -> None:
    features = {"a": WHOLE, "late": {"kind": "binary", "change": "down"}}
    (found,) = contradictions(schema_of(features, relations=["if late == 2 then a == 0"]))
    assert found.startswith("relations: nobody can have late == 2 under all of")


@pytest.mark.parametrize(
    ("relations", "said"),
    [
        (["a <= b", "b <= c - 1", "c <= a", "a <= 7"], "nobody can exist"),
        (["a + b >= 30", "a <= c"], "nobody can exist"),
        (["2 * a == 3"], "nobody can exist"),
        (["if c == 1 then a <= 3", "if c == 1 then a >= 5", "a <= b"], "nobody can have c == 1"),
        (["if g == x then a >= b", "b >= 4", "a <= 3"], "nobody can have g == x"),
    ],
)
def test_relations_that_cannot_hold_together_are_named(relations: list[str], said: str) -> None:
    onehot = {"kind": "onehot", "change": "both", "categories": ["x", "y"]}
    features = {"a": WHOLE, "b": WHOLE, "c": WHOLE, "g": onehot}
    schema = schema_of(features, relations=relations)
    (found,) = contradictions(schema)
    assert found.startswith(f"relations: {said} under all of")
    for sentence in relations:
        assert repr(sentence) in found
    table = pd.DataFrame({"a": [1], "b": [2], "c": [3], "g": ["y"]})
    assert found in relation_report(table, table, schema).problems
    # Without the first sentence they can all be true.
    assert list(contradictions(schema_of(features, relations=relations[1:]))) == []


@pytest.mark.parametrize("seed", range(8))
def test_a_contradiction_is_found_where_trying_everybody_finds_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    small = WHOLE | {"max": 3}
    features = {"a": small, "b": small, "c": small}
    everybody = pd.DataFrame(itertools.product(range(4), repeat=3), columns=["a", "b", "c"])
    found = 0
    for _ in range(20):
        signs, sense = rng.integers(-2, 3, (3, 3)), rng.choice(["<=", ">=", "=="], 3)
        texts = [
            f"{x} * a + {y} * b + {z} * c {s} {rng.integers(-4, 5)}".replace("+ -", "- ")
            for (x, y, z), s in zip(signs.tolist(), sense, strict=True)
            if x or y or z
        ]
        schema = schema_of(features, relations=list(dict.fromkeys(texts)))
        good = np.all([relation.holds(everybody) for relation in schema.relations], axis=0)
        assert (list(contradictions(schema)) != []) == (not good.any())
        found += not good.any()
    assert 0 < found < 20


def test_broken_relations_name_their_rows() -> None:
    entry = {"relation": "a <= b", "because": "a is part of b"}
    schema = schema_of({"a": WHOLE, "b": WHOLE}, relations=[entry])
    table = pd.DataFrame({"a": [1, 3, 5], "b": [2, 2, 2]})
    found = broken_relations(table, schema)
    assert [problem.text for problem in found] == [
        "relation 'a <= b' (a is part of b) is broken, in 2 row(s): 1, 2",
    ]
    assert [problem.rows for problem in found] == [(1, 2)]


def test_a_relation_that_takes_back_a_change_is_named() -> None:
    fixed = {"kind": "binary"}
    level = {"kind": "ordered", "change": "up", "categories": ["none", "low", "high"]}
    relations = ["if missing == 1 then level == none", "a == b"]
    immutable = {"kind": "integer", "min": 0, "max": 9}
    features = {"missing": fixed, "level": level, "a": WHOLE, "b": immutable}
    schema = schema_of(features, relations=relations)
    rows = {"missing": [1, 1, 0, 0], "level": ["none", "none", "low", "high"]}
    table = pd.DataFrame({**rows, "a": [1, 2, 3, 4], "b": [1, 2, 3, 4]})
    found = {(f.column, f.people, f.movable) for f in frozen_columns(schema, table)}
    assert found == {("a", 4, 4), ("level", 2, 3)}
    report = relation_report(table, table, schema)
    assert len(report.problems) == len(report.warnings) == 1
    assert "it contradicts features.a.change: both" in report.problems[0]
    assert "leaves 2 of the 3 people who could change 'level' no room" in report.warnings[0]


def test_relations_between_movable_columns_take_nothing_back() -> None:
    schema = schema_of({"a": WHOLE, "b": WHOLE}, relations=["a <= b", "a + b <= 18"])
    table = pd.DataFrame({"a": [1, 2, 0, 9], "b": [1, 5, 9, 9]})
    assert list(frozen_columns(schema, table)) == []
