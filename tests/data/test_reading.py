"""Cells as people write them: read by one recipe per column, or said to be unreadable."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.reading import (
    DateReading,
    NumberReading,
    WordReading,
    folded,
    written_out,
)
from countermove.data.schema import Schema
from countermove.errors import DataError, SchemaError

NAN = float("nan")
US = NumberReading(thousands=",", units=(("$", 1.0), ("USD", 1.0)))
GERMAN = NumberReading(decimal=",", thousands=".", units=(("€", 1.0), ("EUR", 1.0)))
SWISS = NumberReading(thousands="'", units=(("CHF", 1.0),))
FRENCH = NumberReading(decimal=",", thousands=" ", units=(("€", 1.0),))
MONTHS = NumberReading(units=(("months", 1.0), ("month", 1.0), ("years", 12.0), ("year", 12.0)))


def read(reading: NumberReading, cell: Any) -> float | str:
    """Return one cell as its number, or as what is said of it."""
    value, missing, strange = reading.read(pd.Series([cell], dtype=object))
    if missing[0]:
        return "missing"
    return "unreadable" if strange[0] else float(value[0])


@pytest.mark.parametrize(
    ("reading", "cell", "expected"),
    [
        (US, "$51,501.84", 51501.84),
        (US, "-$51,501.84", -51501.84),
        (US, "$-51,501.84", -51501.84),
        (US, "($1,234)", -1234),
        (US, "$ (1,234.50)", "unreadable"),
        (US, "USD 1,234,567", 1234567),
        (US, "1,234 usd", 1234),
        (US, " 12 ", 12),
        (US, "+7", 7),
        (US, "--7", "unreadable"),
        (US, "1,23", "unreadable"),
        (US, "12,34,567", 1234567),  # as in India
        (US, "1.234,50", "unreadable"),
        (US, "€5", "unreadable"),
        (US, "", "missing"),
        (US, "n/a", "missing"),
        (US, None, "missing"),
        (US, "1e3", 1000),
        (US, ".5", 0.5),
        (US, "5.", 5),
        (US, "inf", "unreadable"),
        (US, "t1000t1000", "unreadable"),
        (US, 12.5, 12.5),  # a number in a workbook
        (GERMAN, "1.234.567,89 €", 1234567.89),
        (GERMAN, "EUR 1.234", 1234),
        (GERMAN, "−1.234,5", -1234.5),
        (GERMAN, "1,234.5", "unreadable"),
        (GERMAN, "1\u00a0234,5", "unreadable"),
        (SWISS, "CHF 12'345.60", 12345.6),
        (SWISS, "12’345.60", 12345.6),
        (FRENCH, "1\u202f234,5 €", 1234.5),
        (FRENCH, "\u00a01\u00a0234 567,25\u00a0€", 1234567.25),
        (NumberReading(units=(("%", 1.0),)), "28.2 %", 28.2),
        (NumberReading(units=(("%", 1.0),)), "0.282", "unreadable"),
        (NumberReading(units=(("%", 0.01),)), "28%", 0.28),
        (US, "(-5)", "unreadable"),
        (US, "5-", -5),
        (NumberReading(), "12.5-", -12.5),
        (MONTHS, "12 months", 12),
        (MONTHS, "1 Month", 1),
        (MONTHS, "2 years", 24),
        (MONTHS, "12", "unreadable"),
        (MONTHS, "2 weeks", "unreadable"),
        (NumberReading(units=(("m²", 1.0),)), "62 m²", 62),
        (NumberReading(missing_values=("-9", "k.A.")), "-9.0", "missing"),
        (NumberReading(missing_values=("-9", "k.A.")), "K.A. ", "missing"),
        (NumberReading(missing_values=("-9",)), "-90", -90),
        (NumberReading(), "１２", 12),
    ],
)
def test_a_number_is_read_as_its_column_is_written(
    reading: NumberReading, cell: Any, expected: float | str
) -> None:
    assert read(reading, cell) == expected


def test_numbers_of_another_type_are_taken_as_they_are() -> None:
    values, missing, strange = GERMAN.read(pd.Series([1.5, np.nan, 3.0]))
    np.testing.assert_array_equal(values, [1.5, NAN, 3.0])
    assert missing.tolist() == [False, True, False]
    assert not strange.any()


ON_EXTRACT = "2024-03-01"


@pytest.mark.parametrize(
    ("reading", "cell", "expected"),
    [
        (DateReading(formats=("%d.%m.%Y",), becomes="age", until=ON_EXTRACT), "02.03.2000", 23),
        (DateReading(formats=("%d.%m.%Y",), becomes="age", until=ON_EXTRACT), "01.03.2000", 24),
        (DateReading(formats=("%d.%m.%Y",), becomes="age", until=ON_EXTRACT), "31.02.2000", None),
        (DateReading(formats=("%m/%d/%Y",), becomes="days", until=ON_EXTRACT), "02/28/2024", 2),
        (DateReading(formats=("%m/%d/%Y",), becomes="days", until=ON_EXTRACT), "28/02/2024", None),
        (DateReading(becomes="days", until=ON_EXTRACT), "2024-02-29T12:00:00Z", 0.5),
        (DateReading(becomes="years", until=ON_EXTRACT), "2023-03-01", 366 / 365.25),
        (DateReading(becomes="month"), "2024-02-29", 2),
        (DateReading(becomes="weekday"), "2024-03-03", 7),
        (DateReading(becomes="hour"), "2024-03-03 17:45", 17),
        (DateReading(formats=("%d.%m.%Y", "%d %b %Y"), becomes="year"), "3 Feb 1999", 1999),
        (DateReading(becomes="year"), pd.Timestamp("2001-01-01"), 2001),
    ],
)
def test_a_date_becomes_what_the_schema_says(
    reading: DateReading, cell: Any, expected: float | None
) -> None:
    values, missing, strange = reading.read(pd.Series([cell]))
    assert not missing.any()
    assert strange.tolist() == [expected is None]
    assert expected is None or values[0] == pytest.approx(expected)


def test_dates_that_stand_for_nothing_are_missing() -> None:
    reading = DateReading(missing_values=("9999-12-31",), formats=("%d.%m.%Y",))
    dates, missing, strange = reading.dates(pd.Series(["31.12.9999", "", "1.2.2024", "soon"]))
    assert missing.tolist() == [True, True, False, False]
    assert strange.tolist() == [False, False, False, True]
    assert dates[2] == pd.Timestamp("2024-02-01")


def test_spellings_of_a_word_are_one_word() -> None:
    reading = WordReading(
        fold=True,
        spellings=(("male", ("m",)),),
        missing_values=("k. A.",),
        pooled="other",
    )
    cells = ["Male", " ＭＡＬＥ", "m", "FE\u00a0MALE", "k. a.", None, "diverse", "caf\u0065\u0301"]
    found = reading.read(pd.Series(cells), ["male", "fe male", "café", "other"])
    assert found.fillna("-").tolist() == [
        "male", "male", "male", "fe male", "-", "-", "other", "café",
    ]  # fmt: skip
    assert folded("Straße\u200b ") == folded("STRASSE")


def test_an_unseen_word_stays_for_the_quarantine_unless_it_is_pooled() -> None:
    found = WordReading(fold=True).read(pd.Series(["North", "Up"]), ["north", "south"])
    assert found.tolist() == ["north", "Up"]


CONTENT: dict[str, Any] = {
    "file": {"encoding": "cp1252", "delimiter": ";", "header": 3, "rename": True},
    "label": {
        "column": "paid",
        "favourable": "ja",
        "unfavourable": "nein",
        "read": {"fold": True, "spellings": {"ja": ["j"]}},
    },
    "features": {
        "income": {
            "kind": "numeric",
            "change": "up",
            "read": {
                "decimal": ",",
                "thousands": ".",
                "units": ["€"],
                "missing_values": [-9],
            },
        },
        "term": {
            "kind": "integer",
            "change": "both",
            "read": {"units": {"Monate": 1, "Jahre": 12}},
        },
        "age": {
            "kind": "integer",
            "change": "immutable",
            "read": {"from": "born", "date": "%d.%m.%Y", "as": "age", "until": "applied"},
        },
        "region": {
            "kind": "onehot",
            "change": "immutable",
            "read": {"fold": True, "pooled": "other"},
            "categories": ["north", "other"],
        },
    },
    "source": "file",
    "time": "applied",
    "read": {"applied": {"date": ["%d.%m.%Y", "iso"]}},
}


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "income": ["1.000,50 €", "(2.000)", "-9", "12"],
            "term": ["12 Monate", "2 Jahre", "6 Monate", "1 Jahre"],
            "born": ["01.01.2000", "02.01.2000", "31.12.1970", "1.1.1980"],
            "region": ["North", "SOUTH", " north", "east"],
            "applied": ["01.01.2024", "01.01.2024", "2024-01-01", "2.1.2024"],
            "paid": ["Ja", "NEIN", "j", "nein "],
        }
    )


def test_a_recipe_is_written_back_as_it_was_read() -> None:
    schema = Schema.from_mapping("shop", CONTENT)
    assert schema.to_mapping() == CONTENT
    assert Schema.from_mapping("shop", schema.to_mapping()) == schema


def test_a_table_is_read_by_its_recipe() -> None:
    schema = Schema.from_mapping("shop", CONTENT)
    with pytest.raises(DataError, match="'income': missing value, in 1 row") as error:
        clean(table(), schema)
    assert error.value.rows == (2,)
    raw = table().assign(income=["1.000,50 €", "(2.000)", "7", "12"])
    typed = clean(raw, schema)
    assert typed["income"].tolist() == [1000.5, -2000, 7, 12]
    assert typed["term"].tolist() == [12, 24, 6, 12]
    assert typed["age"].tolist() == [24, 23, 53, 44]
    assert typed["region"].tolist() == ["north", "other", "north", "other"]
    assert typed["label"].tolist() == [1, -1, 1, -1]
    assert typed["applied"].dt.day.tolist() == [1, 1, 1, 2]


def test_an_unknown_label_is_never_an_unfavourable_one() -> None:
    schema = Schema.from_mapping("shop", CONTENT)
    raw = table().assign(paid=["Ja", "yes", "ja", "nein"], income="5")
    with pytest.raises(DataError, match="'yes' is neither 'ja' nor 'nein', in 1 row") as error:
        clean(raw, schema, part_from=0)
    assert error.value.rows == (1,)


def test_how_a_file_writes_its_cells_does_not_change_what_a_rule_reads() -> None:
    def digest(**changes: Any) -> str:
        features = CONTENT["features"]
        features = features | {"income": features["income"] | {"read": changes}}
        return Schema.from_mapping("shop", CONTENT | {"features": features}).digest()

    plain = digest(decimal=",", thousands=".", units=["€"])
    assert digest(thousands=",") == plain
    assert digest(missing_values=[-9]) != plain
    assert digest(units={"€": 1, "T€": 1000}) != plain
    others = CONTENT | {"file": {}, "read": {"applied": {"date": "iso"}}}
    assert (
        Schema.from_mapping("shop", others).digest()
        == Schema.from_mapping("shop", CONTENT).digest()
    )


@pytest.mark.parametrize(
    ("where", "entry", "said"),
    [
        ("income", {"decimal": "x"}, r"features\.income\.read\.decimal: must be"),
        ("income", {"decimal": ",", "thousands": ","}, "is the decimal mark"),
        ("income", {"fold": True}, "unknown key 'fold'"),
        ("income", {"units": {"€": -1}}, "a factor is positive"),
        ("income", {"date": "%d.%m.%Y"}, r"read\.as: is missing"),
        ("income", {"date": "dd.mm.yyyy", "as": "year"}, "a format such as"),
        ("income", {"date": "iso", "as": "age"}, r"read\.until: is missing"),
        ("income", {"missing_values": -9}, "must be a list"),
        ("region", {"pooled": "rest"}, "not among the categories"),
        ("region", {"spellings": {"up": ["u"]}}, "no category"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(
    where: str, entry: dict[str, Any], said: str
) -> None:
    features = CONTENT["features"]
    features = features | {where: features[where] | {"read": entry}}
    with pytest.raises(SchemaError, match=said):
        Schema.from_mapping("shop", CONTENT | {"features": features})


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"encoding": "klingon"}, r"file\.encoding: is 'klingon'"),
        ({"delimiter": ";;"}, "one character"),
        ({"header": 0}, "number of a line"),
        ({"rename": "yes"}, "true or false"),
    ],
)
def test_a_layout_that_makes_no_sense_is_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.from_mapping("shop", CONTENT | {"file": entry})


@pytest.mark.parametrize(
    ("read", "said"),
    [
        ({"income": {"date": "iso"}}, "is a feature"),
        ({"paid": {"fold": True}}, "is the label"),
        ({"note": {"fold": True}}, "is read for nothing"),
        ({"applied": {"fold": True}}, "is a moment"),
        ({"group": {"date": "iso"}}, "is read as words"),
        ({"group": {"decimal": ","}}, "unknown key 'decimal'|is read as words"),
        ({"group": {"from": "x"}}, "is for features"),
    ],
)
def test_a_reading_of_a_column_that_needs_none_is_refused(read: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        Schema.from_mapping("shop", CONTENT | {"sensitive": ["group"], "read": read})


def test_cells_of_a_workbook_are_written_out_as_they_are_read() -> None:
    day = datetime.datetime(2024, 2, 29)
    cells = pd.Series([1234.5, "1.234,5 €", 7, None], dtype=object)
    moments = pd.Series([day, "01.03.2024", None, None], dtype=object)
    frame = pd.DataFrame({"amount": cells, "day": moments, "n": [1, 2, 3, 4]})
    dates = DateReading(formats=("%d.%m.%Y",))
    out = written_out(frame, {"amount": GERMAN, "day": dates})
    np.testing.assert_array_equal(GERMAN.read(out["amount"])[0], [1234.5, 1234.5, 7, NAN])
    assert dates.dates(out["day"])[0].tolist()[:2] == [day, pd.Timestamp("2024-03-01")]
    assert GERMAN.read(out["amount"])[1].tolist() == [False, False, False, True]
    assert out["n"].tolist() == [1, 2, 3, 4]
