"""Whatever a table, a schema or a file holds: a result or one of our errors, never a traceback."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from countermove.data.checks import check_table
from countermove.data.cleaning import clean
from countermove.data.drafting import draft_file, draft_schema
from countermove.data.files import read_table
from countermove.data.report import SplitPlan, report_on
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.data.sources import read_file
from countermove.data.splits import split_table
from countermove.data.typed_columns import feature_numbers
from countermove.errors import CountermoveError
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse
from countermove.scores import LinearScore

SHARES = {"train": 0.6, "test": 0.4}
ROWS = 16

odd_numbers = st.sampled_from(
    [0, 1, -1, 2, 0.5, -0.0, 1e308, -1e308, 5e-324, 1e-300, 2.0**53, 2.0**60, 10**30, 1e15 + 0.3]
)
odd_words = st.one_of(
    st.sampled_from(
        ["", " ", "NA", "nan", "inf", "-inf", "1e999", "1_0", "0x1f", "١", "½", "１", "1,5", "yes",
         "no", "True", "low", "high", "a=b", "group:x", "row_id", "2020-01-01", "\ufeff", "\x00",
         "\u2028", "é", "e\u0301", "🙂", "=1+1", "'", '"', "{}", "[a]", "null", "~"]
    ),
    st.text(max_size=4),
)  # fmt: skip
odd_cells = st.one_of(
    odd_numbers,
    odd_words,
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-(2**70), 2**70),
    st.dates().map(pd.Timestamp),
    st.binary(max_size=3),
    st.just(pd.NA),
    st.just([1]),
)
names = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h"]),
    st.sampled_from(["a", "b", "c", "d", "a=x", "é", "x_t-1", "label", "row_id", "group:a"]),
    st.text(min_size=1, max_size=3),
)
KINDS = ["numeric", "integer", "binary", "ordered", "onehot"]


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    """A feature's entry, more often sound than not."""
    kind = draw(st.sampled_from(KINDS))
    entry: dict[str, Any] = {"kind": kind, "change": draw(st.sampled_from(["both", "both", "up"]))}
    if kind == "onehot":
        entry["change"] = draw(st.sampled_from(["both", "immutable", "up"]))
    if kind in ("ordered", "onehot"):
        entry["categories"] = ["x", "y", "z"]
    if kind in ("numeric", "integer") and draw(st.booleans()):
        entry["min"], entry["max"] = draw(st.sampled_from([(0, 9), (0, 9), (-1e308, 1e308)]))
        entry["step"] = draw(st.sampled_from([None, 1, 2, 2, 1e300]))
    if draw(st.integers(0, 9)) == 0:
        entry[draw(st.sampled_from(["min", "step", "group", "unit", "categories", "kind"]))] = draw(
            st.one_of(odd_numbers, odd_words, st.none(), st.just(["x", 1, None]))
        )
    return entry


def sound_cells(kind: str) -> st.SearchStrategy[Any]:
    return {
        "numeric": st.one_of(st.floats(0, 9), st.integers(0, 9), st.floats(0, 9).map(str)),
        "integer": st.integers(0, 9),
        "binary": st.sampled_from([0, 1]),
    }.get(kind, st.sampled_from(["x", "y", "z"]))


@st.composite
def tables_and_schemas(draw: st.DrawFn) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A table and a schema's content; now and then either is spoilt."""
    features = draw(st.dictionaries(names, entries(), min_size=1, max_size=4))
    columns: dict[str, list[Any]] = {}
    for name, entry in features.items():
        cells = sound_cells(str(entry["kind"]))
        columns[name] = draw(st.lists(cells, min_size=ROWS, max_size=ROWS))
        if draw(st.integers(0, 9)) == 0:
            columns[name] = draw(st.lists(odd_numbers, min_size=ROWS, max_size=ROWS))
        if draw(st.integers(0, 9)) == 0:
            columns[name][draw(st.integers(0, ROWS - 1))] = draw(odd_cells)
    content: dict[str, Any] = {
        "label": {"column": "outcome", "favourable": 1},
        "features": features,
    }
    columns["outcome"] = [0, 1] * (ROWS // 2)
    if draw(st.integers(0, 3)) == 0:
        content["id"] = "who"
        words = draw(st.lists(st.text(max_size=4), min_size=ROWS, max_size=ROWS))
        columns["who"] = [f"{row}{word}" for row, word in enumerate(words)]
    if draw(st.integers(0, 3)) == 0:
        content.pop("id", None)
        content["series"] = {
            "entity": "who",
            "time": "when",
            "steps": draw(st.sampled_from([1, 1, 1, 2, 3, 0])),
        }
        columns["who"] = [row // 2 for row in range(ROWS)]
        columns["when"] = draw(st.permutations(range(ROWS)))
    if draw(st.integers(0, 3)) == 0:
        content["sensitive"] = [
            draw(st.sampled_from(["group", "group", "outcome", "who", *features]))
        ]
        kept = draw(st.sampled_from([st.text(min_size=1), odd_cells]))
        columns["group"] = draw(st.lists(kept, min_size=ROWS, max_size=ROWS))
    if draw(st.integers(0, 5)) == 0:
        content["label"] = {"column": "outcome", "at_least": draw(odd_numbers)}
        columns["outcome"] = draw(st.lists(odd_cells, min_size=ROWS, max_size=ROWS))
    table = pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in columns.items()})
    return draw(st.sampled_from(SPOILS))(table), content


SPOILS: list[Callable[[pd.DataFrame], pd.DataFrame]] = [
    *[lambda table: table.infer_objects()] * 9,
    lambda table: table,
    lambda table: table.map(str),
    lambda table: pd.concat([table, table.iloc[:, :1]], axis=1),
    lambda table: table.set_axis(range(table.shape[1]), axis=1),
    lambda table: table.head(0),
    lambda table: table.set_index(table.columns[0], drop=False),
]


def run_through(raw: pd.DataFrame, schema: Schema) -> None:
    """Clean, split and standardise a table, let people respond, and check what must hold."""
    table = clean(raw, schema)
    check_table(table, schema)
    train = split_table(table, schema, SHARES, seed=0, min_per_class=1)["train"]
    units = fit_standardiser(train, schema, divide_by_root_d=False)
    X = rows_of(standardised_table(train, schema, units), schema).X
    actions = ActionSet.from_schema(schema, units)
    score = LinearScore(X.shape[1], torch.Generator().manual_seed(0))
    responses = BestResponse(QuadraticCost(1.0), actions).respond(score, X)
    assert np.isfinite(responses.x_new).all()
    held = [*actions.immutable, *(column for group in actions.groups for column in group)]
    np.testing.assert_array_equal(responses.x_new[:, held], X[:, held])


def outcome(attempt: Callable[[], None]) -> str:
    """Return whether an attempt gave a result or was refused by one of our errors."""
    try:
        attempt()
    except CountermoveError as error:
        return "refused" if str(error).strip() else "refused without a word"
    return "result"


def run_table(case: tuple[pd.DataFrame, dict[str, Any]]) -> str:
    raw, content = case
    return outcome(lambda: run_through(raw, Schema.from_mapping("fuzz", content)))


def draft_and_report(case: tuple[pd.DataFrame, dict[str, Any]]) -> str:
    """Draft a schema for the table and report on it, whatever it holds."""
    raw, _ = case

    def attempt() -> None:
        if raw.columns.duplicated().any():
            raise CountermoveError("files with duplicated columns are refused when they are read")
        draft = draft_schema(raw, "fuzz")
        report = report_on(raw, draft.schema, SplitPlan(SHARES))
        assert report.text()

    return outcome(attempt)


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    """A CSV file: sound, ragged, badly quoted, in another encoding, or mere bytes."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    header = draw(
        st.lists(st.sampled_from(["a", "b", "c", "é", "a b", ""]), min_size=1, max_size=4)
    )
    header = header if draw(st.booleans()) else list(dict.fromkeys(header))
    cell = st.one_of(st.sampled_from(["1", "2", "3.5", "x", "y"]), odd_words)
    quoting = draw(st.sampled_from([None, '"', "'", None]))
    lines = [",".join([*header, "y"])]
    for row in range(12):
        width = len(header) + (draw(st.integers(-1, 1)) if draw(st.integers(0, 40)) == 0 else 0)
        cells = [
            draw(cell) if draw(st.integers(0, 30)) == 0 else str(row % 5) for _ in range(width)
        ]
        marked = [f"{quoting}{text}{quoting}" if quoting else text for text in cells]
        lines.append(",".join([*marked, str(row % 2)]))
    text = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"])).join(lines)
    text = text.replace(",", draw(st.sampled_from([",", ",", ";", "\t", "|"])))
    encoding = draw(st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16", "latin-1", "cp1252"]))
    return text.encode(encoding, errors="replace")


def run_file(content: bytes, folder: Path) -> str:
    """Read a file plainly, and as its draft says, whatever it holds."""
    path = folder / "fuzz.csv"
    path.write_bytes(content)

    def attempt() -> None:
        draft = draft_file(path, "fuzz", label="y")
        run_through(read_table(path, draft.schema.file).frame, draft.schema)

    plain = outcome(lambda: read_file(path).info(buf=io.StringIO()))
    drafted = outcome(attempt)
    assert "refused without a word" not in (plain, drafted)
    return drafted


amounts = st.one_of(st.integers(-(10**7), 10**7), st.floats(-1e7, 1e7).map(lambda x: round(x, 2)))
SIGNS = ["", "$", "€", "EUR ", " €", "%", " months", " k.A.", "CHF", "\u00a0€", "(", ")", "-", "~"]


@st.composite
def written_cells(draw: st.DrawFn) -> list[str]:
    """The cells of a column, in one way of writing numbers, dates or words, with strays."""
    sort = draw(st.sampled_from(["number", "number", "date", "word"]))
    if sort == "number":
        marks = draw(st.sampled_from([",.", ".,", " ,", "'.", "\u202f,", "_."]))
        table = str.maketrans({",": marks[0], ".": marks[1]})
        before, behind = draw(st.sampled_from(SIGNS)), draw(st.sampled_from(SIGNS))
        values = draw(st.lists(amounts, min_size=ROWS, max_size=ROWS))
        cells = [f"{before}{f'{value:,}'.translate(table)}{behind}" for value in values]
    elif sort == "date":
        form = draw(st.sampled_from(["%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d", "%d %b %Y", "%H:%M"]))
        days = draw(st.lists(st.datetimes(), min_size=ROWS, max_size=ROWS))
        cells = [day.strftime(form) for day in days]
    else:
        words = draw(st.lists(odd_words, min_size=2, max_size=4))
        spell = st.sampled_from([str, str.upper, str.title, lambda word: f" {word}\u00a0"])
        chosen = draw(st.lists(st.sampled_from(words), min_size=ROWS, max_size=ROWS))
        cells = [draw(spell)(word) for word in chosen]
    for place in draw(st.lists(st.integers(0, ROWS - 1), max_size=2)):
        cells[place] = draw(odd_words)
    return cells


readings = st.dictionaries(
    st.sampled_from(
        ["decimal", "thousands", "units", "bare", "negative", "date", "as", "until", "fold",
         "spellings", "rare", "pooled", "unseen", "missing_values", "from"]
    ),
    st.one_of(
        st.sampled_from(
            [",", ".", "'", " ", True, False, "iso", "%d.%m.%Y", "%", "age", "days", "month",
             "2024-12-31", "parentheses", "trailing", "pooled", "x", 0.1, ["€"], ["x", -9],
             {"€": 2}, {"x": ["a"]}, "other column"]
        ),
        odd_words,
    ),
    max_size=4,
)  # fmt: skip


@st.composite
def cells_and_recipes(draw: st.DrawFn) -> tuple[list[list[str]], list[Any]]:
    """Columns of written cells and, for each, a recipe that may fit."""
    columns = draw(st.lists(written_cells(), min_size=1, max_size=3))
    return columns, [draw(st.one_of(st.none(), readings)) for _ in columns]


def read_cells(case: tuple[list[list[str]], list[Any]]) -> str:
    """Draft a table of written cells and run it; read its columns by recipes of any sort."""
    columns, recipes = case
    raw = pd.DataFrame({f"c{n}": cells for n, cells in enumerate(columns)}, dtype="str")
    raw["y"] = ["ja", "Nein"] * (ROWS // 2)
    for n, recipe in enumerate(recipes):
        outcome(lambda n=n, recipe=recipe: _by_recipe(raw, f"c{n}", recipe))

    def attempt() -> None:
        draft = draft_schema(raw, "fuzz", label="y")
        again = Schema.from_mapping("fuzz", draft.schema.to_mapping())
        assert again == draft.schema
        run_through(raw, draft.schema)

    return outcome(attempt)


def _by_recipe(raw: pd.DataFrame, column: str, recipe: Any) -> None:
    """Read a column by a recipe: a number, missing or unreadable, and never two of them."""
    for entry in ({"kind": "numeric"}, {"kind": "onehot", "categories": ["x", "y"]}):
        content = {"label": {"column": "y", "favourable": "ja"}}
        try:
            schema = Schema.from_mapping(
                "fuzz", content | {"features": {column: entry | {"read": recipe}}}
            )
        except CountermoveError:
            continue
        assert Schema.from_mapping("fuzz", schema.to_mapping()).digest() == schema.digest()
        feature = schema.features[0]
        if feature.column not in raw or entry["kind"] == "onehot":
            continue
        until = feature.reading.until_column if hasattr(feature.reading, "until_column") else None
        if until is None or until in raw:
            values, missing, strange = feature_numbers(raw, feature, schema)
            assert not (missing & strange).any()
            np.testing.assert_array_equal(np.isnan(values), missing | strange)


def run_parquet(case: tuple[pd.DataFrame, dict[str, Any]], folder: Path) -> str:
    """Write what can be written as parquet, now and then cut short, and read it back."""
    raw, content = case
    mixed = [
        column for column in raw.columns if raw.columns.is_unique and raw[column].dtype == object
    ]
    raw = raw.assign(
        **{column: raw[column].map(str) for column in mixed if isinstance(column, str)}
    )
    buffer = io.BytesIO()
    try:
        raw.to_parquet(buffer)
    except Exception:  # noqa: BLE001 - what pyarrow cannot write, nobody can bring
        return "unwritable"
    data = buffer.getvalue()
    path = folder / "fuzz.parquet"
    path.write_bytes(data[: len(data) - 7 * (len(data) % 3 == 0)])
    return outcome(lambda: run_through(read_file(path), Schema.from_mapping("fuzz", content)))


contents = st.recursive(
    st.one_of(st.none(), st.booleans(), odd_numbers, odd_words),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.sampled_from(
                    ["label", "features", "column", "favourable", "kind", "change", "series",
                     "entity", "time", "steps", "sensitive", "ignore", "id", "group", "at_least",
                     "file", "read", "encoding", "delimiter", "header", "unfavourable"]
                ),
                odd_words,
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)  # fmt: skip


def read_content(content: Any) -> str:
    return outcome(lambda: json.dumps(Schema.from_mapping("fuzz", content).to_mapping()) and None)


CASES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any, Path], str], int]] = {
    "tables": (tables_and_schemas(), lambda case, _: run_table(case), 700),
    "drafts": (tables_and_schemas(), lambda case, _: draft_and_report(case), 300),
    "files": (csv_files(), run_file, 500),
    "parquet": (tables_and_schemas(), run_parquet, 200),
    "schemas": (contents, lambda content, _: read_content(content), 400),
    "cells": (cells_and_recipes(), lambda case, _: read_cells(case), 400),
}
"""What is drawn, what is done with it, and how often under `make test-all`: 2,500 in all."""


def fuzz(kind: str, folder: Path, times: int) -> Counter[str]:
    """Run one sort of case so many times and count the outcomes."""
    strategy, act, _ = CASES[kind]
    seen: Counter[str] = Counter()

    @settings(
        max_examples=times,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
    )
    @given(strategy)
    def one(case: Any) -> None:
        seen[act(case, folder)] += 1

    one()
    return seen


@pytest.mark.parametrize("kind", CASES)
def test_a_few_odd_inputs_give_a_result_or_our_error(kind: str, tmp_path: Path) -> None:
    assert fuzz(kind, tmp_path, 20).total() >= 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_odd_inputs_give_a_result_or_our_error(kind: str, tmp_path: Path) -> None:
    seen = fuzz(kind, tmp_path, CASES[kind][2])
    assert seen.total() >= CASES[kind][2]
    # A fuzzer whose every case is refused at the door tests the door alone. How many pass it varies
    # with the modules a process has loaded: Hypothesis draws constants of their sources too.
    read = seen["result"] + seen["refused"]
    assert kind == "schemas" or seen["result"] >= 0.01 * read, seen
    assert seen["refused"] > 0
    assert "refused without a word" not in seen
