r"""Rules that know nothing of the response but their threshold.

The majority's label, logistic regression, the line between the class means, logistic regression on
what nobody can change, and logistic regression that is charged for what people can reach,
:math:`\min_w L(w) + \tfrac{\lambda}{2} R(w)^2`; every direction gets its best threshold after
response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

from countermove._types import Floats, Mask
from countermove.response.base import GAIN, NoResponse, Response
from countermove.response.response_set import discretised
from countermove.scores import LinearScore, Score
from countermove.training import Derivatives
from countermove.training._labels import between_means, counted, mean_and_spread
from countermove.training.newton import minimise
from countermove.training.second_order import logistic_derivatives, with_ridge

if TYPE_CHECKING:
    from countermove.learning._recipe import TrainingRecipe
    from countermove.scores.storage import PublishedModel

Rules: TypeAlias = dict[str, Score]

PENALTIES = 10.0 ** np.arange(-3.0, 1.6, 0.5)
"""The λ of the penalty on reach; the best on the rows at hand is taken."""
CHOOSERS = 5_000
"""People on whom one of them is chosen, the first by their hashes; its threshold is everybody's."""


def simple_rules(recipe: TrainingRecipe, X: Floats, y: Floats, n_train: int | None = None) -> Rules:
    """Return the simple rules, each with its best threshold on these rows.

    Directions are fitted to the first ``n_train`` rows (None: to all), as the trained ones are.
    """
    members = recipe.judged_by.members
    fitted = X[:n_train], y[:n_train]
    blind = logistic_regression(*fitted)
    settled = {
        "logistic": recipe.settled(blind, X, y),
        "class_means": recipe.settled(class_means(*fitted), X, y),
    }
    only = immutables_rule(members, *fitted)
    if only is not None:
        settled["immutables"] = recipe.settled(only, X, y)
    if not any(member.costly for member in members):
        settled["reach_penalty"] = _best_on_path(recipe, blind, fitted, X, y)
    rules: Rules = {"majority": majority_rule(y, X.shape[1])}
    return rules | {name: rule for name, (rule, _) in settled.items()}


def chosen_from(model: PublishedModel) -> dict[str, Score]:
    """Return the linear rules that a stored rule was chosen from, by name."""
    return linear_rules(model.about.get("choice") or {})


def linear_rules(said: Mapping[str, Any]) -> dict[str, Score]:
    """Return the linear rules of a described choice, by name."""
    return {
        name: linear_score(np.append(rule["weight"], rule["intercept"]))
        for name, rule in said.get("rules", {}).items()
        if "weight" in rule
    }


def logistic_regression(
    X: Floats, y: Floats, start: LinearScore | None = None, charge: Charge | None = None
) -> LinearScore:
    r"""Return the rule of maximum likelihood, less :math:`\tfrac12\sum_j c_j w_j^2`."""
    d = X.shape[1]
    first = np.zeros(d + 1) if start is None else _point(start)

    def function(point: Floats) -> Derivatives:
        found = logistic_derivatives(X, y, X @ point[:-1] + point[-1], [(1.0, None)])
        if charge is not None:
            found = found + charge(point[:-1])
        return with_ridge(found, point[:-1], counted(y))

    return linear_score(minimise(function, first).point)


def immutables_rule(members: Sequence[Response], X: Floats, y: Floats) -> LinearScore | None:
    """Return logistic regression on what nobody can change; None where everything may change."""
    still = ~movable(members, X.shape[1])
    if not still.any():
        return None
    alone = _point(logistic_regression(X * still, y))
    # Exactly none on what people can change: a weight of rounding is one that people chase.
    return linear_score(alone * np.append(still, 1.0))


def class_means(X: Floats, y: Floats) -> LinearScore:
    """Return the rule along the line between the class means, its scores standardised."""
    # Standard deviation one is the scale at which a hinge of width one bites. All zero where the
    # means coincide.
    direction = between_means(X, y)
    _, spread = mean_and_spread(X @ direction, y)
    score = LinearScore(X.shape[1])
    if spread > 0.0:
        weight = direction / spread
        return linear_score(np.append(weight, -mean_and_spread(X @ weight, y)[0]))
    return score


def movable(members: Sequence[Response], n_features: int) -> Mask:
    """Return which features somebody can change."""
    moving = np.zeros(n_features, dtype=np.bool_)
    for kind in (kind for member in members for _, kind in discretised(member)):
        if not isinstance(kind, NoResponse):
            moving |= kind.plan(n_features).moving
    return moving


def linear_score(point: Floats) -> LinearScore:
    """Return the linear score of weights followed by an intercept."""
    score = LinearScore(len(point) - 1)
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(point[:-1]))
        score.bias.fill_(float(point[-1]))
    return score


def _point(score: LinearScore) -> Floats:
    with torch.no_grad():
        return np.append(score.weight.numpy(), score.bias.item())


def majority_rule(y: Floats, n_features: int) -> LinearScore:
    """Return the rule that decides alike for everybody, as most labels have it."""
    return linear_score(np.append(np.zeros(n_features), 1.0 if y.sum() >= 0.0 else -1.0))


def _best_on_path(
    recipe: TrainingRecipe,
    blind: LinearScore,
    fitted: tuple[Floats, Floats],
    X: Floats,
    y: Floats,
) -> tuple[Score, float]:
    """Return the penalised rule with the best objective on these rows."""
    charge = reach_charge(recipe.judged_by.members, recipe.judged_by.weights, X.shape[1])
    # Where every threshold takes a search, fewer rules are tried.
    kinds = (kind for member in recipe.judged_by.members for _, kind in discretised(member))
    exact = all(kind.exact_reach for kind in kinds) and not recipe.charges_for_people
    judges, *some = recipe.some_people(X, y, CHOOSERS)
    rule, found = blind, []
    for penalty in PENALTIES if exact else PENALTIES[1::3]:
        rule = logistic_regression(*fitted, rule, replace(charge, factor=float(penalty)))
        found.append((rule, judges.settled(rule, *some)[1]))
    best, _ = max(found, key=lambda pair: pair[1])
    return recipe.settled(best, X, y)


@dataclass(frozen=True)
class Charge:
    r"""Half of :math:`\sum_j c_j w_j^2`, with another c for weights that invite a fall."""

    rising: Floats
    falling: Floats
    factor: float = 1.0

    def __call__(self, weight: Floats) -> Derivatives:
        """Return it with its derivatives; the intercept is free."""
        each = self.factor * np.where(weight > 0.0, self.rising, self.falling)
        gradient = np.append(each * weight, 0.0)
        return Derivatives(0.5 * float(each @ weight**2), gradient, np.diag(np.append(each, 0.0)))


def reach_charge(
    members: Sequence[Response], weights: Sequence[float] | None, n_features: int
) -> Charge:
    """Return the mean squared reach over the kinds of people, as far as nothing bounds it."""
    parts = np.full(len(members), 1.0 / len(members)) if weights is None else np.asarray(weights)
    rising, falling = np.zeros(n_features), np.zeros(n_features)
    kinds = [(p * s, k) for p, m in zip(parts, members, strict=True) for s, k in discretised(m)]
    for share, member in kinds:
        if isinstance(member, NoResponse):
            continue
        shape = member.cost.canonical(n_features)
        price = np.ones(n_features)
        if shape is not None and shape.weights is not None:
            price = shape.weights.detach().numpy()
        elif shape is not None and shape.matrix is not None:
            price = np.diag(shape.matrix.detach().numpy())
        plan = member.plan(n_features)
        rising += share * GAIN * plan.rising / price
        falling += share * GAIN * plan.falling / price
    # In units of its own size, so that one path serves cheap and expensive moves.
    size = max(float((rising + falling).mean()) / 2.0, np.finfo(np.float64).tiny)
    return Charge(rising / size, falling / size)
