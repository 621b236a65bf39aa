"""What each recipe makes of a few raw cells written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data import recipes
from countermove.data.cleaning import clean
from countermove.data.fetch import PUBLISHED
from countermove.data.fetch.publications import FICO_PEOPLE, raw_table
from countermove.data.recipes import (
    ADULT_COLUMNS,
    COMPAS_COLUMNS,
    GMSC_COLUMNS,
    GMSC_PAST_DUE,
    LOANAPP_COLUMNS,
    LOANAPP_FACTS,
    LOANAPP_RATIOS,
    MNIST_COLUMNS,
    PIXELS,
)
from countermove.data.schema import load_schema
from countermove.errors import DataError

ADULT = b"""39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, United-States, <=50K
50, Private, 83311, HS-grad, 9, Married-spouse-absent, Sales, Husband, Black, Female, 0, 7, 13, ?, >50K

"""  # noqa: E501


def test_adult() -> None:
    raw = raw_table("adult", [ADULT])
    assert list(raw.columns) == list(ADULT_COLUMNS)
    table = recipes.adult(raw)
    assert table["age"].tolist() == [39, 50]
    assert table[["is_white", "native_us", "married", "is_male"]].to_numpy().tolist() == [
        [1, 1, 0, 1],
        [0, 0, 1, 0],
    ]
    assert table["income"].tolist() == ["<=50K", ">50K"]
    assert table["sex"].tolist() == ["male", "female"]
    # The held-out part of the publication writes its labels with a full stop.
    held_out = raw.assign(income=raw["income"] + ".")
    assert recipes.adult(held_out)["income"].tolist() == ["<=50K", ">50K"]
    with pytest.raises(DataError, match=r"unknown category '60K'") as caught:
        recipes.adult(raw.assign(income=["60K", ">50K"]))
    assert caught.value.rows == (0,)


def a_defendant(**cells: str) -> dict[str, str]:
    usual = {
        "id": "7",
        "sex": "Male",
        "age": "30",
        "race": "Caucasian",
        "decile_score": "3",
        "priors_count": "2",
        "days_b_screening_arrest": "-1",
        "c_jail_in": "2013-01-26 03:45:27",
        "c_jail_out": "2013-02-05 05:36:53",
        "c_charge_degree": "F",
        "is_recid": "0",
        "score_text": "Low",
        "two_year_recid": "0",
    }
    return usual | cells


def test_compas_keeps_whom_propublica_kept() -> None:
    left_out = [
        {"days_b_screening_arrest": "31"},
        {"days_b_screening_arrest": "", "c_jail_in": ""},
        {"is_recid": "-1"},
        {"c_charge_degree": "O"},
        {"score_text": "N/A"},
    ]
    people = [a_defendant(id=str(number), **cells) for number, cells in enumerate(left_out)]
    people.append(a_defendant(id="8", sex="Female", race="Asian", c_charge_degree="M"))
    people.append(a_defendant(id="9", days_b_screening_arrest="-30"))
    table = recipes.compas(pd.DataFrame(people))
    assert table["id"].tolist() == ["8", "9"]
    assert table["length_of_stay"].tolist() == [10, 10]
    assert table[["is_male", "is_caucasian", "charge_felony"]].to_numpy().tolist() == [
        [0, 0, 0],
        [1, 1, 1],
    ]


def test_compas_names_broken_rows_of_the_raw_table(schemas: Path) -> None:
    left_out = a_defendant(is_recid="-1", sex="?", c_jail_in="never")
    broken = a_defendant(id="2", sex="x", c_jail_out="soon")
    with pytest.raises(DataError, match="2 problems") as caught:
        recipes.compas(pd.DataFrame([left_out, broken]))
    assert caught.value.rows == (1,)
    # Past the recipe, rows are counted among those it kept, and the message says so.
    people = [a_defendant(id=str(n), age=str(20 + n), is_recid=str(-(n == 0))) for n in range(4)]
    people[3]["age"] = "-5"
    with pytest.raises(DataError, match="among the 3 of 4 rows kept") as caught:
        clean(pd.DataFrame(people), load_schema("compas", schemas))
    assert 2 in caught.value.rows


def test_compas_leaves_names_behind() -> None:
    identified = pd.DataFrame([a_defendant()])
    identified.insert(1, "name", "somebody")
    identified["dob"] = "1980-01-01"
    content = identified.to_csv(index=False)
    raw = raw_table("compas", [content.encode()])
    assert list(raw.columns) == list(COMPAS_COLUMNS)


def an_applicant(**cells: str) -> dict[str, str]:
    usual = dict.fromkeys(GMSC_COLUMNS, "0") | {"MonthlyIncome": "4000", "DebtRatio": "0.5"}
    return usual | {"age": "40"} | cells


def test_give_me_some_credit_settles_what_is_no_number() -> None:
    late = dict.fromkeys(GMSC_PAST_DUE, "98")
    people = [
        an_applicant(Id="1"),
        an_applicant(Id="2", MonthlyIncome="NA", DebtRatio="2700", NumberOfDependents=""),
        an_applicant(Id="3", RevolvingUtilizationOfUnsecuredLines="5708", **late),
        an_applicant(Id="4", MonthlyIncome="0", DebtRatio="900", age="24"),
    ]
    table = recipes.give_me_some_credit(pd.DataFrame(people)).set_index("Id")
    assert table["MonthlyIncome"].tolist() == [4000, 5400, 4000, 0]
    assert table["income_missing"].tolist() == [0, 1, 0, 0]
    # Without an income the published ratio is the payment itself: 2700 of 5400.
    assert table["DebtRatio"].tolist() == [0.5, 0.5, 0.5, 5.0]
    assert table["NumberOfDependents"].tolist() == [0, 0, 0, 0]
    assert table["RevolvingUtilizationOfUnsecuredLines"].tolist() == [0, 0, 2, 0]
    assert table["past_due_coded"].tolist() == [0, 0, 1, 0]
    assert (table[list(GMSC_PAST_DUE)] == 0).all(axis=None)
    assert table["age_band"].tolist() == ["25 to 61"] * 3 + ["under 25"]
    broken = pd.DataFrame([an_applicant(DebtRatio=""), an_applicant(MonthlyIncome="lots")])
    with pytest.raises(DataError, match="2 problems") as caught:
        recipes.give_me_some_credit(broken)
    assert caught.value.rows == (0, 1)


def test_give_me_some_credit_names_its_first_column() -> None:
    raw = raw_table("give-me-some-credit", [b",SeriousDlqin2yrs,age\r\n1,0,45\r\n"])
    assert list(raw.columns) == ["Id", "SeriousDlqin2yrs", "age"]


def test_loanapp_spells_out_its_groups() -> None:
    usual = dict.fromkeys(LOANAPP_COLUMNS, "0") | {"white": "1", "male": "1", "married": "0"}
    other = usual | {"white": "0", "hispan": "1", "male": "", "married": "1", "hrat": "17.5"}
    table = recipes.loanapp(pd.DataFrame([usual, other]))
    assert table["race"].tolist() == ["white", "hispanic"]
    assert table["sex"].tolist() == ["male", "not recorded"]
    assert table["marital_status"].tolist() == ["not married", "married"]
    assert set(table.columns) >= {*LOANAPP_RATIOS, *LOANAPP_FACTS}
    both = usual | {"black": "1", "male": "2"}
    with pytest.raises(DataError, match="2 problems") as caught:
        recipes.loanapp(pd.DataFrame([usual, both]))
    assert caught.value.rows == (1,)


def test_mnist_takes_any_digit() -> None:
    images = np.zeros((3, len(MNIST_COLUMNS)), dtype=np.uint8)
    images[:, -1] = [1, 9, 1]
    images[0, 28 * 4 + 5] = 200
    content = pd.DataFrame(images).to_csv(index=False, header=False).encode()
    table = recipes.mnist(raw_table("mnist-5k", [content]))
    assert table.loc[0, "pixel_4_5"] == 200
    assert table[[*PIXELS]].to_numpy().sum() == 200
    assert table["is_1"].tolist() == [1, 0, 1]
    assert table["is_9"].tolist() == [0, 1, 0]
    with pytest.raises(DataError, match="not one of 0 to 9"):
        recipes.mnist(table.assign(digit=10))


def test_fico_people_follow_the_published_shares() -> None:
    groups = "Score,Non- Hispanic white,Black,Hispanic,Asian\r\n"
    distribution = groups + "0,0,100,25,0\r\n50,50,100,50,0\r\n100,100,100,100,100\r\n"
    failing = groups + "0,100,100,100,100\r\n50,100,50,100,100\r\n100,0,0,0,0\r\n"
    people = raw_table("fico", [distribution.encode(), failing.encode()])
    again = raw_table("fico", [distribution.encode(), failing.encode()])
    pd.testing.assert_frame_equal(people, again)
    assert len(people) == FICO_PEOPLE
    assert people["race"].value_counts().tolist() == [FICO_PEOPLE // 4] * 4
    assert set(people.loc[people["race"] == "asian", "score"]) == {100}
    assert set(people.loc[people["race"] == "black", "score"]) == {0}
    # In these figures the outcome follows from the score.
    assert ((people["repaid"] == "yes") == (people["score"] == 100)).all()
    white = people.loc[people["race"] == "white", "score"]
    # Six standard deviations of a fair coin thrown 750 times.
    assert abs((white == 50).mean() - 0.5) < 6 * 0.5 / 750**0.5


@pytest.mark.parametrize("name", PUBLISHED)
def test_nobody_can_change_who_they_are_or_what_happened(name: str, schemas: Path) -> None:
    changes = {f.name: f.change for f in load_schema(name, schemas).features}
    fixed = ("age", "is_", "native", "married", "priors", "NumberOfTime", "chist", "pubrec", "mort")
    assert all(
        change == "immutable" for column, change in changes.items() if column.startswith(fixed)
    )
    # And yet something is left that a person can do.
    assert set(changes.values()) & {"up", "down", "both"}


def test_groups_are_kept_for_audits(schemas: Path) -> None:
    kept = {name: load_schema(name, schemas).sensitive for name in PUBLISHED}
    assert kept["adult"] == kept["compas"] == ("sex", "race")
    assert kept["fico"] == ("race",)
    assert kept["recid"] == ("black",)
    assert "race" in kept["loanapp"]
    scored = load_schema("loanapp", schemas).feature_names
    assert not {"black", "hispan", "white", "male", "married"} & set(scored)
