"""What no drift explains is named; what chance brings is not."""

import numpy as np
import pytest
import torch

from countermove.data.standardise import Standardiser
from countermove.production.drift import DriftTerms, PeopleTable, drift_report
from countermove.response import NoResponse
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

TERMS = DriftTerms(permutations=111, bootstrap=50)


def model():
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.fill_(1.0)
    return PublishedModel(score, Standardiser(np.zeros(2), np.ones(2), ("a", "b")), "")


def people(n, seed):
    return np.random.default_rng(seed).normal(size=(n, 2))


def anomalies(old, new):
    tables = PeopleTable(old), PeopleTable(new)
    report = drift_report(*tables, model(), NoResponse(), TERMS, 0)
    assert (report.recommendation == "investigate") == bool(report.findings.oddities)
    return report.findings.oddities


def test_a_plain_shift_is_no_oddity():
    assert anomalies(people(500, 0), people(500, 1) + np.array([0.5, 0.0])) == ()


@pytest.mark.parametrize(
    ("change", "kind"), [([50.0, 1.0], "range"), ([-50.0, 1.0], "range"), ([0.0, 1.0], "constant")]
)
def test_units_and_frozen_columns_are_named(change, kind):
    found = anomalies(np.abs(people(500, 0)), np.abs(people(500, 1)) * change)
    assert [(item.column, item.kind) for item in found] == [("a", kind)]


def test_a_rare_yes_that_does_not_occur_is_chance():
    """One in a hundred says yes: that none of fifty does is nothing to name."""
    rng = np.random.default_rng(0)
    old = np.column_stack([rng.random(500) < 0.01, rng.normal(size=500)]).astype(float)
    new = np.column_stack([np.zeros(50), rng.normal(size=50)])
    assert anomalies(old, new) == ()


def test_missing_values_are_named_where_they_are_new():
    old, new = people(400, 0), people(400, 1)
    new[:2, 0] = np.nan
    assert anomalies(old, new) == ()
    new[:40, 0] = np.nan
    (found,) = anomalies(old, new)
    assert (found.column, found.kind, found.share) == ("a", "missing", 0.1)
    old[:40, 0] = np.nan
    assert anomalies(old, new) == ()
