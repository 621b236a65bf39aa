"""Labels given the score: what counts as a change, and what does not."""

import numpy as np
import pytest

from countermove.production.drift.two_samples import label_test


def people(rng, n, centre=0.0, shift=0.0, slope=1.0):
    score = rng.normal(centre, 1.5, size=n)
    y = np.where(rng.logistic(size=n) < slope * score + shift, 1.0, -1.0)
    return score, y


def run(expected, observed):
    return label_test(expected, observed, 1e-3, 499, 0.05, np.random.default_rng(9))


def test_other_people_with_the_same_law_are_no_change():
    rng = np.random.default_rng(0)
    assert run(people(rng, 3_000), people(rng, 3_000, centre=1.0)).p_value > 0.05


@pytest.mark.parametrize(
    ("changed", "side"), [({"shift": 0.6}, "intercept"), ({"slope": 0.4}, "slope")]
)
def test_a_changed_law_is_found(changed, side):
    rng = np.random.default_rng(1)
    found = run(people(rng, 3_000), people(rng, 3_000, **changed))
    assert found.p_value == 1 / 500
    assert abs(getattr(found, side)) > 4.0


def test_errors_are_counted_by_the_deployed_rule():
    score = np.repeat([-1.0, 1.0], 50)
    right = np.where(score >= 0.0, 1.0, -1.0)
    wrong = right.copy()
    wrong[:10] *= -1.0
    found = run((score, right), (score, wrong))
    assert found.error_expected[0] == 0.0
    low, high = found.error_observed[1:]
    assert low < found.error_observed[0] == 0.1 < high


def test_labels_yet_to_come_are_left_out():
    rng = np.random.default_rng(2)
    score, y = people(rng, 500)
    late = y.copy()
    late[:490] = np.nan
    assert run((score, y), (score, late)) is None
    late[:400] = y[:400]
    assert run((score, y), (score, late)).n == 410
