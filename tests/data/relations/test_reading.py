"""Relations, derived columns, paths and ranges in a schema file, and what is refused by key."""

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
        "derived": {"total": "income + fees"},
        "path": {
            "history": {
                "window": ["m1", "m2"],
                "columns": {"late": "sum", "ever": "any"},
                "step": "month",
                "because": "days late leave the window",
            },
            "rating": {"columns": ["grade"], "states": [["C"], ["B"], ["A"]]},
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
    bare = {key: content[key] for key in content if key not in ("relations", "derived", "path")}
    for name in ("income", "loans"):
        del bare["features"][name]["range"]
    plain = Schema.from_mapping("shop", bare)
    assert plain.digest() == schema.digest()
    assert plain.relations_digest() == "" != schema.relations_digest()


@pytest.mark.parametrize("key", ["relations", "derived", "path"])
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
RATING = {"columns": ["grade"], "states": [["C"], ["B"]]}
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
    "derived list": ("derived", ["total"], r"derived: must map each column"),
    "derived unknown": ("derived", {"totl": "fees"}, r"derived\.totl: .*did you mean 'total'"),
    "derived formula": ("derived", {"total": "fees +"}, r"derived\.total: 'fees \+' ends after"),
    "derived units": ("derived", {"total": "m1 + fees"}, r"derived\.total: .*different units"),
    "derived category": ("derived", {"grade": "m1"}, r"derived\.grade: holds categories"),
    "derived twice": (
        "derived",
        {"total": "income + fees", "fees": "max(total, income)"},
        r"derived\.total: is made of 'fees', which is derived itself",
    ),
    "derived stuck": (
        "derived",
        {"m1": {"formula": "count(late, m2)"}},
        r"features\.m1\.change: is 'immutable', but the column moves with late",
    ),
    "path list": ("path", ["a"], r"path: must map a name"),
    "no states": ("path", {"p": {"columns": ["grade"]}}, r"path\.p: has no states; give window"),
    "empty states": ("path", {"p": RATING | {"states": []}}, r"path\.p: has no states"),
    "both": ("path", {"p": WINDOW | {"states": [[1]]}}, r"path\.p: has both window and states"),
    "one state": ("path", {"p": RATING | {"states": [["C"]]}}, r"p\.states: .*at least two"),
    "same state": ("path", {"p": RATING | {"states": [["C"], ["C"]]}}, r"p\.states: lists"),
    "state width": (
        "path",
        {"p": RATING | {"states": [["C"], ["B", 1]]}},
        r"path\.p\.states\[1\]: must list one value for each of grade",
    ),
    "state category": (
        "path",
        {"p": RATING | {"states": [["C"], ["D"]]}},
        r"states\[1\]: holds 'D', no category of 'grade'",
    ),
    "state number": (
        "path",
        {"p": {"columns": ["late"], "states": [[1], ["few"]]}},
        r"states\[1\]: holds 'few', but 'late' is a number",
    ),
    "states of nothing": ("path", {"p": {"states": [[1], [2]]}}, r"path\.p\.columns: is missing"),
    "window key": ("path", {"p": RATING | {"enters": 1}}, r"path\.p\.enters: .*a window"),
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
        {"p": {"columns": ["m1"], "states": [[1], [2]]}},
        r"features\.m1\.change: is 'immutable', but path\.p\.columns moves",
    ),
    "path one-hot": (
        "path",
        {"p": {"columns": ["region"], "states": [["north"], ["south"]]}},
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
        {"p": WINDOW, "q": {"columns": ["late"], "states": [[1], [2]]}},
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
