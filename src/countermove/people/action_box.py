"""What an `ActionSet` leaves each person, as numbers: the box, inequalities, the nearest action.

Bounds on the action and on ``x_new`` meet here, together with directions, usual ranges and
cells that nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Mask
from countermove.errors import InfeasibleActionsError, shown
from countermove.people._action_arguments import filled

if TYPE_CHECKING:
    from countermove.people.actions import ActionSet

SLACK = 1e-9
"""Violations of a bound below this share of ``1 + |x|`` are rounding, not a request to move."""


@dataclass(frozen=True)
class Bounds:
    """The four bounds of an `ActionSet`, each of shape (1, d) or (n, d), infinite where absent."""

    lower: Floats
    upper: Floats
    min_value: Floats
    max_value: Floats


def directed_bounds(actions: ActionSet, n_rows: int, n_features: int) -> Bounds:
    """Return the bounds of a set with its directions folded in."""
    lower, upper, min_value, max_value = (
        filled(value, fill, n_rows, n_features, name)
        for value, fill, name in (
            (actions.lower, -np.inf, "lower"),
            (actions.upper, np.inf, "upper"),
            (actions.min_value, -np.inf, "min_value"),
            (actions.max_value, np.inf, "max_value"),
        )
    )
    lower, upper = lower.copy(), upper.copy()
    rising, falling = list(actions.only_increase), list(actions.only_decrease)
    lower[:, rising] = np.maximum(lower[:, rising], 0.0)
    upper[:, falling] = np.minimum(upper[:, falling], 0.0)
    fixed = list(actions.immutable)
    blocked = (lower[:, fixed] > 0.0) | (upper[:, fixed] < 0.0)
    if blocked.any():
        raise InfeasibleActionsError(
            "an immutable feature has an action bound that excludes 0; drop one of the two",
            rows=np.flatnonzero(blocked.any(axis=1)) if len(lower) > 1 else (),
        )
    lower[:, fixed], upper[:, fixed] = 0.0, 0.0
    return Bounds(lower, upper, min_value, max_value)


def own_box(actions: ActionSet, X: Floats) -> tuple[Floats, Floats]:
    """Return everybody's lowest and highest action; refuse people for whom none is allowed."""
    parts = actions.bounds(*X.shape)
    slack = SLACK * (1.0 + np.abs(X))
    below, above = parts.min_value - X, parts.max_value - X
    below = np.where((below > 0.0) & (below <= slack), 0.0, below)
    above = np.where((above < 0.0) & (above >= -slack), 0.0, above)
    lower = np.maximum(parts.lower, below)
    upper = np.minimum(parts.upper, above)
    if actions.possible is not None:
        lower, upper = actions.possible.box(X, lower, upper)
    unknown = actions.unknown(X)
    if unknown is not None:
        lower, upper = np.where(unknown, 0.0, lower), np.where(unknown, 0.0, upper)
    missing = np.isnan(X)  # A state of its own, which nobody leaves or enters.
    if missing.any():
        lower, upper = np.where(missing, 0.0, lower), np.where(missing, 0.0, upper)
    empty = (lower > upper).any(axis=1)
    if empty.any():
        raise infeasible(np.flatnonzero(empty))
    return lower, upper


def inequalities(actions: ActionSet, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return box and linear constraints as one set of rows ``(G, h)``."""
    n, d = lower.shape
    below = np.isfinite(lower).any(axis=0)
    above = np.isfinite(upper).any(axis=0)
    G = np.vstack([np.eye(d)[below], -np.eye(d)[above]])
    h = np.hstack([-lower[:, below], upper[:, above]])
    if actions.A is not None and actions.b is not None:
        G = np.vstack([G, actions.A])
        h = np.hstack([h, np.broadcast_to(actions.b, (n, len(actions.A)))])
    return G, h


def allowed(actions: ActionSet, X: Floats, action: Floats, tolerance: float) -> Mask:
    """Return whose action the set allows: box, rows, whole steps, groups and who can exist."""
    lower, upper = actions.box(X)
    inside = ((action >= lower - tolerance) & (action <= upper + tolerance)).all(axis=1)
    inside &= (action[:, list(actions.immutable)] == 0.0).all(axis=1)
    if actions.A is not None and actions.b is not None:
        inside &= (action @ actions.A.T + actions.b >= -tolerance).all(axis=1)
    unit = np.ones(X.shape[1]) if actions.unit is None else actions.unit
    offset = np.zeros(X.shape[1]) if actions.offset is None else actions.offset
    original, after = X * unit + offset, (X + action) * unit + offset
    whole = ((after - original) / actions.step_sizes(X.shape[1]))[:, list(actions.integer)]
    whole = np.nan_to_num(whole)  # Who misses a number stays without it, by the box.
    inside &= (np.abs(whole - np.round(whole)) <= 1e-6).all(axis=1)
    for group in map(list, actions.groups):
        bits = after[:, group]
        binary = np.minimum(np.abs(bits), np.abs(bits - 1.0)) <= 1e-6
        kept = np.abs(bits.sum(axis=1) - original[:, group].sum(axis=1)) <= 1e-6
        inside &= binary.all(axis=1) & kept
    if actions.possible is not None:
        inside &= actions.possible.allows(X, action, actions.unknown(X))
    result: Mask = inside
    return result


def nearest_action(actions: ActionSet, X: Floats, action: Floats) -> Floats:
    """Return the allowed action at the least distance, whole steps and groups relaxed."""
    from scipy.optimize import nnls

    lower, upper = actions.box(X)
    clipped: Floats = np.clip(action, lower, upper)
    if actions.A is None or actions.b is None:
        return clipped
    outside = (clipped @ actions.A.T + actions.b < 0.0).any(axis=1)
    G, h = inequalities(actions, lower, upper)
    for i in np.flatnonzero(outside):
        # Least-distance programming (Lawson and Hanson, chapter 23): a non-negative
        # least-squares problem whose residual is the direction of the nearest point.
        finite = np.isfinite(h[i])
        gap = -(h[i, finite] + G[finite] @ action[i])
        stacked = np.vstack([G[finite].T, gap])
        target = np.zeros(len(stacked))
        target[-1] = 1.0
        weights, residual = nnls(stacked, target)
        if residual < 1e-9:
            raise infeasible([int(i)])
        rest = stacked @ weights - target
        clipped[i] = action[i] - rest[:-1] / rest[-1]
        clipped[i] = np.clip(clipped[i], lower[i], upper[i])
    return clipped


def infeasible(rows: Iterable[int]) -> InfeasibleActionsError:
    """Return the error that names the people without any allowed action."""
    rows = [int(row) for row in rows]
    return InfeasibleActionsError(
        f"no action is allowed, not even staying, for the people in rows {shown(rows)}; "
        "widen their bounds or leave them out",
        rows=rows,
    )
