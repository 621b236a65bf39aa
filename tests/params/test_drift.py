"""Parameters of the drift report."""

import pytest
from pydantic import ValidationError

from countermove.params.production import DriftParameters
from countermove.production.drift import DriftTerms


def test_defaults_are_those_of_the_terms():
    assert DriftParameters().build() == DriftTerms()


def test_given_values_arrive():
    terms = DriftParameters(level=0.1, permutations=499, labels="follow").build()
    assert (terms.level, terms.permutations, terms.labels) == (0.1, 499, "follow")


@pytest.mark.parametrize("wrong", [{"level": 0.6}, {"labels": "lost"}, {"levels": 0.05}])
def test_senseless_and_unknown_values_are_refused(wrong):
    with pytest.raises(ValidationError):
        DriftParameters(**wrong)
