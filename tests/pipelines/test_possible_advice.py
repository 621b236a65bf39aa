"""No piece of advice in a run's files is about somebody who cannot exist.

Written from the tables' definitions, without the package: advice joined to the raw table.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

MONTHS = ["PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"]


def advised(project, dataset):
    """Return the advised people as they are and as they would be, in original units."""
    data = project.path / "data"
    advice = pd.read_parquet(data / "07_model_output" / dataset / "advice.parquet")
    advice = advice[advice["status"].isin(["FOUND", "BEYOND_REACH"])].set_index("row_id")
    typed = pd.read_parquet(data / "02_intermediate" / dataset / "typed.parquet")
    before = typed.set_index("row_id").loc[advice.index]
    after = before.copy()
    for column in before.columns:
        if f"change:{column}" in advice and pd.api.types.is_numeric_dtype(before[column]):
            after[column] = before[column] + advice[f"change:{column}"]
    return before, after


@pytest.mark.slow
def test_everybody_advised_on_credit_can_exist(on_credit):
    before, after = advised(on_credit, "credit")
    assert len(after) > 500
    bill, largest = after["MostRecentBillAmount"], after["MaxBillAmountOverLast6Months"]
    paid, most = after["MostRecentPaymentAmount"], after["MaxPaymentAmountOverLast6Months"]
    zero = after["MonthsWithZeroBalanceOverLast6Months"]
    low = after["MonthsWithLowSpendingOverLast6Months"]
    assert (bill <= largest).all()
    assert (paid <= most).all()
    assert (low + after["MonthsWithHighSpendingOverLast6Months"] <= 6).all()
    assert ((zero > 0) | ((paid <= bill) & (most <= largest))).all()
    assert ((zero < 6) | ((bill <= paid) & (largest <= most))).all()
    assert ((largest > 0) | (low == 6)).all()
    for column in (bill, largest, paid, most):
        assert (column % 10 == 0).all()
    # The history is the person's own after 0 to 6 months paid on time.
    months = np.maximum(before[[f"window:{month}" for month in MONTHS]].to_numpy(), 0)
    own = np.zeros(len(after), bool)
    for t in range(7):
        rolled = np.hstack([np.zeros((len(after), t)), months[:, : 6 - t]])
        late = rolled > 0
        spells = (late & ~np.hstack([np.zeros((len(late), 1), bool), late[:, :-1]])).sum(axis=1)
        own |= (
            (after["TotalMonthsOverdue"] == rolled.sum(axis=1))
            & (after["TotalOverdueCounts"] == spells)
            & (after["HistoryOfOverduePayments"] == late.any(axis=1))
        )
    assert own.all()
    audit = on_credit.path / "data" / "08_reporting" / "credit" / "recourse_audit.json"
    assert json.loads(audit.read_text())["recourse"]["broken_claims"] == []


@pytest.mark.slow
def test_everybody_advised_on_german_can_exist(project):
    outcome = project.run("--pipeline=serm", "--params", "dataset=german")
    assert outcome.returncode == 0, outcome.stderr
    before, after = advised(project, "german")
    assert len(after) > 10
    rows = project.path / "data" / "05_model_input" / "german" / "train.parquet"
    ids = pd.read_parquet(rows, columns=["row_id"])["row_id"]
    typed = pd.read_parquet(project.path / "data" / "02_intermediate" / "german" / "typed.parquet")
    train = typed.set_index("row_id").loc[ids]
    for column in ("duration_months", "credit_amount"):
        high = train[column].quantile(0.99, interpolation="higher")
        low = train[column].quantile(0.01, interpolation="lower")
        assert (after[column] <= np.maximum(high, before[column])).all()
        assert (after[column] >= np.minimum(low, before[column])).all()
