"""The bound on the error after response holds as often as it says."""

import numpy as np
import pytest
import torch
from scipy.stats import binom

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.response import NoResponse
from countermove.scores import LinearScore
from countermove.transfer import TransferTerms, error_after_response_bound, transfer_report


def test_bound_inverts_the_binomial_tail():
    """At the bound itself, so few errors have exactly the failure probability."""
    right = np.arange(200) >= 17
    certificate = error_after_response_bound(right, "best", 0.05)
    assert binom.cdf(17, 200, certificate.value) == pytest.approx(0.05)
    assert certificate.level == 0.95
    assert certificate.n == 200


def test_all_wrong_bounds_nothing():
    assert error_after_response_bound(np.zeros(5, dtype=bool), "best").value == 1.0


def test_no_rows_and_bad_levels_are_refused():
    with pytest.raises(NotEnoughRowsError):
        error_after_response_bound(np.zeros(0, dtype=bool), "best")
    with pytest.raises(ParameterError):
        error_after_response_bound(np.ones(5, dtype=bool), "best", 1.0)


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("error", [0.02, 0.3])
def test_bound_fails_no_more_often_than_it_says(error):
    rng, trials = np.random.default_rng(1), 4000
    broken = sum(
        error_after_response_bound(rng.random(150) >= error, "best", 0.1).value < error
        for _ in range(trials)
    )
    assert broken <= binom.ppf(0.999, trials, 0.1)


def households(rng, error, correlation, n=200, size=5):
    """Return who is judged wrongly, and the household: its people err together or by themselves."""
    house = np.repeat(np.arange(n), size)
    alike = rng.random(n)[house] < correlation
    return np.where(alike, (rng.random(n) < error)[house], rng.random(len(house)) < error), house


@pytest.mark.parametrize("correlation", [0.5, 0.95])
def test_bounds_on_the_error_of_households_fail_no_more_often_than_they_say(correlation):
    """Of 300 at 5 % fewer than 25 fail; counted by rows 17 % and 22 % do."""
    rng, broken, by_rows = np.random.default_rng(2), 0, 0
    for _ in range(300):
        wrong, house = households(rng, 0.2, correlation)
        found = error_after_response_bound(~wrong, "best", 0.05, house)
        broken += found.value < 0.2
        by_rows += error_after_response_bound(~wrong, "best", 0.05).value < 0.2
    assert broken < 25
    assert by_rows > 35
    assert "clusters (200) are independent draws" in found.assumptions[0].statement
    assert "more than 5 rows" in found.assumptions[0].statement


@pytest.mark.validity
@pytest.mark.parametrize("error", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.5, 0.95])
def test_bounds_on_the_error_of_households_hold_at_every_correlation(correlation, error):
    rng, trials = np.random.default_rng(3), 1500
    broken = 0
    for _ in range(trials):
        wrong, house = households(rng, error, correlation)
        broken += error_after_response_bound(~wrong, "best", 0.05, house).value < error
    assert broken <= binom.ppf(0.999, trials, 0.05)


def test_theorems_that_count_rows_are_withheld_in_households():
    """Errors are bet on household by household; what has no such version has no level."""
    rng = np.random.default_rng(4)
    wrong, house = households(rng, 0.1, 0.5)
    score = LinearScore(1)
    with torch.no_grad():
        score.weight.fill_(1.0)
    X = rng.normal(size=(1000, 1))
    y = np.where((X[:, 0] > 0.0) ^ wrong, 1.0, -1.0)
    given = {"rule": score}, (X, y), (X, y), {"none": NoResponse()}
    terms = TransferTerms(labels=("kept",))
    alone = transfer_report(*given, terms=terms).to_json()
    report = transfer_report(*given, terms=terms, clusters=house).to_json()
    claims = [one for one in report["bounds"] if one["kind"] == "certificate"]
    valued = {one["name"] for one in claims if one["value"] is not None}
    assert valued == {f"{case}direct_{end}" for case in ("", "worst_case_") for end in ENDS}
    assert all(one["level"] is None for one in claims if one["value"] is None)
    assert any("rows of one cluster belong together" in one["reason"] for one in claims)
    assert all("clusters (200)" in one["assumptions"][0]["statement"] for one in claims)
    after, before = (
        r["verdict"]["rules"]["rule"]["at_most_after"]["value"] for r in (report, alone)
    )
    assert after > before


ENDS = ("upper", "lower")
