"""A score that bends, people of every kind of feature, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from countermove.people import ActionSet, WeightedQuadraticCost
from countermove.recourse.mixed_integer import cheapest_action
from countermove.scores import LinearScore, Score

UNIT = np.array([2.0, 1.0, 4.0, 0.5, 0.4, 0.4, 0.4])
MEAN = np.array([5.0, 1.0, 30.0, 0.2, 0.3, 0.3, 0.4])


class TanhScore(Score):
    """A tanh network with dropout, as the recourse paper trains."""

    kind: ClassVar[str] = "test_tanh"

    def __init__(self, n_features: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = n_features
        for size in hidden:
            layers += [nn.Linear(width, size, dtype=torch.float64), nn.Tanh(), nn.Dropout(0.3)]
            width = size
        self.network = nn.Sequential(*layers, nn.Linear(width, 1, bias=False, dtype=torch.float64))
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64))
        self._n_features = n_features

    @property
    def n_features(self) -> int:
        return self._n_features

    def forward(self, X: Tensor) -> Tensor:
        values: Tensor = self.network(X).squeeze(-1)
        return values + self.bias

    def slope(self) -> None:
        return None

    def describe(self) -> dict[str, Any]:
        return {}


def trained_tanh(X: np.ndarray, label: np.ndarray, hidden: tuple[int, ...] = (16, 16)) -> TanhScore:
    """Fit a network to the labels in about a second."""
    torch.manual_seed(0)
    score = TanhScore(X.shape[1], hidden)
    optimiser = torch.optim.Adam(score.parameters(), lr=0.02)
    rows, truth = torch.from_numpy(X), torch.from_numpy(label.astype(np.float64))
    for _ in range(15):
        for part in torch.arange(len(rows)).split(200):
            optimiser.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(score(rows[part]), truth[part])
            loss.backward()
            optimiser.step()
    return score


def linear(weights: Any, bias: float = 0.0) -> LinearScore:
    score = LinearScore(len(weights))
    with torch.no_grad():
        score.weight.copy_(torch.tensor(np.asarray(weights), dtype=torch.float64))
        score.bias.fill_(bias)
    return score


@dataclass(frozen=True)
class Town:
    """People with a number, two whole numbers, a fixed feature and a one-hot group of three."""

    X: np.ndarray
    actions: ActionSet
    linear: Score
    bent: Score

    def score(self, name: str) -> Score:
        return self.linear if name == "linear" else self.bent


def town_actions(n: int, A: Any = None, b: Any = None) -> ActionSet:
    """Column 0 moves freely within ±3, 1 only up, 2 by whole units, 3 never, 4–6 are a group."""
    most = np.tile([3.0, 2.0, 6.0, 0.0, 1.0, 1.0, 1.0], (n, 1))
    most[: n // 2, 0] = 1.0  # half of the people can do less
    return ActionSet(
        lower=-most,
        upper=most,
        min_value=[-np.inf, 0.0, 18.0, -np.inf, 0.0, 0.0, 0.0],
        only_increase=[1],
        immutable=[3],
        integer=[1, 2, 4, 5, 6],
        groups=[[4, 5, 6]],
        A=A,
        b=b,
    ).rescaled(UNIT, MEAN)


def town_people(n: int, seed: int = 0) -> np.ndarray:
    draws = np.random.default_rng(seed)
    group = np.eye(3)[draws.integers(0, 3, n)]
    original = np.column_stack(
        [draws.normal(5, 2, n), draws.integers(0, 3, n), draws.integers(18, 45, n),
         draws.normal(0.2, 0.5, n), group]
    )  # fmt: skip
    return (original - MEAN) / UNIT


@pytest.fixture(scope="session")
def town() -> Town:
    X = town_people(120)
    crowd = town_people(800, seed=1)
    wish = np.sin(1.5 * crowd[:, 0]) + crowd[:, 1] * np.cos(crowd[:, 2]) + 0.4 * crowd[:, 4] - 0.6
    rule = linear([0.8, 0.5, -0.6, 1.0, 0.4, -0.3, 0.1], -1.0)
    return Town(X, town_actions(len(X)), rule, trained_tanh(crowd, wish > 0))


def assert_agrees_with_highs(found, feasible, slope, need, weights) -> None:
    """Hold an exact method's answers and proofs against a mixed-integer program, one by one."""
    for i in range(len(need)):
        one = feasible.rows(np.array([i]))
        referee = cheapest_action(one, WeightedQuadraticCost(weights), slope[i], float(need[i]))
        assert (referee is None) == found.proven_none[i]
        if referee is None:
            assert np.isnan(found.action[i]).all()
            continue
        action = found.action[i]
        assert action @ slope[i] >= need[i] - 1e-9
        price, other = (float((weights * part**2).sum()) for part in (action, referee))
        # HiGHS proves its answer to a tolerance; the specialised answer is exact.
        assert price == pytest.approx(other, rel=1e-5, abs=1e-5)
