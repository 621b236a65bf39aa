"""Random rules, costs, actions and people shared by the response tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from countermove.people import (
    ActionSet,
    Cost,
    LinearCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.scores import LinearScore

COSTS = ("quadratic", "weighted", "mahalanobis", "linear", "mixture")


@dataclass(frozen=True)
class Case:
    """One rule met by some people."""

    score: LinearScore
    cost: Cost
    actions: ActionSet
    X: np.ndarray

    @property
    def w(self) -> np.ndarray:
        return self.score.weight.detach().numpy()

    @property
    def b(self) -> float:
        return float(self.score.bias.detach())


def linear_score(w, b: float) -> LinearScore:
    score = LinearScore(len(w))
    with torch.no_grad():
        score.weight.copy_(torch.as_tensor(np.asarray(w, dtype=float)))
        score.bias.fill_(b)
    return score


def random_cost(name: str, d: int, rng: np.random.Generator) -> Cost:
    direction = rng.normal(size=d)
    factor = rng.normal(size=(d, d))
    return {
        "quadratic": lambda: QuadraticCost(float(rng.uniform(0.3, 3.0))),
        "weighted": lambda: WeightedQuadraticCost(rng.uniform(0.2, 4.0, d)),
        "mahalanobis": lambda: MahalanobisCost(factor @ factor.T / d + 0.3 * np.eye(d)),
        "linear": lambda: LinearCost(direction),
        "mixture": lambda: MixtureCost(
            direction, float(rng.uniform(0.05, 0.95)), float(rng.uniform(0.3, 3.0))
        ),
    }[name]()


def random_case(name: str, seed: int, boxed: bool, n: int = 30, d: int = 5) -> Case:
    rng = np.random.default_rng([seed, COSTS.index(name), boxed])
    score = linear_score(rng.normal(size=d), float(rng.normal() * 0.5))
    actions = ActionSet()
    if boxed or name == "linear":
        actions = ActionSet(
            lower=-rng.uniform(0.1, 1.0, d), upper=rng.uniform(0.1, 1.0, d),
            min_value=np.full(d, -2.0), max_value=np.full(d, 2.0),
            only_increase=[0], only_decrease=[1], immutable=[2],
        )  # fmt: skip
    X = rng.normal(size=(n, d)).clip(-2.0, 2.0)
    return Case(score, random_cost(name, d, rng), actions, X)


@pytest.fixture
def make_case():
    return random_case


@pytest.fixture
def make_score():
    return linear_score


@pytest.fixture(params=COSTS)
def cost_name(request) -> str:
    return request.param


@pytest.fixture(params=[False, True], ids=["free", "boxed"])
def boxed(request) -> bool:
    return request.param
