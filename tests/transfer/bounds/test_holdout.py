"""The bound on the error after response holds as often as it says."""

import numpy as np
import pytest
from scipy.stats import binom

from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.transfer import error_after_response_bound


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
