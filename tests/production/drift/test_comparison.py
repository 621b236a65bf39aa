"""Families of tests that share one level."""

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.production.drift._comparison import SCORE, compare, holm
from countermove.production.drift._samples import scored_sample
from countermove.production.drift.known_answers import NAMES, deployed
from countermove.production.drift.terms import DriftTerms

TERMS = DriftTerms(permutations=199)


def sample(n, seed, shift=0.0, labels=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0) if labels else None
    return scored_sample(deployed().score, X + shift * np.eye(5)[0], y)


def test_holm_by_hand():
    adjusted = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert adjusted.tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_parts_of_the_level_add_up_to_it():
    for labelled in (True, False):
        levels = TERMS.levels(labelled)
        assert sum(levels.values()) == pytest.approx(TERMS.level)
        assert ("labels" in levels) is labelled


def test_p_value_and_alarm_say_the_same():
    for shift in (0.0, 0.15, 0.3, 1.0):
        found = compare("reference", sample(300, 0), sample(300, 1, shift), NAMES, TERMS, 0)
        assert (found.p_value <= TERMS.level) == bool(found.alarms)
    assert found.moved
    assert found.differing == ("income", SCORE)


def test_without_labels_nothing_is_said_about_them():
    found = compare("reference", sample(200, 0), sample(200, 1, labels=False), NAMES, TERMS, 0)
    assert found.labels is None
    assert not found.relabelled


def test_the_same_seed_gives_the_same_report():
    first, second = (
        compare("reference", sample(200, 0), sample(200, 1), NAMES, TERMS, 7).to_json()
        for _ in range(2)
    )
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
