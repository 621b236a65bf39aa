"""All thresholds by one sort, and differences without winner's curse."""

import numpy as np
import pytest

from countermove.errors import DataError, ParameterError
from countermove.transfer.optimal import (
    best_deployed,
    difference,
    joint_sample,
    suboptimality,
    threshold_errors,
)
from countermove.transfer.sample import Pair, Sample


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("weighted", [False, True])
def test_one_sort_agrees_with_judging_every_threshold(rng, weighted):
    score = rng.integers(-5, 6, 200).astype(float)  # many ties
    label = np.where(rng.random(200) < 0.4, 1.0, -1.0)
    weight = rng.random(200) if weighted else None
    sample = Sample(score, label, weight=weight)
    found = threshold_errors(sample)
    assert len(found.thresholds) == 12
    assert np.allclose(found.errors, [sample.error(t) for t in found.thresholds])


def test_ties_go_to_the_rule_that_is_there():
    sample = Sample(np.array([-2.0, -1.0, 0.0, 3.0]), np.array([-1.0, -1.0, 1.0, 1.0]))
    assert threshold_errors(sample).best() == (0.0, 0.0)
    alike = Sample(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([1.0, -1.0, 1.0, -1.0]))
    assert threshold_errors(alike).best(near=0.9)[0] == 1.0


def test_joint_error_is_twice_the_error_of_both_as_one(rng):
    one = Sample(rng.normal(size=30), np.where(rng.random(30) < 0.5, 1.0, -1.0))
    other = Sample(rng.normal(size=70), np.where(rng.random(70) < 0.5, 1.0, -1.0))
    both = joint_sample(one, other)
    for t in (-0.5, 0.0, 0.7):
        assert 2 * both.error(t) == pytest.approx(one.error(t) + other.error(t))


def test_a_difference_that_chance_explains_is_called_none(rng):
    first, second = rng.random(400) < 0.3, rng.random(400) < 0.3
    found = difference(first, second, 0.05)
    assert not found.detectable
    assert "no detectable difference" in found.words
    clear = difference(np.ones(50), np.zeros(50), 0.05)
    assert clear.detectable
    assert clear.words.startswith("1.000")
    with pytest.raises(DataError, match="same people"):
        difference(np.ones(3), np.ones(4), 0.05)


def test_expected_mistakes_are_compared_by_their_variance(rng):
    chance = rng.random(2000)
    found = difference(chance, np.clip(chance - 0.1, 0, 1), 0.05)
    assert found.low < np.mean(chance - np.clip(chance - 0.1, 0, 1)) < found.high
    assert found.detectable


def fair_scores(rng, n):
    """P(Y | s) = s: accepting iff s > 1/2 is best before and after any move that keeps it."""
    before = rng.random(n)
    luck = rng.random(n)

    def deploy(threshold):
        after = np.clip(before * np.where(before >= threshold, 1.01, 0.99), 0, 1)
        samples = [Sample(s, np.where(luck < s, 1.0, -1.0)) for s in (before, after)]
        return Pair(samples[0], samples[1], "follow", paired=True)

    return deploy


def test_the_true_difference_zero_is_reported_as_none(rng):
    """The published FICO gap of .011 is the least of 100 errors on the rows it was chosen on."""
    grid = np.linspace(0.3, 0.7, 41)
    found = suboptimality(fair_scores(rng, 3000), fair_scores(rng, 3000), grid)
    assert not found.loss.detectable
    assert abs(found.loss.value) < 0.02
    assert "no detectable difference" in found.loss.words


@pytest.mark.validity
@pytest.mark.quick_validity
def test_judging_on_other_rows_removes_the_winners_curse(rng):
    """On the rows it was chosen on, the best of 21 thresholds always looks better."""
    grid, cursed, judged, false = np.linspace(0.3, 0.7, 21), [], [], 0
    for _ in range(150):
        choose, judge = fair_scores(rng, 300), fair_scores(rng, 300)
        best, pair = best_deployed(choose, grid)
        cursed.append(choose(0.5).induced.error(0.5) - pair.induced.error(best))
        found = suboptimality(choose, judge, grid, 0.1)
        judged.append(found.loss.value)
        false += found.loss.low > 0
    assert np.mean(cursed) > 0.01
    assert np.mean(judged) < 0.25 * np.mean(cursed)
    assert false <= 150 * 0.1


def test_no_thresholds_no_choice():
    with pytest.raises(ParameterError, match="at least one"):
        best_deployed(lambda t: None, [])


@pytest.mark.validity
@pytest.mark.quick_validity
@pytest.mark.parametrize("chances", [(0.02, 0.02), (0.3, 0.15)])
def test_intervals_of_a_difference_cover_it(rng, chances):
    """One rule alone wrong with the first chance, the other alone with the second."""
    first, second = chances
    draws, level, missed = 1000, 0.1, 0
    for kind in rng.random((draws, 150)):
        found = difference(kind < first, kind > 1 - second, level)
        missed += not found.low <= first - second <= found.high
    assert missed <= draws * level + 3 * np.sqrt(draws * level * (1 - level))
