"""Compile every numerical kernel once per installation (Numba caches it beside the source)."""

from __future__ import annotations

from itertools import product
from typing import Any

__all__ = ["compile_kernels"]


def compile_kernels() -> int:
    """Fit and move a few people by every kind of cost, action and response; return how many."""
    import warnings

    import numpy as np

    from countermove.learning.classifier import StrategicClassifier
    from countermove.people import (
        ActionSet,
        LinearCost,
        MahalanobisCost,
        MixtureCost,
        QuadraticCost,
        WeightedQuadraticCost,
    )
    from countermove.response import BestResponse, Population, ScalarResponse

    d = 3
    X = np.random.default_rng(0).standard_normal((40, d))
    y = np.where(X @ np.ones(d) > 0, 1.0, -1.0)
    spread = np.eye(d) + 0.2
    costs = (
        QuadraticCost(1.0),
        WeightedQuadraticCost([1.0, 2.0, 3.0]),
        MahalanobisCost(spread),
        LinearCost([1.0, 1.0, 1.0]),
        MixtureCost([1.0, 1.0, 1.0], 0.3),
    )
    # Free moves without bounds have no best response, so the linear cost comes with a box alone.
    box = ActionSet(lower=[-1.0] * d, upper=[1.0] * d, max_value=[2.0] * d, only_increase=[0])
    actions = (ActionSet(), ActionSet(immutable=[2]), box)
    done = 0
    for cost, allowed in product(costs, actions):
        if isinstance(cost, LinearCost) and allowed is not box:
            continue
        responses = (
            BestResponse(cost, allowed),
            ScalarResponse(cost, allowed),
            ScalarResponse(cost, allowed, start="stay", normalised=False, gradient="last_proxy"),
        )
        for response in responses:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = StrategicClassifier(
                    response=response, max_epochs=1, selection="none", standardise=False
                ).fit(X, y)
            fitted.respond(X)
            done += 1
    # Branches of possible people, as runs on tables with relations or ranges ask for them.
    ranged = ActionSet(possible=_usual_ranges(d)).obeyed_in_responses()
    possible = (BestResponse(actions=ranged), ScalarResponse(actions=ranged))
    for response in possible:
        fitted = StrategicClassifier(response=response, selection="none", standardise=False)
        fitted.fit(X, y).respond(X)
        done += 1
    # Collectives go to the nearest possible place, which is searched branch by branch.
    possible[0].plan(d).people(X).nearest(np.zeros_like(X))
    # The choice between rules sums losses by kernels of its own, and turns rules by others where
    # everybody may stay, which in the box above not everybody may.
    roomy = ActionSet(lower=[-1.0] * d, upper=[1.0] * d)
    for allowed in (ActionSet(), box, roomy, ranged):
        people = Population(BestResponse(QuadraticCost(), allowed), never=0.2, log_sd=0.5)
        StrategicClassifier(response=people, standardise=False).fit(X, y)
    return done


def _usual_ranges(d: int) -> dict[str, Any]:
    """Return who can exist, as `Possible.describe` says it: amounts up to 2 either way."""
    none: dict[str, list[float]] = {"A": [], "lower": [], "upper": [], "texts": []}
    return {
        "columns": [str(j) for j in range(d)],
        "rows": none,
        "conditional": none,
        "premise_columns": [],
        "premise_values": [],
        "histories": [],
        "mean": [0.0] * d,
        "scale": [1.0] * d,
        "low": [-2.0] * d,
        "high": [2.0] * d,
    }
