"""Drift alarms: no more often than the level says where nothing is unexpected; and power."""

import numpy as np
import pytest
from tests.production.drift.known_answers import deployed, known_case

from countermove.production.drift import DriftTerms, PeopleTable, drift_report, unexpected

LEVEL = 0.1
TERMS = DriftTerms(level=LEVEL, permutations=59)
NULLS = ("nobody answers, none expected", "people answer as modelled")


def ceiling(runs, level=LEVEL):
    return level + 3.0 * np.sqrt(level * (1.0 - level) / runs)


def alarms(name, n, m, runs, terms=TERMS, change=lambda case: case):
    count = 0
    for seed in range(runs):
        case = change(known_case(name, n, m, seed))
        tables = case.reference, case.observed
        count += unexpected(*tables, case.model, case.response, terms, seed)
    return count / runs


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("name", NULLS)
def test_false_alarms_in_small_tables(name):
    assert alarms(name, 120, 80, 100) <= ceiling(100)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize(("n", "m"), [(300, 300), (1_500, 300)])
def test_false_alarms(name, n, m):
    assert alarms(name, n, m, 600) <= ceiling(600)


@pytest.mark.validity
@pytest.mark.slow
def test_false_alarms_where_the_same_people_come_again():
    """All of them are in both tables and answered as modelled: each counts once."""
    count, runs, model = 0, 400, deployed()
    for seed in range(runs):
        case = known_case("people answer as modelled", 400, 60, seed)
        ids = np.arange(400)
        after = case.response.respond(model.score, case.reference.X).x_new
        tables = (
            PeopleTable(case.reference.X, case.reference.y, ids),
            PeopleTable(after, case.reference.y, ids),
        )
        count += unexpected(*tables, model, case.response, TERMS, seed)
    assert count / runs <= ceiling(runs)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize("name", ["a move costs half as much", "nobody answers"])
def test_what_no_answer_changes_holds_its_level_however_people_answer(name):
    """Untouched columns and people without a reason to move spend half of the level each."""
    count, looked, runs = 0, 0, 400
    terms = DriftTerms(level=LEVEL, permutations=59, bootstrap=50)
    for seed in range(runs):
        case = known_case(name, 400, 400, seed)
        tables = case.reference, case.observed
        found = drift_report(*tables, case.model, case.response, terms, seed).findings
        looked += bool(found.untouched)
        count += bool(found.natural)
    assert looked > 0.5 * runs
    assert count / runs <= ceiling(runs)


@pytest.mark.validity
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("a move costs half as much", 0.95),
        ("a move costs twice as much", 0.95),
        ("nobody answers", 0.99),
        ("savings grow by 0.2", 0.9),
        ("as modelled, and savings grow by 0.2", 0.9),
        ("as modelled, and labels shift", 0.9),
        ("people climb a smoothed step", 0.9),
    ],
)
def test_power_with_two_thousand_people(name, least):
    terms = DriftTerms(permutations=199)
    assert alarms(name, 2_000, 2_000, 50, terms) >= least
