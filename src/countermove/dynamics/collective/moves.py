"""Members who move: their features, their labels or both, each alone or all alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats, Index
from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.spaces import Space
from countermove.dynamics.collective.utilities import Utility
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner
from countermove.errors import NotConvergedError, NotEnoughRowsError, ParameterError, shown
from countermove.people import ActionSet
from countermove.response.reduction import ActionPlan

if TYPE_CHECKING:
    from countermove.response._possible import BranchList


@dataclass(frozen=True, eq=False, kw_only=True)
class AllowedMoves:
    """What members may change and what bounds or costs it; documented at `Moves`."""

    columns: Sequence[int] | None = None
    labels: bool = False
    uniform: bool = False
    actions: ActionSet | None = None
    ball: Ball | None = None
    label_range: tuple[float, float] | None = None
    cost_rate: float | Floats = 0.0
    label_cost: float = 0.0
    allow_constant: bool = False

    def allowed(self) -> dict[str, Any]:
        """Return these settings by name."""
        return {each.name: getattr(self, each.name) for each in fields(AllowedMoves)}


@dataclass(frozen=True, eq=False)
class Moves(AllowedMoves, Space):
    r"""Members change their features, their labels, or both.

    ``eta`` has a row per member (or one row, where the move is uniform) and a column per
    feature that moves; the label's move comes last.

    Parameters
    ----------
    crowd
        Everybody the learner sees, before anyone moves.
    participants
        Members as rows or as a mask; None: everybody.
    columns
        Features that move; None: all of them; empty: labels alone.
    labels
        Whether members may report another label.
    uniform
        Whether all members make one and the same move.
    actions
        Bounds of the features' moves, per person; its integers and groups are relaxed. Bounds
        per person are in the order of the members. Where responses obey who can exist
        (`ActionSet.obeyed_in_responses`) members do, too; what their histories and the premises
        of relations say of them stays as it is.
    ball
        Bounds the size of each member's move of its features.
    label_range
        The lowest and highest label that can be reported.
    cost_rate
        :math:`\kappa_j \ge 0`: a move costs a member
        :math:`\sum_j \frac{\kappa_j}{2} \delta_j^2`; one number or one per moving feature.
    label_cost
        The same for the label's move.
    allow_constant
        Whether a feature that is the same for everybody may move.

    Raises
    ------
    ParameterError
        Where something that moves is neither bounded nor costly: the utility then has in
        general a supremum that no strategy attains.
    """

    crowd: Crowd
    participants: Index | None = None
    rows: Index = field(init=False)
    moving: tuple[int, ...] = field(init=False)
    lower: Floats = field(init=False)
    upper: Floats = field(init=False)
    rates: Floats = field(init=False)
    metric: Floats = field(init=False)
    home: BranchList | None = field(init=False)

    def __post_init__(self) -> None:
        rows = checked_rows(self.participants, self.crowd)
        moving = checked_columns(self.columns, self.crowd, self.allow_constant)
        if not moving and not self.labels:
            raise ParameterError("nothing may move: name at least one column, or allow labels")
        for name, value in (("rows", rows), ("moving", moving)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "rates", self._rates())
        object.__setattr__(self, "home", home_branches(self.actions, self.crowd.X[rows], moving))
        lower, upper = self._box()
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        mass = self.crowd.of_rows(rows).mass
        # A member whom the learner does not count still chooses its own move.
        mass = np.where(mass > 0.0, mass, mass.mean())[:, None]
        object.__setattr__(self, "metric", np.ones((1, 1)) if self.uniform else mass)
        self._refuse_endless()

    def stay(self) -> Floats:
        """Return no move, or the nearest to it that is allowed."""
        return self.project(np.zeros(self.shape))

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of ``eta``."""
        return (1 if self.uniform else len(self.rows), self._k + self.labels)

    @property
    def _k(self) -> int:
        return len(self.moving)

    def drawn(self, rng: np.random.Generator) -> Floats:
        """Return normal moves, as large as the bounds where there are any, brought inside."""
        size = np.minimum(self.upper - self.lower, 1.0)
        return self.project(size * rng.normal(size=self.shape))

    def project(self, eta: Floats) -> Floats:
        """Return the nearest allowed moves, person by person."""
        eta = np.asarray(eta, dtype=np.float64)
        if self.actions is not None and (self.home is not None or self.actions.A is not None):
            moves = self._constrained(self.actions, eta[:, : self._k])
            label = np.clip(eta, self.lower, self.upper)[:, self._k :]
            return np.hstack([moves, label])
        found: Floats = np.clip(eta, self.lower, self.upper)
        if self.ball is not None:
            k = self._k
            found[:, :k] = self.ball.project(eta[:, :k], self.lower[:, :k], self.upper[:, :k])
        return found

    def _constrained(self, actions: ActionSet, moves: Floats) -> Floats:
        """Return the nearest moves within linear constraints, and in the ball if there is one."""
        X, ball, home = self.crowd.X[self.rows], self.ball, self.home

        def nearest(points: Floats, who: Index) -> Floats:
            if home is not None:
                return within(home.rows(who), points, columns=list(self.moving))
            return actions.of_rows(who).project(X[who], points)

        everybody = np.arange(len(X))
        if ball is None:
            return nearest(moves, everybody)
        lower, upper = self.lower[:, : self._k], self.upper[:, : self._k]
        found = ball.project(moves, lower, upper)
        # Whoever meets the constraints in the ball already is where both sets are nearest.
        away = np.abs(nearest(found, everybody) - found)
        out = np.flatnonzero((away > TOLERANCE).any(axis=1))
        small = ball.of_rows(out)
        if out.size and home is not None:
            found[out] = nearest_in_ball(moves[out], lambda at, who: nearest(at, out[who]), small)
        elif out.size:
            found[out] = project_to_both(
                moves[out],
                partial(nearest, who=out),
                partial(small.project, lower=lower[out], upper=upper[out]),
            )
        return found

    def crowd_at(self, eta: Floats) -> Crowd:
        """Return everybody, the members where the moves take them."""
        X, y = self.crowd.X, self.crowd.y
        if self._k:
            X = X.copy()
            X[self.rows[:, None], list(self.moving)] += eta[:, : self._k]
        if self.labels:
            y = y.copy()
            y[self.rows] += eta[:, -1]
        return self.crowd.moved(X, y)

    def members_at(self, eta: Floats) -> Crowd:
        """Return the members where the moves take them."""
        return self.crowd_at(eta).of_rows(self.rows)

    def cost(self, eta: Floats) -> float:
        """Return the mean quadratic cost of a member's move."""
        return 0.5 * float(np.sum(self._shares() * self.rates * eta**2))

    def cost_slope(self, eta: Floats) -> Floats:
        """Return its derivative."""
        slope: Floats = self._shares() * self.rates * eta
        return slope

    def own_slope(self, eta: Floats, theta: Floats, utility: Utility, learner: Learner) -> Floats:
        """Return the slope of the members' utility in their own reports."""
        return self._gathered(*utility.by_rows(theta, self.members_at(eta), learner))

    def steering(
        self, eta: Floats, theta: Floats, whole: Crowd, v: Floats, learner: Learner
    ) -> Floats:
        """Return the learner's mixed derivative at the members' rows."""
        by_x, by_y = learner.pull(theta, whole, v)
        return self._gathered(by_x[self.rows], by_y[self.rows])

    def _gathered(self, by_x: Floats, by_y: Floats) -> Floats:
        """Keep what moves; a uniform move changes every row at once."""
        slopes = by_x[:, list(self.moving)]
        if self.labels:
            slopes = np.column_stack([slopes, by_y])
        return slopes.sum(axis=0, keepdims=True) if self.uniform else slopes

    def _shares(self) -> Floats:
        return np.ones((1, 1)) if self.uniform else self.crowd.of_rows(self.rows).mass[:, None]

    def _rates(self) -> Floats:
        rates = np.asarray(self.cost_rate, dtype=np.float64)
        if rates.ndim and rates.shape != (self._k,):
            raise ParameterError(
                f"costs are one number or one per moving feature ({self._k}), got {rates.shape}"
            )
        found = np.append(np.broadcast_to(rates, (self._k,)), [self.label_cost] * self.labels)
        if not np.isfinite(found).all() or (found < 0.0).any():
            raise ParameterError(f"costs are finite and not negative, got {found.tolist()}")
        return found[None, :]

    def _box(self) -> tuple[Floats, Floats]:
        lower, upper = np.full(self.shape, -np.inf), np.full(self.shape, np.inf)
        members = self.crowd.of_rows(self.rows)
        if self.actions is not None:
            self._check_constraints(self.actions)
            box = self.actions.box(members.X)
            if self.home is not None:
                box = (self.home.people.full(self.home.lo), self.home.people.full(self.home.hi))
            low, high = (end[:, list(self.moving)] for end in box)
            lower[:, : self._k] = low.max(axis=0) if self.uniform else low
            upper[:, : self._k] = high.min(axis=0) if self.uniform else high
        if self.label_range is not None and self.labels:
            low, high = (end - members.y for end in self.label_range)
            lower[:, -1] = low.max() if self.uniform else low
            upper[:, -1] = high.min() if self.uniform else high
        if (lower > upper).any():
            raise ParameterError(
                "no move is allowed to all members at once; let each make its own (uniform=False) "
                "or widen the bounds",
                rows=() if self.uniform else np.flatnonzero((lower > upper).any(axis=1)),
            )
        return lower, upper

    def _check_constraints(self, actions: ActionSet) -> None:
        if self.home is not None and self.uniform:
            raise ParameterError(
                "actions with relations between columns need one move per member (uniform=False), "
                "or let columns move alone: ActionSet.obeyed_in_responses(False)"
            )
        if actions.A is not None and (self.uniform or self._k != self.crowd.d):
            raise ParameterError(
                "actions with linear constraints (A, b) need one move per member and all columns "
                "(mark the others immutable)"
            )

    def _refuse_endless(self) -> None:
        endless = ~(np.isfinite(self.lower) & np.isfinite(self.upper)).all(axis=0)
        endless &= self.rates[0] == 0.0
        if self.ball is not None:
            endless[: self._k] = False
        if endless.any():
            names = [str(j) for j in self.moving] + ["the label"] * self.labels
            which = ", ".join(np.array(names)[endless])
            raise ParameterError(
                f"the moves of column {which} are neither bounded nor costly, so that no best "
                "strategy need exist (its utility can grow without bound); give "
                "actions with bounds, a ball, a label range, or a cost > 0"
            )


def checked_rows(participants: Any, crowd: Crowd) -> Index:
    """Return the members' rows, from rows, from a mask, or everybody from None."""
    if participants is None:
        return np.arange(crowd.n)
    given = np.asarray(participants)
    if given.dtype == np.bool_:
        if given.shape != (crowd.n,):
            raise ParameterError(
                f"a mask of participants has shape ({crowd.n},), got {given.shape}"
            )
        given = np.flatnonzero(given)
    if given.size == 0:
        raise NotEnoughRowsError("nobody takes part; a collective needs at least one participant")
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer):
        raise ParameterError(
            "participants are rows (whole numbers) or a mask (truth values); got an array of "
            f"{given.dtype} with shape {given.shape}"
        )
    wrong = given[(given < 0) | (given >= crowd.n)]
    if wrong.size:
        raise ParameterError(
            f"participants {shown(wrong)} are not among the {crowd.n} rows", rows=wrong
        )
    if len(np.unique(given)) != len(given):
        raise ParameterError("a participant is listed more than once; list each row once")
    return given.astype(np.intp)


def checked_participation(share: float) -> float:
    """Return the members' share of everybody after checking that it is one."""
    if not np.isfinite(share) or not 0.0 <= share <= 1.0:
        raise ParameterError(f"participation is a share in [0, 1], got {share}")
    if share == 0.0:
        raise NotEnoughRowsError(
            "participation is 0, so nobody takes part; a collective needs a share above 0"
        )
    return float(share)


def checked_columns(
    columns: Sequence[int] | None, crowd: Crowd, allow_constant: bool = False
) -> tuple[int, ...]:
    """Return the features that move: they exist, once each, and are not the constant one."""
    named = tuple(range(crowd.d)) if columns is None else tuple(int(j) for j in columns)
    missing = [j for j in named if not 0 <= j < crowd.d]
    if missing:
        raise ParameterError(
            f"column {shown(missing)} does not exist; the people have columns 0 to {crowd.d - 1}"
        )
    if len(set(named)) != len(named):
        raise ParameterError(f"a column is listed more than once: {shown(named)}")
    constant = [j for j in named if np.ptp(crowd.X[:, j]) == 0.0]
    if columns is not None and constant and crowd.n > 1 and not allow_constant:
        raise ParameterError(
            f"column {shown(constant)} is the same for everybody (the model's constant, perhaps), "
            "not something people report; name other columns"
        )
    return named


def home_branches(
    actions: ActionSet | None, X: Floats, columns: Sequence[int]
) -> BranchList | None:
    """Return the branch of possible actions everybody stands in; None where nothing ties columns.

    It is convex, and staying is in it: histories and premises are as they are. Only ``columns``
    move.
    """
    if actions is None:
        return None
    others = [j for j in range(X.shape[1]) if j not in columns]
    plan = ActionPlan(actions.holding(others), X.shape[1])
    if not plan.tied:
        return None
    every = plan.people(np.ascontiguousarray(X)).listed()
    return every.rows(every.home)


def within(branches: BranchList, moves: Floats, columns: Sequence[int]) -> Floats:
    """Return the nearest moves of some columns in each branch, shape (n, k)."""
    people = branches.people
    whole = np.zeros((len(moves), people.X.shape[1]))
    whole[:, columns] = moves
    nearest, _ = branches.project(whole[:, people.used])
    kept: Floats = people.full(nearest)[:, columns]
    return kept


ROUNDING = 1e-12
TOLERANCE = 1e-9
"""A sweep that moves no entry by more than this share of one more than the largest ends it."""
SWEEPS = 5_000
TRIALS = 50
"""Shares of a point whose nearest is looked for, at most: to the last digits."""


def nearest_in_ball(
    point: Floats, project: Callable[[Floats, Index], Floats], ball: Ball
) -> Floats:
    """Return the point of a convex set, zero in it, and of a round ball nearest to a point.

    ``project`` takes points and the rows whose sets they belong to. In a ball that is not round
    the point found is near: it lies in both, on the way to the nearest.
    """
    # With the multiplier m of a round ball it is the set's nearest to point / (1 + m).
    radii = np.broadcast_to(np.asarray(ball.radius), (len(point),))

    def beyond(share: Floats, rows: Index) -> Floats:
        found = project(share[:, None] * point[rows], rows)
        return np.asarray(ball.of_rows(rows).size(found) - radii[rows])

    rows: Index = np.arange(len(point))
    share, above = np.ones(len(point)), beyond(np.ones(len(point)), rows)
    rows = np.flatnonzero(above > 0.0)
    low, high, below, above = np.zeros(len(rows)), np.ones(len(rows)), -radii[rows], above[rows]
    share[rows], left, last = 0.0, radii[rows], np.zeros(len(rows))
    for trial in range(TRIALS):
        unknown = (left > ROUNDING * radii[rows]) & (high - low > ROUNDING)
        rows = rows[unknown]
        low, high, below, above, left, last = (
            np.asarray(part)[unknown] for part in (low, high, below, above, left, last)
        )
        if not rows.size:
            break
        # Regula falsi (Illinois), and a halving now and then, so that it cannot stall.
        way = np.divide(-below, above - below, out=np.full(len(rows), 0.5), where=above > below)
        middle = low + (high - low) * (0.5 if trial % 4 == 3 else way)
        found = beyond(middle, rows)
        inside = found <= 0.0
        side = np.where(inside, -1.0, 1.0)
        again, last = np.where(side == last, 0.5, 1.0), side
        below, above = (
            np.where(inside, found, again * below),
            np.where(inside, again * above, found),
        )
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        share[rows], left = low, np.where(inside, -found, left)
    return project(share[:, None] * point, np.arange(len(point)))


def project_to_both(
    point: Floats, first: Callable[[Floats], Floats], second: Callable[[Floats], Floats]
) -> Floats:
    """Return the point of both sets nearest to a point (Dykstra); the second holds exactly."""
    # SciPy has no such projection, and its general solvers take one person at a time.
    at = np.asarray(point, dtype=np.float64)
    left_first, left_second = np.zeros_like(at), np.zeros_like(at)
    for _ in range(SWEEPS):
        inside = first(at + left_first)
        left_first += at - inside
        there = second(inside + left_second)
        left_second += inside - there
        moved = float(np.abs(there - at).max(initial=0.0))
        apart = float(np.abs(there - inside).max(initial=0.0))
        at = there
        size = TOLERANCE * (1.0 + float(np.abs(at).max(initial=0.0)))
        if moved <= size and apart <= 1e3 * size:
            return at
    raise NotConvergedError(
        f"no nearest move within both the ball and the constraints after {SWEEPS} sweeps; they may "
        "barely intersect: widen the ball or the constraints"
    )
