r"""Training where the cost is not given: chosen with the rule, or unknown.

.. math:: \min_{c \in C} \min_s L(s, c) + \lambda r(c_0, c)
          \qquad\text{or}\qquad \min_s \max_{c \in C} L(s, c)

Equations (7) and (8) of SERM. Both wrap the strategic risk, which knows how
people respond at a cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, get_args

import torch
from torch import Tensor, nn

from countermove.errors import ParameterError
from countermove.learning.objectives import StrategicRisk
from countermove.learning.regularisers import check_strength
from countermove.people import Cost
from countermove.people.cost_boxes import CostBox
from countermove.people.costs import checked_cost
from countermove.scores import Score

Penalty = Literal["squared", "published"]
Search = Literal["ends", "ascent"]


@dataclass(frozen=True)
class FlexibleCost:
    r"""A cost the system may change, at a price of its own.

    Parameters
    ----------
    box
        The first cost and how far it may be changed.
    strength
        :math:`\lambda`, the factor of the penalty.
    penalty
        :math:`r`: ``"squared"`` is :math:`\|v - v_0\|^2`; ``"published"`` is the SERM experiment's
        :math:`\bigl|\|v\| - \|v_0\|\bigr| + \bigl\|\tfrac{v \odot v_0}{\|v\|\|v_0\|} - 1\bigr\|`.
    """

    box: CostBox
    strength: float = 1e-3
    penalty: Penalty = "squared"

    def __post_init__(self) -> None:
        check_strength(self.strength)
        if self.penalty not in get_args(Penalty):
            raise ParameterError(f"penalty is one of {get_args(Penalty)}, got {self.penalty!r}")

    def price(self, values: Tensor) -> Tensor:
        """Return what it costs the system to have the coefficient at ``values``."""
        start = self.box.start
        if self.penalty == "squared":
            return self.strength * torch.sum((values - start) ** 2)
        length, first = torch.linalg.vector_norm(values), torch.linalg.vector_norm(start)
        turned = torch.linalg.vector_norm(values * start / (length * first) - 1.0)
        price: Tensor = self.strength * (torch.abs(length - first) + turned)
        return price


@dataclass(frozen=True)
class UnknownCost:
    """A cost of which only a set is known; the worst of it counts.

    Parameters
    ----------
    costs
        A finite set, at least two; or None with a ``box``.
    box
        A box of costs; or None with ``costs``.
    search
        How the worst cost of a box is found: ``"ends"``, the cheapest and the most
        expensive (exact where the loss is monotone along every price between them, as for two
        classes on either side of a line); or ``"ascent"``, projected gradient ascent from
        both ends and from the first cost, a local search.
    steps
        Of the ascent, each at most a quarter of the box.
    """

    costs: Sequence[Cost] | None = None
    box: CostBox | None = None
    search: Search = "ends"
    steps: int = 4

    def __post_init__(self) -> None:
        if (self.costs is None) == (self.box is None):
            raise ParameterError("an unknown cost is either a list of costs or a box, not both")
        if self.costs is not None and len(self.costs) < 2:
            raise ParameterError(
                f"the set of unknown costs needs at least two members, got {len(self.costs)}; "
                "a single cost is a known one"
            )
        if self.search not in get_args(Search):
            raise ParameterError(f"search is one of {get_args(Search)}, got {self.search!r}")
        if self.steps < 1:
            raise ParameterError(f"the ascent takes at least one step, got steps={self.steps!r}")

    @cached_property
    def members(self) -> tuple[Cost, ...]:
        """The costs a rule is judged by: the set, or the ends of the box and its start."""
        if self.costs is not None:
            return tuple(self.costs)
        assert self.box is not None
        ends = self.box.ends()
        return ends if self.search == "ends" else (*ends, self.box.cost)


@dataclass(frozen=True)
class FlexibleRisk:
    """The strategic risk of rule and cost together, plus the price of changing the cost."""

    risk: StrategicRisk
    flexible: FlexibleCost
    values: nn.Parameter  # the coefficient; inside its box after every step

    @classmethod
    def starting(cls, risk: StrategicRisk, flexible: FlexibleCost) -> Self:
        """Return the risk at the first cost."""
        return cls(risk, flexible, nn.Parameter(flexible.box.start))

    @property
    def cost(self) -> Cost:
        """The cost as learned so far."""
        return self.flexible.box.build(self.values.detach().clone())

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the risk of a batch, differentiable in the cost too."""
        chosen = self.risk.with_cost(self.flexible.box.build(self.values))
        return chosen.loss(score, X, y) + self.flexible.price(self.values)

    def judge(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float]:
        """Return accuracy after response at the cost learned, and the risk."""
        accuracy, risk = self.risk.with_cost(self.cost).judge(score, X, y)
        return accuracy, risk + float(self.flexible.price(self.values.detach()))

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk of an epoch; what is learned is shared."""
        return replace(self, risk=self.risk.for_epoch(epoch))

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some people; what is learned is shared."""
        return replace(self, risk=self.risk.of_rows(rows))

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return the coefficient."""
        return (self.values,)

    def settle(self) -> None:
        """Put the coefficient back into its box."""
        with torch.no_grad():
            self.values.copy_(self.flexible.box.clamped(self.values))


@dataclass(frozen=True)
class UnknownCostRisk:
    """The strategic risk at the worst cost of a box, found by projected ascent."""

    # By Danskin's theorem the gradient at a maximiser over the cost is that with the cost held
    # fixed; the ascent is local, so the risk is a lower estimate of the maximum.

    risk: StrategicRisk
    box: CostBox
    steps: int

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the risk of a batch at the worst cost found for it."""
        return self._at(self.worst_for(score, X, y)).loss(score, X, y)

    def judge(self, score: Score, X: Tensor, y: Tensor) -> tuple[float, float]:
        """Return the lowest accuracy and the highest risk over start, ends and worst found."""
        tried = (self.worst_for(score, X, y), *self._starts)
        verdicts = [self._at(values).judge(score, X, y) for values in tried]
        return min(found[0] for found in verdicts), max(found[1] for found in verdicts)

    def worst_for(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the coefficient with the highest risk that three ascents find."""
        found = [self._climb(start, score, X, y) for start in self._starts]
        return max(found, key=lambda pair: pair[0])[1]

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk of an epoch."""
        return replace(self, risk=self.risk.for_epoch(epoch))

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some people."""
        return replace(self, risk=self.risk.of_rows(rows))

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return nothing: the cost is the adversary's."""
        return ()

    def settle(self) -> None:
        """Leave everything as it is: only the score is learned."""

    @property
    def _starts(self) -> tuple[Tensor, ...]:
        return (self.box.start, *self.box.edges)

    def _at(self, values: Tensor) -> StrategicRisk:
        return self.risk.with_cost(self.box.build(values))

    def _climb(self, start: Tensor, score: Score, X: Tensor, y: Tensor) -> tuple[float, Tensor]:
        """Climb along the gradient's sign, by steps that are halved when one did not help."""
        low, high = self.box.edges
        stride, at = 0.25 * (high - low), start
        best, highest, uphill = start, float("-inf"), torch.zeros_like(start)
        for _ in range(self.steps):
            with torch.enable_grad():
                leaf = at.clone().requires_grad_()
                risk = self._at(leaf).loss(score, X, y)
                (slope,) = torch.autograd.grad(
                    risk, leaf, allow_unused=True, materialize_grads=True
                )
            if float(risk.detach()) > highest:
                best, highest, uphill = at, float(risk.detach()), slope.sign()
            else:
                stride = 0.5 * stride
            at = self.box.clamped(best + stride * uphill)
        return highest, best


ChosenRisk = StrategicRisk | FlexibleRisk | UnknownCostRisk
AnyCost = Cost | FlexibleCost | UnknownCost


def risk_of(risk: StrategicRisk, cost: AnyCost | None) -> ChosenRisk:
    """Return the objective for a cost: known, chosen with the rule, or the worst of a box."""
    if isinstance(cost, FlexibleCost):
        return FlexibleRisk.starting(risk, cost)
    if isinstance(cost, UnknownCost) and cost.box is not None and cost.search == "ascent":
        return UnknownCostRisk(risk, cost.box, cost.steps)
    return risk


def chosen_cost(cost: Any) -> AnyCost | None:
    """Return a cost that is one: flexible and unknown ones stay, a number is a scale."""
    return cost if isinstance(cost, FlexibleCost | UnknownCost) else checked_cost(cost)


def costs_to_judge_by(cost: AnyCost | None) -> tuple[Cost | None, ...]:
    """Return the costs at which people may respond: one, or the members of an unknown one."""
    if isinstance(cost, FlexibleCost):
        return (cost.box.cost,)
    return cost.members if isinstance(cost, UnknownCost) else (cost,)


def costs_to_train_at(cost: AnyCost | None) -> tuple[Cost | None, ...]:
    """Return the same, but one only where the objective itself moves the cost."""
    if isinstance(cost, UnknownCost) and cost.box is not None and cost.search == "ascent":
        return (cost.box.cost,)
    return costs_to_judge_by(cost)
