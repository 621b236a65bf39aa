"""Advice once given is honoured: who followed it is approved, also by a stricter champion."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.production.tiny_champion import DAYS, PEOPLE, SCHEMA, model, promote

from countermove.data.cleaning import clean
from countermove.data.partitions import raw_partitions
from countermove.data.rows import feature_matrix
from countermove.production.gates import OpenAdvice
from countermove.production.open_advice import AdviceRegister, Honoured
from countermove.production.open_advice.challenge import broken_advice
from countermove.production.open_advice.honour import GivenAdvice
from countermove.production.open_advice.register import AdvisedMove
from countermove.recourse.advise import AdviceTerms, arrow_advice
from countermove.scores.base import values

STRICTER = 1.5
"""By how much the next champion's intercept is lower: it refuses all who only just follow."""


def coded(people):
    """Return people in the columns of a rule, in original units."""
    labels = np.resize(["yes", "no"], len(people))
    return feature_matrix(clean(people.assign(repaid=labels), SCHEMA), SCHEMA)


def follow(office, extra=0.0):
    """Return the advised applicants after they did what they were told, income ``extra`` more."""
    scored = office.score("may", **DAYS).people().read()
    given = scored[scored["status"] == "FOUND"].set_index("row_id")
    rows = PEOPLE[PEOPLE["person"].isin(given.index)].copy()
    for column in ("income", "savings", "open_loans"):
        rows[column] = rows[column] + given.loc[rows["person"], f"change:{column}"].to_numpy()
    rows["open_loans"] = rows["open_loans"].round().astype(int)
    rows["income"] += extra
    simple = given.filter(like="change:").drop(
        columns=["change:income", "change:savings", "change:open_loans"]
    )
    return rows[rows["person"].isin(given.index[(simple == 0.0).all(axis=1)])]


def test_followed_advice_is_approved_by_a_stricter_champion(office):
    """With the reason in the decision; the same people without the register are refused."""
    first = office.score("may", **DAYS).manifest["version"]
    promote(office.registry, STRICTER)
    rows = follow(office)
    assert len(rows) > 5
    for name in ("june", "plain"):
        rows.to_csv(office.batches / f"{name}.csv", index=False)
    kept = office.score("june", **DAYS).people().read()
    assert (kept["decision"] == 1).all()
    assert set(kept["honoured"]) == {first}
    assert kept["words"].str.contains(f"advice of version {first}.*was followed").all()
    assert (kept["status"] == "NOT_NEEDED").all()
    assert (kept["cost"] == 0.0).all()
    plain = office.score("plain").people().read()
    assert (plain["decision"] == -1).any()
    assert plain["honoured"].isna().all()


def test_reasons_and_other_ways_of_the_refused_are_gone():
    """Whoever is approved for following advice has no reasons against them left."""
    rule, names = model(), tuple(SCHEMA.feature_names)
    X = coded(PEOPLE)
    good = X[values(rule.rule, rule.standardiser.transform(X)) >= 0.0][:2]
    table = pd.DataFrame(
        {
            "row_id": ["p", "q"], "decision": -1, "probability": 0.4, "status": "FOUND",
            "probability_after": 0.6, "cost": 1.0, "survival": 0.9, "lasting": True,
            "uncertain_weight": True, "reasons": pd.Series(["Income.", "Income."], dtype="str"),
            "reason_codes": [["income"], ["income"]],
            "alternative_1": pd.Series(["Save.", "Save."], dtype="str"),
            "words": pd.Series(["Earn.", "Earn."], dtype="str"),
        }
    )  # fmt: skip
    given = GivenAdvice("v", "2026-01-01", {})
    followed = AdviceTerms().phrases["followed"]
    decided = Honoured({"p": (given,)}, {"v": rule}).applied(table, good, names, followed)
    assert decided["decision"].tolist() == [1, -1]
    said = "Approved: the advice of version v, given on 2026-01-01, was followed."
    assert decided["words"][0] == said
    said = arrow_advice(decided).to_pylist()
    assert [row["reason_codes"] for row in said] == [[], ["income"]]
    assert [row["reasons"] for row in said] == [None, "Income."]
    assert [row["alternative_1"] for row in said] == [None, "Save."]


def test_half_of_the_way_is_not_enough(office):
    """Whoever stopped short of one advised column is judged as anybody else."""
    promote(office.registry, STRICTER)
    rows = follow(office, extra=-1.0)
    rows.to_csv(office.batches / "june.csv", index=False)
    kept = office.score("june", **DAYS).people().read().set_index("row_id")
    assert kept["honoured"].isna().all()


def test_the_rule_of_the_time_must_still_approve():
    """What was advised is done, but another column fell so far that the old rule refuses too."""
    rule, names = model(), tuple(SCHEMA.feature_names)
    X = coded(PEOPLE)
    approved = X[values(rule.rule, rule.standardiser.transform(X)) >= 0.0][0]
    income = names.index("income")
    given = GivenAdvice("v", "2026-01-01", {"income": AdvisedMove(1.0, approved[income] - 1.0)})
    honoured = Honoured({"p": (given,)}, {"v": rule})
    assert honoured.fulfilled("p", approved, names) == given
    worse = approved.copy()
    worse[names.index("savings")] = -1e4
    assert honoured.fulfilled("p", worse, names) is None
    assert Honoured({"p": (given,)}, {}).fulfilled("p", approved, names) is None


def test_reached_means_the_advised_direction():
    """More of what should rise, less of what should fall; rounding does not count."""
    given = GivenAdvice(
        "v", "2026-01-01", {"income": AdvisedMove(1.0, 40.0), "loans": AdvisedMove(-1.0, 1.0)}
    )
    assert given.reached({"income": 40.0 - 1e-7, "loans": 1.0})
    assert given.reached({"income": 50.0, "loans": 0.0})
    assert not given.reached({"income": 39.9, "loans": 0.0})
    assert not given.reached({"income": 50.0, "loans": 2.0})
    assert not given.reached({"income": 50.0})


def test_a_run_twice_gives_the_same_batch_and_the_same_register(office):
    """Nothing is decided twice, and what is open is what was published."""
    register = AdviceRegister(office.rules().registry)
    before = register.read("may")
    assert office.score("may", **DAYS).already
    assert register.read("may") == before
    found = office.score("may", **DAYS).people().read()
    assert len(before.people) == (found["status"] == "FOUND").sum()


def test_a_challenger_is_counted_by_what_it_would_break(office):
    """The champion itself breaks nothing; one that refuses everybody breaks all."""
    registry = office.rules().registry

    def applicants(name, rows_per_part):
        return raw_partitions(name, office.batches, rows_per_part)

    same = broken_advice(registry, applicants, SCHEMA, model())
    assert same["open"] == same["judged"] > 5
    assert same["broken"] == 0
    harder = broken_advice(registry, applicants, SCHEMA, model(STRICTER))
    assert harder["broken"] == harder["open"]
    (office.batches / "may.csv").unlink()
    gone = broken_advice(registry, applicants, SCHEMA, model(STRICTER))
    assert (gone["judged"], gone["broken"], gone["open"]) == (0, 0, same["open"])


def test_columns_of_the_register_are_in_original_units(office):
    """The value to reach is what the person has plus what was advised."""
    before = dict(zip(PEOPLE["person"], coded(PEOPLE), strict=True))
    found = office.score("may", **DAYS).people().read().set_index("row_id")
    register = AdviceRegister(office.rules().registry)
    names = list(SCHEMA.feature_names)
    for person, ((batch, hashed),) in register.of_people(PEOPLE["person"]).items():
        for column, move in batch.people[hashed].items():
            change = found.loc[person, f"change:{column}"]
            assert np.sign(change) == move.way
            assert move.value == pytest.approx(before[person][names.index(column)] + change)


@pytest.mark.parametrize(
    ("counts", "passed"),
    [
        ({"open": 100, "judged": 100, "broken": 10}, True),
        ({"open": 100, "judged": 100, "broken": 11}, False),
        ({"open": 100, "judged": 50, "broken": 6}, False),
        ({"open": 100, "judged": 0, "broken": 0}, None),
        ({"open": 0, "judged": 0, "broken": 0}, None),
        (None, None),
    ],
)
def test_the_gate_refuses_above_its_share(counts, passed):
    """Of the advice that could be judged; without any it does not apply."""
    from types import SimpleNamespace

    result = OpenAdvice(largest_share=0.1).check(SimpleNamespace(open_advice=counts))
    assert result.passed is passed
    assert result.words
