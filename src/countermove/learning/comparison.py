"""One cell of a published comparison: every rule on one split, under one population.

The papers' figures are loops over `compare`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.learning._populations import JudgedMembers, population
from countermove.learning.baselines import bias_search, shifted_blind
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.evaluation import worst_accuracy
from countermove.people import ActionSet, Cost
from countermove.response import BestResponse
from countermove.response.base import NoResponse

Labelled = tuple[Floats, Floats]
AS_GIVEN = {"standardise": False}
"""Published protocols say themselves in which units people move."""


@dataclass(frozen=True)
class Split:
    """Three parts of a table, each features (n, d) and labels in {-1, +1}."""

    train: Labelled
    validation: Labelled
    test: Labelled

    @property
    def known(self) -> Labelled:
        """Training and validation rows together: what a rule may be tuned on."""
        X = np.concatenate([self.train[0], self.validation[0]])
        return X, np.concatenate([self.train[1], self.validation[1]])


@dataclass(frozen=True)
class Comparison:
    """Test accuracies; all but the benchmark after response, of the worst member."""

    benchmark: float  # the blind rule while nobody moves
    blind: float
    shifted_blind: float  # threshold raised by what people can gain (best responders, if affine)
    bias_search: float  # the blind direction with the best intercept for the population
    strategic: float

    def to_json(self) -> dict[str, float]:
        """Return the accuracies by name."""
        return asdict(self)


def train_blind(split: Split, **settings: Any) -> StrategicClassifier:
    """Train as if nobody moved; its accuracy on the test rows is the benchmark."""
    blind = StrategicClassifier(**(AS_GIVEN | settings | {"response": "none"}))
    return blind.fit(*split.train, validation=split.validation)


def compare(
    split: Split,
    response: Any,
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    blind: StrategicClassifier | None = None,
    **settings: Any,
) -> Comparison:
    """Train for a population and measure the rule beside the baselines."""
    blind = train_blind(split, **settings) if blind is None else blind
    strategic = StrategicClassifier(
        cost=cost, actions=actions, **(AS_GIVEN | settings | {"response": response})
    ).fit(*split.train, validation=split.validation)
    people = judging_population(response, cost, actions, settings)
    shifters = people.members[0]
    if blind.score_.slope() is not None:
        shifters = BestResponse(cost, actions)
    rules = {
        "blind": blind.score_,
        "shifted_blind": shifted_blind(blind.score_, shifters, split.known[0]),
        "bias_search": bias_search(blind.score_, people.members, *split.known),
        "strategic": strategic.score_,
    }
    after = {
        name: worst_accuracy(rule, *split.test, people.members) for name, rule in rules.items()
    }
    return Comparison(benchmark=worst_accuracy(blind.score_, *split.test, (NoResponse(),)), **after)


def judging_population(
    response: Any, cost: Cost | None, actions: ActionSet | None, settings: Mapping[str, Any]
) -> JudgedMembers:
    """Return the population at its evaluation temperature."""
    trained_at = settings.get("temperature", 0.5)
    judged_at = settings.get("eval_temperature")
    return population(response, cost, actions, trained_at if judged_at is None else judged_at)
