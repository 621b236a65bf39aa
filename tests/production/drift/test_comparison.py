"""Families of tests that share one level."""

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.production.drift import DriftTerms, PeopleTable, drift_report
from countermove.response import NoResponse

from .known_answers import deployed

TERMS = DriftTerms(permutations=199, bootstrap=50)


def sample(n, seed, shift=0.0, labels=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if labels else None
    return PeopleTable(X + shift * np.eye(5)[0], y)


def report(first, second, seed=0):
    return drift_report(first, second, deployed(), NoResponse(), TERMS, seed)


def test_p_values_of_columns_are_adjusted_for_their_number_as_holm_says():
    found = report(sample(300, 0), sample(300, 1, 0.2)).findings.against_reference
    p_values = [column.p_value for column in found.columns]
    least, adjusted = 0.0, {}
    for rank, place in enumerate(np.argsort(p_values)):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[found.columns[place].name] = least
    assert {column.name: column.adjusted for column in found.columns} == pytest.approx(adjusted)


def test_parts_of_the_level_add_up_to_it():
    for labelled in (True, False):
        levels = TERMS.levels(labelled)
        assert sum(levels.values()) == pytest.approx(TERMS.level)
        assert ("labels" in levels) is labelled


def test_p_value_and_alarm_say_the_same():
    for shift in (0.0, 0.15, 0.3, 1.0):
        found = report(sample(300, 0), sample(300, 1, shift)).findings.against_reference
        assert (found.p_value <= TERMS.level) == bool(found.alarms)
    assert found.moved
    assert found.differing == ("income", "deployed score")


def test_without_labels_nothing_is_said_about_them():
    found = report(sample(200, 0), sample(200, 1, labels=False)).findings.against_reference
    assert found.labels is None
    assert not found.relabelled


def test_the_same_seed_gives_the_same_report():
    first, second = (report(sample(200, 0), sample(200, 1), 7).to_json() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"level": 0.0}, "level"),
        ({"permutations": 99}, "at least 111"),
        ({"max_rows": 10}, "max_rows"),
        ({"resolution": 0.0}, "resolution"),
        ({"labels": "lost"}, "labels"),
    ],
)
def test_senseless_terms_are_refused(terms, words):
    with pytest.raises(ParameterError, match=words):
        DriftTerms(**terms)
