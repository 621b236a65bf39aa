"""Relations, paths and ranges in a schema file, and what is refused by key."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from countermove.data.schema import Schema, ValueRange
from countermove.errors import SchemaError

MORE = {
    "fees": {"kind": "numeric", "unit": "EUR", "change": "both", "min": 0},
    "total": {"kind": "numeric", "unit": "EUR", "change": "both", "min": 0},
    "grade": {"kind": "ordered", "change": "up", "categories": ["C", "B", "A"]},
    "m1": {"kind": "integer", "unit": "days"},
    "m2": {"kind": "integer", "unit": "days"},
    "late": {"kind": "integer", "unit": "days", "change": "both"},
    "ever": {"kind": "binary", "change": "down"},
}


@pytest.fixture
def content(mapping: dict[str, Any]) -> dict[str, Any]:
    mapping["features"] |= MORE
    mapping["features"]["income"]["range"] = {"low": 10, "high": 900}
    mapping["features"]["loans"]["range"] = "declared"
    return mapping | {
        "relations": ["fees <= income", "if region == north then loans <= 3"],
        "path": {
            "history": {
                "window": ["m1", "m2"],
                "columns": {"late": "sum", "ever": "any"},
                "step": "month",
                "because": "days late leave the window",
            },
        },
    }


def test_all_of_it_survives_a_round_trip(content: dict[str, Any]) -> None:
    schema = Schema.from_mapping("shop", content)
    text = yaml.safe_dump(schema.to_mapping(), sort_keys=False)
    again = Schema.from_mapping("shop", yaml.safe_load(text))
    assert again == schema
    assert again.relations_digest() == schema.relations_digest()
    assert schema.paths[0].columns == ("late", "ever", "m1", "m2")
    assert schema.paths[0].because == again.paths[0].because != ""
    assert schema.feature("income").range == ValueRange(low=10.0, high=900.0)
    assert schema.feature("loans").range == ValueRange(declared=True)


def test_models_are_read_with_and_without_relations(content: dict[str, Any]) -> None:
    schema = Schema.from_mapping("shop", content)
    bare = {key: content[key] for key in content if key not in ("relations", "path")}
    for name in ("income", "loans"):
        del bare["features"][name]["range"]
    plain = Schema.from_mapping("shop", bare)
    assert plain.digest() == schema.digest()
    assert plain.relations_digest() == "" != schema.relations_digest()


@pytest.mark.parametrize("key", ["relations", "path"])
def test_the_digest_of_relations_follows_each_of_them(content: dict[str, Any], key: str) -> None:
    whole = Schema.from_mapping("shop", content).relations_digest()
    del content[key]
    assert Schema.from_mapping("shop", content).relations_digest() != whole


def test_reasons_are_no_part_of_the_digest(content: dict[str, Any]) -> None:
    digest = Schema.from_mapping("shop", content).relations_digest()
    content["path"]["history"]["because"] = "other words"
    content["relations"][0] = {"relation": content["relations"][0], "because": "so"}
    assert Schema.from_mapping("shop", content).relations_digest() == digest


WINDOW = {"window": ["m1", "m2"], "columns": {"late": "sum"}}
REFUSED: dict[str, tuple[str, object, str]] = {
    "not a list": ("relations", "a <= b", r"relations: must be a list of sentences, not str"),
    "no sentence": ("relations", ["fees < 3"], r"relations\[0\]: 'fees < 3' compares with `<`"),
    "unknown column": (
        "relations",
        ["fees <= 3", "fes <= income"],
        r"relations\[1\]: .*'fes', which is no feature; did you mean 'fees'",
    ),
    "a sensitive column": ("relations", ["sex <= 3"], r"relations\[0\]: .*no feature"),
    "units": (
        "relations",
        ["m1 <= fees"],
        r"relations\[0\]: 'm1 <= fees' compares different units: m1 in days, fees in EUR.*"
        r"mixed_units",
    ),
    "units there": ("relations", ["if loans == 0 then m1 <= fees"], r"different units"),
    "twice": ("relations", ["fees <= 3", "3 >= fees"], r"relations: says fees <= 3 twice"),
    "unknown key": (
        "relations",
        [{"relation": "fees <= 3", "becuase": "x"}],
        r"relations\[0\]: unknown key 'becuase'; did you mean 'because'",
    ),
    "no relation": ("relations", [{"because": "x"}], r"relations\[0\]\.relation: is missing"),
    "mark": (
        "relations",
        [{"relation": "fees <= 3", "mixed_units": "yes"}],
        r"mixed_units: must be true or false, not str 'yes'",
    ),
    "boolean": ("relations", [True], r"relations\[0\]: must be a mapping .* not bool True"),
    "path list": ("path", ["a"], r"path: must map a name"),
    "no window": ("path", {"p": {"columns": {"late": "sum"}}}, r"path\.p\.window: is missing"),
    "declared states": ("path", {"p": WINDOW | {"states": [[1]]}}, r"unknown key 'states'"),
    "path column": (
        "path",
        {"p": WINDOW | {"columns": {"lte": "sum"}}},
        r"path\.p\.columns: holds 'lte', no feature; did you mean 'late'",
    ),
    "summary": (
        "path",
        {"p": WINDOW | {"columns": {"late": "total"}}},
        r"path\.p\.columns\.late: is str 'total'",
    ),
    "path immutable": (
        "path",
        {"p": WINDOW | {"columns": {"m1": "sum"}}},
        r"features\.m1\.change: is 'immutable', but path\.p\.columns moves",
    ),
    "path one-hot": (
        "path",
        {"p": WINDOW | {"columns": {"region": "sum"}}},
        r"path\.p\.columns: holds 'region', which is one-hot",
    ),
    "short window": ("path", {"p": WINDOW | {"window": ["m1"]}}, r"p\.window: has 1 column"),
    "mixed window": (
        "path",
        {"p": WINDOW | {"window": ["m1", "m3"]}},
        r"path\.p\.window: holds features and m3",
    ),
    "label window": (
        "path",
        {"p": WINDOW | {"window": ["outcome", "x"]}},
        r"path\.p\.window: holds 'outcome', used elsewhere",
    ),
    "two owners": (
        "path",
        {"p": WINDOW, "q": {"window": ["d1", "d2"], "columns": {"late": "max"}}},
        r"path\.p: governs 'late', as path\.q does",
    ),
    "window of nothing": ("path", {"p": {"window": ["x", "y"]}}, r"path\.p\.columns: is missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_by_its_key(content: dict[str, Any], case: str) -> None:
    key, entry, problem = REFUSED[case]
    with pytest.raises(SchemaError, match=r"(?s)shop\.yml: .*" + problem):
        Schema.from_mapping("shop", content | {key: entry}, "shop.yml")


@pytest.mark.parametrize(
    ("column", "entry", "problem"),
    [
        ("income", "seen", r"income\.range: is str 'seen'"),
        ("income", {"lo": 1}, r"income\.range: unknown key 'lo'; did you mean 'low'"),
        ("income", {}, r"income\.range: is empty"),
        ("income", {"low": 3, "high": 3}, r"income\.range\.low: 3 is not below high 3"),
        ("income", {"low": "a"}, r"income\.range\.low: must be a finite number"),
        ("level", {"low": 1}, r"level\.range: gives numbers, but the feature is ordered"),
    ],
)
def test_a_range_that_is_none_is_refused(
    mapping: dict[str, Any], column: str, entry: object, problem: str
) -> None:
    mapping["features"][column]["range"] = entry
    with pytest.raises(SchemaError, match=problem):
        Schema.from_mapping("shop", mapping)


def test_weights_and_marks_let_units_differ(content: dict[str, Any]) -> None:
    marked = {"relation": "m1 <= fees", "mixed_units": True}
    content["relations"] = ["2.5 * m1 <= fees", marked]
    assert len(Schema.from_mapping("shop", content).relations) == 2


def test_a_recipe_s_window_names_columns_of_its_raw_table(schemas: Any) -> None:
    from countermove.data.configuration import read_yaml

    content = read_yaml(schemas / "credit.yml")
    content["path"]["overdue"]["window"][1] = "PAY_1"
    with pytest.raises(SchemaError, match=r"holds 'PAY_1', no column of the raw table; did you"):
        Schema.from_mapping("credit", content)
