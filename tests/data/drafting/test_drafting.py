"""A drafted schema loads, fits its table, names every column once, and says what to confirm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from countermove.data.cleaning import clean, clean_rows
from countermove.data.doubts import gives_away, name_words
from countermove.data.drafting import draft_schema
from countermove.data.files import RawTable
from countermove.data.guesses import expanded_groups, guess_column, ordered_words, round_bounds
from countermove.data.sources import read_embedded
from countermove.data.synthetic import fabricate
from countermove.errors import DataError

N = 120


def columns(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Return columns of every sort."""
    return {
        "id": [f"k-{row:03}" for row in range(N)],
        "income": rng.normal(40, 9, N).round(2).tolist(),
        "loans": rng.integers(0, 12, N).tolist(),
        "owner": rng.integers(0, 2, N).tolist(),
        "codes": rng.integers(1, 3, N).tolist(),
        "flag": rng.choice(["true", "False"], N).tolist(),
        "answer": rng.choice(["yes", "no"], N).tolist(),
        "level": rng.choice(["high", "low", "medium"], N).tolist(),
        "since": rng.choice(["1 to 3 years", "under 1 year", "4 years or more"], N).tolist(),
        "region": rng.choice(["north", "south", "east"], N).tolist(),
        "note": [f"said {row} on the phone" for row in range(N)],
        "same": ["x"] * N,
        "sparse": ["1", "2"] + [""] * (N - 2),
    }


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(columns(rng)).astype("str")
    home = rng.integers(0, 3, N)
    for place, word in enumerate(("own", "rent", "free")):
        made[f"housing_{word}"] = (home == place).astype(int).astype("str")
    made["Sex"] = rng.choice(["f", "m"], N)
    made["outcome"] = rng.choice(["refused", "accepted"], N)
    made["letter_sent"] = made["outcome"].map({"accepted": "7", "refused": "9"})
    return made


def drafted(table: pd.DataFrame, **known: Any) -> dict[str, Any]:
    draft = draft_schema(table, "mine", **known)
    clean(table, draft.schema)
    content: dict[str, Any] = yaml.safe_load(draft.text)
    return content


def test_every_sort_of_column_finds_its_place(table: pd.DataFrame) -> None:
    content = drafted(table)
    assert content["id"] == "id"
    assert content["label"] == {
        "column": "outcome",
        "favourable": "accepted",
        "unfavourable": "refused",
        "read": {"fold": True},
    }
    assert content["sensitive"] == ["Sex"]
    assert content["ignore"] == ["note", "same", "sparse", "letter_sent"]
    features = content["features"]
    kinds = {name: entry["kind"] for name, entry in features.items()}
    assert kinds == {
        "income": "numeric", "loans": "integer", "owner": "binary", "codes": "binary",
        "flag": "binary", "answer": "binary", "level": "ordered", "since": "onehot",
        "region": "onehot", "housing_own": "binary", "housing_rent": "binary",
        "housing_free": "binary",
    }  # fmt: skip
    assert features["level"]["categories"] == ["low", "medium", "high"]
    assert features["answer"]["categories"] == ["no", "yes"]
    assert {features[f"housing_{word}"]["group"] for word in ("own", "rent", "free")} == {"housing"}
    assert {entry["change"] for entry in features.values()} == {"immutable"}


def test_every_guess_is_marked_with_its_reason(table: pd.DataFrame) -> None:
    draft = draft_schema(table, "mine")
    guessed = [
        line
        for line in draft.text.splitlines()
        if line.startswith(("id:", "label:", "  ")) and not line.startswith("#")
    ]
    assert all("# TODO: " in line for line in guessed)
    assert draft.guesses == len(guessed)
    reasons = {line.split(":")[0].strip(" -"): line.split("# TODO: ")[1] for line in guessed}
    assert "free text" in draft.text
    assert "constant: every row holds 'x'" in draft.text
    assert "no value in 98% of the rows" in draft.text
    assert "separates the outcome without an error" in draft.text
    assert "bounds rounded outwards" in reasons["income"]


def test_what_the_user_knows_beats_the_guess(table: pd.DataFrame) -> None:
    content = drafted(table.drop(columns="outcome"), label="answer", favourable="no")
    assert content["label"]["column"] == "answer"
    assert content["label"]["favourable"] == "no"
    content = drafted(table.drop(columns=["outcome", "letter_sent"]), label="income")
    assert content["label"]["at_least"] == pytest.approx(
        table["income"].astype(float).median(), 0.1
    )


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"label": "outcme"}, "did you mean 'outcome'"),
        ({"label": "region"}, r"has 3 value\(s\); expected two, or numbers"),
        ({"label": "same"}, r"has 1 value\(s\)"),
        ({"favourable": "maybe"}, "never holds 'maybe'"),
    ],
)
def test_a_label_that_cannot_be_is_refused(
    table: pd.DataFrame, known: dict[str, str], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        draft_schema(table, "mine", **known)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"a": [], "b": []}, r"0 row\(s\)"),
        ({"a": ["1", "2", "3"], "b": ["x", "y", "z"]}, "no column can be the outcome"),
        ({"y": ["0", "1"] * 3, "a": ["1"] * 6}, "no column is left as a feature. a: constant"),
    ],
)
def test_tables_without_a_schema_in_them_are_refused(
    content: dict[str, list[str]], expected: str
) -> None:
    with pytest.raises(DataError, match=expected):
        draft_schema(pd.DataFrame(content), "mine")


@pytest.mark.parametrize(
    ("name", "values", "favourable"),
    [
        ("approved", ["0", "1"], 1),
        ("default", ["0", "1"], 0),
        ("HasDefaulted", ["no", "yes"], "no"),
        ("credit_risk", ["1", "2"], 1),
        ("class", ["notspam", "spam"], "notspam"),
        ("target", ["-1", "1"], 1),
        ("result", ["1.0", "0.0"], 1),
    ],
)
def test_the_favourable_value_follows_the_words(
    name: str, values: list[str], favourable: object
) -> None:
    table = pd.DataFrame({"a": [str(row % 7) for row in range(40)], name: values * 20})
    label = drafted(table)["label"]
    assert label["column"] == name
    assert label["favourable"] == favourable
    assert {str(favourable), str(label["unfavourable"])} == {v.removesuffix(".0") for v in values}


@pytest.mark.parametrize("pair", [["0", "1"], ["no", "Yes"]])
@pytest.mark.parametrize("known", [{}, {"label": "outcome"}])
def test_a_few_rows_with_a_third_outcome_are_wrong_rows(
    pair: list[str], known: dict[str, str]
) -> None:
    table = pd.DataFrame({"a": [str(row % 7) for row in range(40)], "outcome": pair * 20})
    table.loc[3, "outcome"] = "9"
    draft = draft_schema(table, "mine", **known)
    assert "1 row(s) hold '9', and are set aside" in draft.text
    label = yaml.safe_load(draft.text)["label"]
    assert sorted(str(label[key]) for key in ("favourable", "unfavourable")) == sorted(pair)
    read = clean_rows(RawTable(table), draft.schema)
    assert len(read.table) == 39
    assert read.quarantine["found"].tolist() == ["9"]


def test_many_rows_with_a_third_outcome_are_refused() -> None:
    table = pd.DataFrame({"a": [str(row % 7) for row in range(42)], "answer": ["x", "y", "z"] * 14})
    with pytest.raises(DataError, match="has 3 value"):
        draft_schema(table, "mine", label="answer")


def test_several_rows_per_company_become_a_series(
    distress: Callable[[int, int], pd.DataFrame],
) -> None:
    content = drafted(distress(30, 0).astype("str"))
    assert content["series"] == {"entity": "Company", "time": "Time"}
    assert content["label"]["column"] == "Financial Distress"
    assert "id" not in content


def test_the_project_tables_are_drafted_soundly() -> None:
    german = drafted(read_embedded("german"))
    assert german["label"] == {"column": "credit_risk", "favourable": 1, "unfavourable": 2}
    assert german["sensitive"] == ["age_years", "foreign_worker"]
    tiny = drafted(fabricate("tiny"))
    assert tiny["features"]["education"]["categories"] == ["school", "college", "university"]
    assert tiny["id"] == "person"


def test_names_the_typed_table_needs_are_left_out() -> None:
    table = pd.DataFrame(
        {"a": list("1234") * 5, "label": list("1221") * 5, "row_id": list("5678") * 5,
         "group:x": list("1243") * 5, "y": ["0", "1"] * 10}
    )  # fmt: skip
    assert drafted(table, label="y")["ignore"] == ["label", "row_id", "group:x"]


def test_a_column_named_like_a_category_is_left_out() -> None:
    table = pd.DataFrame(
        {"a": list("xyz") * 8, "a=x": list("123") * 8, "y": ["0", "1"] * 12}
    )  # fmt: skip
    assert drafted(table)["ignore"] == ["a=x"]


names = st.text(min_size=1, max_size=8).filter(lambda text: text.strip())
cells = st.sampled_from(
    ["1", "2", "0", "3.5", "a", "b ", "ü", "x: y", "# no", "-1e300", "\x84", "'"]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.data())
def test_any_table_without_gaps_is_drafted_soundly_or_refused(data: st.DataObject) -> None:
    """Whatever the names and words: the draft loads and its table passes."""
    columns = data.draw(st.lists(names, min_size=1, max_size=4, unique=True))
    n = 12
    table = pd.DataFrame(
        {name: data.draw(st.lists(cells, min_size=n, max_size=n)) for name in columns}, dtype="str"
    )
    table["y "] = ["0", "1"] * (n // 2)
    left = [name for name in columns if guess_column(table[name]).entry]
    try:
        draft = draft_schema(table, "any", label="y ")
    except DataError as error:
        assume("no column is left as a feature" not in str(error))
        raise
    assert left
    clean(table, draft.schema)


@pytest.mark.parametrize("name", ["0\x85", "a\u2028b", "tab\tand\nbreak"])
def test_names_with_line_breaks_of_any_sort_are_spelled_out(name: str) -> None:
    table = pd.DataFrame({name: ["1", "2", "3"] * 4, "y": ["0", "1"] * 6}, dtype="str")
    assert yaml.safe_load(draft_schema(table, "any", label="y").text)["features"].keys() == {name}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["High", "LOW", "medium"], ("LOW", "medium", "High")),
        (["poor", "excellent", "good"], ("poor", "good", "excellent")),
        (["A11", "A12", "A13"], None),
        (["red", "green", "blue"], None),
        (["low", "Low", "high"], None),
        (["1 car", "2 houses"], None),
    ],
)  # fmt: skip
def test_an_order_is_seen_where_the_words_have_one(
    words: list[str], expected: tuple[str, ...] | None
) -> None:
    assert ordered_words(words) == expected
    assert ordered_words(words[::-1]) == expected


def test_groups_are_columns_that_sum_to_one() -> None:
    table = pd.DataFrame(
        {
            "home_type_own": [1, 0, 0, 1], "home_type_rent": [0, 1, 1, 0],
            "job=clerk": ["true", "false", "false", "false"], "job=miner": ["0", "1", "1", "1"],
            "pet_cat": [1, 0, 0, 0], "pet_dog": [1, 1, 1, 1], "pet_fox": [0, 1, 0, 1],
            "home_size": [3, 4, 5, 6],
        }
    )  # fmt: skip
    assert expanded_groups(table, list(table.columns)) == {
        "home_type": ("home_type_own", "home_type_rent"),
        "job": ("job=clerk", "job=miner"),
    }


@settings(max_examples=200, deadline=None)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_bounds_hold_the_range(a: float, b: float) -> None:
    low, high = min(a, b), max(a, b)
    least, most = round_bounds(low, high)
    assert least <= low <= high <= most
    assert np.isfinite([least, most]).all()


def test_a_leak_is_perfect_and_beyond_chance() -> None:
    good = np.arange(40) >= 20
    rising = pd.Series(np.arange(40.0))
    assert gives_away(rising, good)
    assert gives_away(-rising, good)
    assert not gives_away(rising.where(rising != 3, 25.0), good)
    assert not gives_away(rising[:6], good[17:23])
    words = pd.Series(np.where(good, "yes", "no"))
    assert gives_away(words, good)
    assert not gives_away(pd.Series([f"w{row}" for row in range(40)]), good)


def test_stray_cells_among_numbers_are_reported() -> None:
    guess = guess_column(pd.Series([str(row / 7) for row in range(60)] + ["?", "unknown"]))
    assert guess.entry["kind"] == "numeric"
    assert any("1 cells are not numbers, such as 'unknown'" in why for why in guess.reasons)
    assert any("no value in 1 row(s)" in why for why in guess.reasons)


def test_words_of_a_name() -> None:
    assert name_words("HasDefaultedLast_year2") == {"has", "defaulted", "last", "year"}
    assert not name_words("agency") & {"age"}
