"""From an `ActionSet` and people to their `Room`, or to a plain word why there is none."""

from __future__ import annotations

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.errors import DataError, InfeasibleActionsError, ParameterError, shown
from countermove.people import ActionSet
from countermove.recourse.room import TOLERANCE, Room

LARGEST_MOVE = 10.0
"""How far a search goes, in standardised units, where nothing bounds the action."""


def room_of(actions: ActionSet, X: Floats, largest: Floats | float = LARGEST_MOVE) -> Room:
    """Return what each person may do.

    Parameters
    ----------
    actions
        The allowed actions.
    X
        People, shape (n, d), standardised units.
    largest
        The search's own limit where the actions set none, shape () or (n, d).

    Raises
    ------
    InfeasibleActionsError
        Naming the people without any allowed action, and the bound or constraint.
    DataError
        Naming the people whose one-hot group is not one-hot.
    """
    low, high = _box(actions, X)
    d = X.shape[1]
    unit = np.ones(d) if actions.unit is None else actions.unit
    offset = np.zeros(d) if actions.offset is None else actions.offset
    open_low, open_high = np.isneginf(low), np.isposinf(high)
    low = np.where(open_low, np.minimum(-largest, high - largest), low)
    high = np.where(open_high, np.maximum(largest, low + largest), high)
    step = lattice(actions, d)
    low, high = _on_lattice(low, high, step)
    groups, chosen, choices = [], [], []
    for columns in map(np.array, actions.groups):
        now = _category(X[:, columns] * unit[columns] + offset[columns], columns)
        allowed = _choices(now, low[:, columns], high[:, columns], 1.0 / unit[columns])
        low[:, columns], high[:, columns] = _group_box(now, allowed, unit[columns])
        groups.append(columns)
        chosen.append(now)
        choices.append(allowed)
    b = None if actions.b is None else np.broadcast_to(actions.b, (len(X), actions.b.shape[-1]))
    return Room(
        low,
        high,
        step,
        unit,
        tuple(groups),
        tuple(chosen),
        tuple(choices),
        actions.A,
        b,
        open_low,
        open_high,
    )


def lattice(actions: ActionSet, n_features: int) -> Floats:
    """Return the step of each whole-number feature in standardised units, 0 for the others."""
    unit = np.ones(n_features) if actions.unit is None else actions.unit
    step = np.zeros(n_features)
    grouped = {j for group in actions.groups for j in group}
    whole = [j for j in actions.integer if j not in grouped]
    step[whole] = actions.step_sizes(n_features)[whole] / unit[whole]
    return step


def _box(actions: ActionSet, X: Floats) -> tuple[Floats, Floats]:
    try:
        low, high = actions.box(X)
    except InfeasibleActionsError as error:
        if not error.rows:
            raise
        row = error.rows[0]
        parts = actions.bounds(*X.shape)
        lower, upper = (np.broadcast_to(p, X.shape)[row] for p in (parts.lower, parts.upper))
        least, most = (
            np.broadcast_to(p, X.shape)[row] - X[row] for p in (parts.min_value, parts.max_value)
        )
        clash = np.flatnonzero(np.maximum(lower, least) > np.minimum(upper, most))
        j = int(clash[0])
        raise InfeasibleActionsError(
            f"{error}. In row {row}, feature {j} must change by at least "
            f"{max(lower[j], least[j]):.6g} and by at most {min(upper[j], most[j]):.6g}",
            rows=error.rows,
        ) from error
    return low.copy(), high.copy()


def _on_lattice(low: Floats, high: Floats, step: Floats) -> tuple[Floats, Floats]:
    """Pull the ends of the box in to whole steps from where each person stands."""
    for j in np.flatnonzero(step):
        first = np.ceil(low[:, j] / step[j] - 1e-7)
        last = np.floor(high[:, j] / step[j] + 1e-7)
        stuck = np.flatnonzero(first > last)
        if stuck.size:
            raise InfeasibleActionsError(
                f"feature {j} moves in whole units, and none lies within the bounds of the "
                f"people in rows {shown(stuck)}; widen them or drop the feature from `integer`",
                rows=stuck,
            )
        low[:, j], high[:, j] = first * step[j], last * step[j]
    return low, high


def _category(bits: Floats, columns: Index) -> Index:
    on = np.abs(bits - 1.0) <= 1e-6
    wrong = np.flatnonzero(
        (on.sum(axis=1) != 1) | ((np.abs(bits) <= 1e-6).sum(axis=1) != bits.shape[1] - 1)
    )
    if wrong.size:
        raise DataError(
            f"the columns {shown(columns)} are one group, of which exactly one is 1 and the "
            f"others 0 (in original units); rows {shown(wrong)} are not so",
            rows=wrong,
        )
    position: Index = on.argmax(axis=1)
    return position


def _choices(now: Index, low: Floats, high: Floats, bit: Floats) -> Mask:
    """Return who may choose which category: to leave the present one and to enter the other."""
    rows = np.arange(len(now))
    leave = low[rows, now] <= -bit[now] + TOLERANCE
    allowed: Mask = leave[:, None] & (high >= bit - TOLERANCE)
    # Entering another category must leave the third ones where they are.
    idle = (low <= TOLERANCE) & (high >= -TOLERANCE)
    others = (~idle).sum(axis=1)[:, None] - (~idle) - (~idle)[rows, now][:, None]
    allowed &= others <= 0
    allowed[rows, now] = idle.all(axis=1)
    stuck = np.flatnonzero(~allowed.any(axis=1))
    if stuck.size:
        raise InfeasibleActionsError(
            f"a one-hot group leaves no category to the people in rows {shown(stuck)}", rows=stuck
        )
    return allowed


def _group_box(now: Index, allowed: Mask, unit: Floats) -> tuple[Floats, Floats]:
    rows = np.arange(len(now))
    elsewhere = allowed.copy()
    elsewhere[rows, now] = False
    high = np.where(elsewhere, 1.0 / unit, 0.0)
    high[rows, now] = np.where(allowed[rows, now], 0.0, -1.0 / unit[now])
    low = np.zeros(allowed.shape)
    low[rows, now] = np.where(elsewhere.any(axis=1), -1.0 / unit[now], 0.0)
    return low, high


def home_of(room: Room) -> Floats:
    """Return each person's starting action: none where that is allowed, else one close to it.

    Raises
    ------
    InfeasibleActionsError
        With the people, and the constraint, for whom nothing is allowed.
    """
    home = room.snap(np.zeros_like(room.low))
    for i in np.flatnonzero(~room.meets(home)).tolist():
        home[i] = _some_action(room.rows(np.array([i])), i)
    return home


def _some_action(room: Room, row: int) -> Floats:
    """Return an allowed action of least absolute size for one person, by mixed-integer program."""
    from countermove.recourse.mixed_integer import smallest_action

    found = smallest_action(room)
    if found is not None:
        return found
    if room.A is None or room.b is None:
        raise ParameterError("a room without constraints has an action by construction")
    best = np.where(room.A > 0.0, room.high * room.A, room.low * room.A).sum(axis=1) + room.b[0]
    broken = np.flatnonzero(best < -TOLERANCE)
    which = (
        f"constraint {shown(broken)} of A δ + b ≥ 0" if broken.size else "A δ + b ≥ 0 as a whole"
    )
    raise InfeasibleActionsError(
        f"the person in row {row} has no allowed action: {which} cannot be met within the bounds",
        rows=[row],
    )
