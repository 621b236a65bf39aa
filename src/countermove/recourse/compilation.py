"""Compile the searches for the cheapest action once per installation (Numba caches them)."""

from __future__ import annotations

__all__ = ["compile_search"]


def compile_search() -> None:
    """Advise a few people with and without whole steps, groups, constraints, and before trees."""
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier

    from countermove.people import ActionSet, LinearCost, QuadraticCost
    from countermove.recourse.recommend import recommend
    from countermove.scores import LinearScore
    from countermove.scores.adopted import adopt

    X = np.random.default_rng(0).standard_normal((20, 5))
    X[:, 3:] = [1.0, 0.0]
    score = LinearScore(5)
    low, high = [-2.0] * 5, [2.0] * 5
    A, b = [[1.0, 1.0, 0.0, 0.0, 0.0]], [3.0]
    for actions in (
        ActionSet(low, high, immutable=[3, 4]),
        ActionSet(low, high, integer=[0], groups=[(3, 4)], A=A, b=b),
    ):
        for cost in (QuadraticCost(), LinearCost([1.0] * 5)):
            recommend(score, X, "auto", 0.6, actions, cost)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, X[:, 0] > 0.0)
    recommend(adopt(tree, X), X, "auto", 0.6, ActionSet(low, high, immutable=[3, 4]))
