r"""Training for recourse: the loss where people stand, and where they could get to.

.. math:: \min_s \frac1n \sum_i \ell\bigl(s(x_i), y_i\bigr)
          + \lambda \min_{\delta \in \Delta_i} \ell\bigl(s(x_i + \delta), 1\bigr)

One more objective of the one trainer; :math:`\lambda = 0` is plain training.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest, shown
from countermove.people import ActionSet
from countermove.recourse.performance import best_f1
from countermove.response import NoResponse, Response
from countermove.response.response_set import discretised
from countermove.scores import Score
from countermove.training import Derivatives, Loss, Verdict
from countermove.training._labels import mean_over
from countermove.training.curvature import refusal, risk_derivatives

Answers = list[tuple[float, Tensor]]
"""Scores after people's response, with the share of people of each type."""
SELECTIONS = ("f1", "promised_f1", "loss", "accuracy")
MISS_RATE = 0.05
"""Share of people who need not reach the thresholds that ``promised_f1`` compares."""


@dataclass(frozen=True)
class RecourseRisk:
    """Mean loss plus ``recourse_weight`` times the mean loss after the best small action."""

    # Rows are those of `rows_with_bounds`.
    n_features: int
    recourse_weight: float = 0.8
    # Of the labels, with its class weights; the recourse term has the same loss, unweighted.
    loss_function: Loss = field(default_factory=lambda: Loss("logistic"))
    # Labels are judged after it, recourse where people stand; None: nobody moves.
    response: Response | None = None
    constraints: NDArray[np.float64] | None = None  # A of A δ + b ≥ 0, (m, d); None for boxes
    groups: tuple[OneHotGroup, ...] = ()  # one-hot columns that move jointly
    selection: str = "f1"  # what epochs are chosen by, see `RecourseClassifier`

    def __post_init__(self) -> None:
        if not (self.recourse_weight >= 0.0 and math.isfinite(self.recourse_weight)):
            raise ParameterError(
                f"recourse_weight is a finite number ≥ 0, got {self.recourse_weight!r}; "
                "0 is training without recourse"
            )
        if self.selection not in SELECTIONS:
            hint = nearest(str(self.selection), SELECTIONS)
            raise UnknownNameError(f"no selection is called {self.selection!r}: {hint}")

    def loss(self, score: Score, X: Tensor, y: Tensor) -> Tensor:
        """Return the objective of a batch of rows with limits."""
        return self._parts(score, X, y)[1]

    def judge(self, score: Score, X: Tensor, y: Tensor) -> Verdict:
        """Return accuracy (after response), the objective and the merit of an epoch."""
        answers, loss = self._parts(score, X, y)
        favourable, size = y > 0, y.abs().numpy() if self.loss_function.weighted else None
        accuracy = sum(
            share * mean_over(((after >= 0.0) == favourable).numpy(), y.numpy())
            for share, after in answers
        )
        # Thresholds of people who differ are compared by their mean score.
        scores = torch.stack([share * after for share, after in answers]).sum(dim=0)
        merit = None
        if self.selection == "loss":
            merit = -float(loss.detach())
        elif self.selection == "f1":
            merit = best_f1(scores.detach().numpy(), favourable.numpy(), size)[1]
        elif self.selection == "promised_f1":
            limit = self._reached_by_most(score, X, size)
            merit = best_f1(np.minimum(scores.detach().numpy(), limit), favourable.numpy(), size)[1]
        return Verdict(accuracy, float(loss.detach()), merit)

    def refuses_newton(self, score: Score) -> str | None:
        """Say why the risk cannot be minimised by Newton's method; None: it can."""
        if self.recourse_weight != 0.0:
            return "the best action of the recourse term jumps"
        return refusal(self.loss_function, [kind for _, kind in self._kinds()])

    def refuses_polish(self) -> str | None:
        """Say why full gradients lead to no optimum; None: they do."""
        if self.recourse_weight != 0.0:
            return "the best action of the recourse term jumps"
        name = self.loss_function.name
        return None if name == "logistic" else f"the {name} loss has kinks"

    def second_order(self, score: Score, X: Tensor, y: Tensor) -> tuple[Derivatives, ...]:
        """Return the loss of the labels with its derivatives; without a recourse term only."""
        rows = X[:, : self.n_features].contiguous()
        return (risk_derivatives(self.loss_function, score, rows, y, self._kinds()),)

    def joined(self, means: Sequence[Derivatives]) -> Derivatives:
        """Return the only mean there is."""
        return means[0]

    def for_epoch(self, epoch: int) -> Self:
        """Return the risk of an epoch: some responses are solved more closely as epochs pass."""
        response = None if self.response is None else self.response.for_epoch(epoch)
        return self if response is self.response else replace(self, response=response)

    def of_rows(self, rows: Tensor) -> Self:
        """Return the risk of some people of the sample; limits travel in the rows themselves."""
        response = None if self.response is None else self.response.of_rows(rows)
        return self if response is self.response else replace(self, response=response)

    def parameters(self) -> Iterable[nn.Parameter]:
        """Return nothing: only the score is learned."""
        return ()

    def settle(self) -> None:
        """Leave everything as it is: only the score is learned."""

    def action(self, score: Score, rows: Tensor) -> Tensor:
        r"""Return :math:`\arg\max_\delta \nabla s(x_i) \cdot \delta`, each person's best step."""
        # Eq. 2 of the recourse paper: a loss of the favourable label falls in the score. People
        # act against the rule as published, so the gradient is taken with dropout off (the
        # published code takes it on one random thinning); the action is piecewise constant in
        # the weights, so no gradient passes through it.
        X, low, high, offsets = split_bounds(rows, self.n_features)
        gradient = score.gradient(X)
        if self.constraints is None:
            step = box_step(gradient, low, high)
            for group in self.groups:
                step[:, group.columns] = group.step(X, gradient, low, high)
            return step
        return _polytope_step(gradient, low, high, self.constraints, offsets)

    def _parts(self, score: Score, rows: Tensor, y: Tensor) -> tuple[Answers, Tensor]:
        """Return the scores the labels are judged by, and the objective."""
        X, n = rows[:, : self.n_features], len(y)
        if self.recourse_weight == 0.0:
            answers = self._answered(score, X)
            return answers, self._label_loss(answers, y)
        x_new = X + self.action(score, rows)
        if self.response is None:
            # One pass for both: for a few dozen rows calls are the price, not sums.
            scores, reached = score(torch.cat((X, x_new))).split(n)
            answers = [(1.0, scores)]
        else:
            answers, reached = self._answered(score, X), score(x_new)
        recourse = self.recourse_weight * self._recourse_loss(reached, y)
        return answers, self._label_loss(answers, y) + recourse

    def _label_loss(self, answers: Answers, y: Tensor) -> Tensor:
        """Return the loss of the labels, of people who differ the mean over their types."""
        losses = [share * self.loss_function(after, y) for share, after in answers]
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum()

    def _reached_by_most(self, score: Score, rows: Tensor, size: Floats | None) -> float:
        """Return the score that all but `MISS_RATE` of these people can reach."""
        # Whole numbers move continuously and one-hot groups stay; the promise itself is
        # calibrated elsewhere.
        from countermove.recourse.recommend import best_reachable

        X, low, high, offsets = (
            part.detach().numpy().copy() for part in split_bounds(rows, self.n_features)
        )
        for group in self.groups:
            low[:, group.columns], high[:, group.columns] = 0.0, 0.0
        limits = None if self.constraints is None else offsets
        actions = ActionSet(low, high, A=self.constraints, b=limits)
        with torch.enable_grad():  # epochs are judged without, but the search follows slopes
            reached = best_reachable(score, X, actions=actions)
        if size is not None:
            return float(np.quantile(reached.score, MISS_RATE, method="inverted_cdf", weights=size))
        return float(np.quantile(reached.score, MISS_RATE, method="lower"))

    def _kinds(self) -> tuple[tuple[float, Response], ...]:
        """Return who is judged after response, with their shares."""
        return discretised(NoResponse() if self.response is None else self.response)

    def _answered(self, score: Score, X: Tensor) -> Answers:
        return [(share, kind.scores_after(score, X)) for share, kind in self._kinds()]

    def _recourse_loss(self, reached: Tensor, y: Tensor) -> Tensor:
        """Return the loss of being refused after the action, whatever the class."""
        name, weighted = self.loss_function.name, self.loss_function.weighted
        aim = y.abs() if weighted else torch.ones_like(reached)
        return Loss(name, weighted=weighted)(reached, aim)


def box_step(gradient: Tensor, low: Tensor, high: Tensor) -> Tensor:
    r"""Return :math:`\arg\max_{low \le \delta \le high} g \cdot \delta`, a vertex by signs."""
    # A feature of no slope moves only as far as its bounds force it to.
    still = torch.zeros((), dtype=gradient.dtype).clamp(low, high)
    return torch.where(gradient > 0.0, high, torch.where(gradient < 0.0, low, still))


def _polytope_step(
    gradient: Tensor, low: Tensor, high: Tensor, A: NDArray[np.float64], b: Tensor
) -> Tensor:
    from countermove.recourse.polytope import linear_step

    step = linear_step(gradient.numpy(), low.numpy(), high.numpy(), A, b.numpy())
    return torch.from_numpy(step)


LARGEST_ACTION = 0.75
"""The recourse paper's limit on the change of a feature, in standard deviations."""


def usual_actions(n_features: int, largest: float = LARGEST_ACTION) -> ActionSet:
    """Return the paper's plain choice: every feature moves by at most ``largest``."""
    return ActionSet(lower=np.full(n_features, -largest), upper=np.full(n_features, largest))


def rows_with_bounds(X: Floats, actions: ActionSet) -> Floats:
    """Return people with their limits, shape (n, 3d) or, with m constraints, (n, 3d + m)."""
    # Whole numbers move continuously. One-hot columns change by one category at most; beside
    # linear constraints they stay, as in a response.
    allowed = actions if actions.A is None else actions.for_response()
    low, high = allowed.box(X)
    low, high = _within_one_category(allowed, low, high)
    if allowed.A is None or allowed.b is None:
        unbounded = ~(np.isfinite(low) & np.isfinite(high))
        if unbounded.any():
            raise ParameterError(
                f"nothing bounds the actions of feature {shown(np.flatnonzero(unbounded.any(0)))} "
                f"for the people in rows {shown(np.flatnonzero(unbounded.any(1)))}; training for "
                "recourse needs lower and upper (or min_value and max_value) there",
                rows=np.flatnonzero(unbounded.any(1)),
            )
        return np.hstack([X, low, high])
    offsets = np.broadcast_to(allowed.b, (len(X), len(allowed.A)))
    return np.hstack([X, low, high, offsets])


def _within_one_category(actions: ActionSet, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bound one-hot columns by a whole category, which is all that a step can change."""
    columns = [j for group in actions.groups for j in group]
    reach = np.ones(len(columns)) if actions.unit is None else 1.0 / actions.unit[columns]
    low, high = low.copy(), high.copy()
    low[:, columns] = np.maximum(low[:, columns], -reach)
    high[:, columns] = np.minimum(high[:, columns], reach)
    return low, high


def split_bounds(rows: Tensor, n_features: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, low, high and offsets of rows made by `rows_with_bounds` (views)."""
    d = n_features
    return rows[:, :d], rows[:, d : 2 * d], rows[:, 2 * d : 3 * d], rows[:, 3 * d :]


TOLERANCE = 1e-9  # rounding of bounds in standardised units


@dataclass(frozen=True)
class OneHotGroup:
    """One-hot columns: positions, original units per standardised unit, and the means."""

    columns: Tensor
    unit: Tensor
    offset: Tensor

    def step(self, X: Tensor, gradient: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """Return the change of the group's columns, shape (n, k), that gains most."""
        # The category k of the highest g_k / u_k - g_c / u_c (u: unit, c: present category)
        # among those the bounds allow, staying included. People in no category stay.
        at, low, high = X[:, self.columns], low[:, self.columns], high[:, self.columns]
        bits, worth = at * self.unit + self.offset, gradient[:, self.columns] / self.unit
        present = bits.argmax(dim=1, keepdim=True)
        in_one = bits.gather(1, present) > 0.5
        may_leave = (low * self.unit).gather(1, present) <= -1.0 + TOLERANCE
        may_enter = high * self.unit >= 1.0 - TOLERANCE
        gain = (worth - worth.gather(1, present)).masked_fill(
            ~(may_enter & may_leave & in_one), -torch.inf
        )
        gain = gain.scatter(1, present, 0.0)
        best = gain.argmax(dim=1, keepdim=True)
        # Equal gains: stay.
        best = torch.where(gain.gather(1, best) > 0.0, best, present)
        change = torch.zeros_like(worth)
        change.scatter_add_(1, best, torch.ones_like(worth[:, :1]))
        change.scatter_add_(1, present, -torch.ones_like(worth[:, :1]))
        return change / self.unit


def movable_groups(actions: ActionSet, n_features: int) -> tuple[OneHotGroup, ...]:
    """Return the groups of which some column may move; none beside A δ + b ≥ 0, where all stay."""
    if actions.A is not None:
        return ()
    movable = actions.movable_among(n_features)
    unit = np.ones(n_features) if actions.unit is None else actions.unit
    offset = np.zeros(n_features) if actions.offset is None else actions.offset
    columns = [np.array(group) for group in actions.groups if movable[[*group]].any()]
    return tuple(
        OneHotGroup(*map(torch.from_numpy, (part, unit[part], offset[part]))) for part in columns
    )


def single_step(rule: Score, X: Floats, actions: ActionSet) -> Floats:
    r"""Return the action that training for recourse counts on, one linearised step.

    .. math:: \arg\max_{\delta \in \Delta(x)} \nabla s(x) \cdot \delta

    Parameters
    ----------
    rule
        The score whose gradient is taken, dropout off.
    X
        People, shape (n, d), standardised units.
    actions
        What they may change, bounded for every feature.
    """
    groups = movable_groups(actions, X.shape[1])
    risk = RecourseRisk(X.shape[1], constraints=actions.A, groups=groups)
    step: Floats = risk.action(rule, torch.from_numpy(rows_with_bounds(X, actions))).numpy()
    return step
