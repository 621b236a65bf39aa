from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.errors import ParameterError
from countermove.production.gates import (
    Case,
    CustomGate,
    FlipRate,
    GroupDisparity,
    Improvement,
    MinimumAccuracy,
    RecourseCertificate,
    TransferBound,
    check_gates,
)
from countermove.production.gates.base import HoldoutDecisions

N = 1000
LABELS = np.arange(N) % 2 == 0


def rule(wrong: int, first: int = 0) -> HoldoutDecisions:
    """A rule that errs on some people in a row, whatever these do."""
    approved = LABELS.copy()
    approved[first : first + wrong] ^= True
    return HoldoutDecisions(
        {"none": approved, "best": approved},
        {"none": approved == LABELS, "best": approved == LABELS},
    )


def test_a_gate_has_the_name_of_its_setting():
    from countermove.params.production import GatesParameters

    gates = GatesParameters().build()
    settings = [name for name in GatesParameters.model_fields if name != "custom"]
    assert [gate.name for gate in gates] == settings


def case(**changes: object) -> Case:
    usual = Case(
        challenger=rule(100),
        champion=rule(200),
        stated=["best"],
        groups=pd.DataFrame({"sex": np.where(np.arange(N) % 4 < 2, "f", "m")}),
        certificate={"value": 0.05, "level": 0.95, "reason": ""},
        champion_certificate={"value": 0.05, "level": 0.95, "reason": ""},
        without_recourse=(10, N),
        bounds=[{"claim": "worst_case_direct_upper", "forecast": 0.2}],
    )
    return replace(usual, **changes)


def test_the_least_accuracy_is_held_against_a_lower_bound():
    found = MinimumAccuracy(least=0.88).check(case())
    assert found.passed
    assert found.value is not None
    assert 0.88 < found.value < 0.9
    assert not MinimumAccuracy(least=0.89).check(case()).passed


def test_the_worst_stated_response_counts():
    both = HoldoutDecisions(
        {"best": LABELS, "smooth": ~LABELS},
        {"best": np.ones(N, bool), "smooth": np.zeros(N, bool)},
    )
    found = MinimumAccuracy().check(case(challenger=both, stated=["best", "smooth"]))
    assert not found.passed
    assert "'smooth'" in found.words


@pytest.mark.parametrize(
    ("changes", "passed", "words"),
    [
        ({}, True, "is promised, and 10 of 1000"),
        ({"certificate": {"value": None, "reason": "too few rows"}}, False, "too few rows"),
        ({"certificate": {"value": 0.06, "reason": ""}}, False, "0.05 is required"),
        ({"without_recourse": (80, N)}, False, "but 80 of 1000"),
        ({"champion_certificate": None}, True, ""),
    ],
)
def test_the_promise_must_stand(changes, passed, words):
    found = RecourseCertificate().check(case(**changes))
    assert found.passed is passed
    assert words in found.words


def test_a_promise_is_held_against_a_stated_limit_first():
    assert not RecourseCertificate(largest_miss_rate=0.01).check(case()).passed


def test_the_transfer_bound_is_the_certificate_of_that_name():
    assert TransferBound(limit=0.2).check(case()).passed
    assert not TransferBound(limit=0.19).check(case()).passed
    missing = TransferBound(bound="direct_upper").check(case())
    assert missing.passed is False
    assert "no bound 'direct_upper'" in missing.words


def test_improvement_is_an_exact_paired_test():
    from scipy.stats import binomtest

    # The challenger wins 100 people and loses none.
    found = Improvement().check(case())
    assert found.passed
    won = case(challenger=rule(40, first=0), champion=rule(60, first=20))
    found = Improvement().check(won)
    assert found.value == pytest.approx(binomtest(40, 60, alternative="greater").pvalue)


def test_equal_rules_are_no_improvement():
    found = Improvement().check(case(challenger=rule(100), champion=rule(100)))
    assert found.passed is False
    assert found.value == 1.0


def test_repeated_looks_share_the_level():
    gate = Improvement(over="all")
    levels = [gate.check(case(looks=k)).limit for k in range(2000)]
    assert sum(levels) <= 0.05
    assert sum(levels) == pytest.approx(0.05, rel=1e-3)


def test_flips_count_people_whose_decision_changes():
    found = FlipRate(largest=0.1).check(case(challenger=rule(100), champion=rule(0)))
    assert found.passed
    assert found.value == 0.1
    assert not FlipRate(largest=0.09).check(case(challenger=rule(100), champion=rule(0))).passed


def test_the_gap_between_groups_may_not_grow():
    women = np.arange(N) % 4 < 2
    approved = LABELS & women
    unfair = HoldoutDecisions({"none": approved, "best": approved}, {"best": approved == LABELS})
    found = GroupDisparity().check(case(challenger=unfair))
    assert not found.passed
    assert found.value == pytest.approx(0.5)
    assert "'sex'" in found.words
    assert GroupDisparity(tolerance=0.6).check(case(challenger=unfair)).passed
    assert not GroupDisparity(tolerance=0.6, largest=0.4).check(case(challenger=unfair)).passed


def test_small_groups_do_not_count():
    few = pd.DataFrame({"sex": np.where(np.arange(N) < 20, "f", "m")})
    assert GroupDisparity().check(case(groups=few)).passed is None


@pytest.mark.parametrize("gate", [Improvement(), FlipRate(), GroupDisparity()])
def test_a_cold_start_has_nothing_to_compare_with(gate):
    found = gate.check(case(champion=None))
    assert found.passed is None
    assert "no champion" in found.words


def test_all_gates_are_asked():
    found = check_gates([MinimumAccuracy(least=1.0), FlipRate(largest=0.0)], case())
    assert [result.passed for result in found] == [False, False]


def test_a_users_own_gate_is_called_by_its_path(monkeypatch, tmp_path):
    (tmp_path / "my_gates.py").write_text(
        "from countermove.production.gates import GateResult\n"
        "def enough(case, least):\n"
        "    n = len(case.groups)\n"
        "    return GateResult('enough', n >= least, n, least, 'people')\n"
        "def odd(case):\n"
        "    return True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert CustomGate("my_gates:enough", {"least": 10}).check(case()).passed
    assert not CustomGate("my_gates.enough", {"least": N + 1}).check(case()).passed
    with pytest.raises(ParameterError, match="returned bool"):
        CustomGate("my_gates:odd").check(case())
    with pytest.raises(ParameterError, match="no function"):
        CustomGate("my_gates:missing").check(case())
