"""Help over several retrainings, and help by labels instead of features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Index
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.online_recourse import together
from countermove.dynamics.participants import checked_rows
from countermove.dynamics.recourse_search import Search
from countermove.dynamics.recourse_setting import Reach, RecourseProblem
from countermove.errors import NotEnoughRowsError, ParameterError

SHORT_LIST = 20
"""How many label moves, the most promising first, are tried by refitting before one is made."""


@dataclass(frozen=True, eq=False)
class Round:
    """One retraining: what participants did in all until then, and what the queries got."""

    moves: Floats
    theta: Floats
    loss: float
    reached: NDArray[np.bool_]


def recourse_rounds(
    problem: RecourseProblem,
    reach: Reach,
    rounds: int,
    memory: float = 0.0,
    participants: Any = None,
    search: Search | None = None,
) -> list[Round]:
    r"""Return what a collective reaches retraining after retraining.

    Before each retraining every participant may move once more within the reach, from where
    they are; the platform fits :math:`(1 - m)` new data and :math:`m` of what it fitted last.
    Each round is planned for itself.

    Parameters
    ----------
    problem
        Who asks for what; queries are not data subjects.
    reach
        How far each goes between two retrainings.
    rounds
        How many retrainings.
    memory
        :math:`m`, in [0, 1): the share of the training data that is old.
    participants
        Rows or a mask; None: everybody.
    search
        How long to look in each round.
    """
    if rounds < 1 or not 0.0 <= memory < 1.0:
        raise ParameterError(
            f"expected rounds >= 1 and a memory in [0, 1), got {rounds} and {memory}"
        )
    if (problem.places >= 0).any():
        raise ParameterError("several rounds are planned for queries outside the data only")
    rows, start = checked_rows(participants, problem.crowd), problem.crowd
    told, X, old = [], start.X.copy(), start
    for _ in range(rounds):
        now = start.moved(X)
        seen = now if memory == 0.0 else _remembered(now, old, memory)
        found = together(_again(problem, seen), reach, rows, search=search)
        X = X + found.moves[: start.n]
        old = start.moved(X) if memory == 0.0 else _remembered(start.moved(X), old, memory)
        told.append(Round(X - start.X, found.theta, found.loss, found.reached))
    return told


def _remembered(now: Crowd, old: Crowd, memory: float) -> Crowd:
    return Crowd(
        np.concatenate([now.X, old.X]),
        np.concatenate([now.y, old.y]),
        np.concatenate([(1.0 - memory) * now.mass, memory * old.mass]),
    )


def _again(problem: RecourseProblem, crowd: Crowd) -> RecourseProblem:
    return RecourseProblem(
        crowd,
        problem.query,
        problem.goal,
        problem.learner,
        weight=problem.mass,
        labels=problem.labels,
    )


@dataclass(frozen=True, eq=False)
class LabelMoves:
    """Labels that participants report instead of their own.

    Parameters
    ----------
    rows
        Who reports another label, in the order of the choice.
    labels
        What they report, as codes.
    losses
        The loss of the goals at first and after each of them.
    theta
        The model that results.
    reached
        Which queries get the decision they want.
    """

    rows: Index
    labels: Floats
    losses: tuple[float, ...]
    theta: Floats
    reached: NDArray[np.bool_]


def label_moves(problem: RecourseProblem, most: int, participants: Any = None) -> LabelMoves:
    """Return whose labels to change, one after the other, for the greatest fall of the loss.

    Greedy: of all changes the most promising to first order are tried by refitting, and the
    best is made; it ends early where none helps. Features stay.

    Parameters
    ----------
    problem
        Who asks for what.
    most
        How many labels may change.
    participants
        Who may change theirs, rows or a mask; None: everybody.
    """
    if most < 1:
        raise NotEnoughRowsError(f"expected at least one label to change, got {most}")
    open_rows = checked_rows(participants, problem.crowd).tolist()
    y, theta = problem.crowd.y.copy(), problem.theta
    rows, labels, losses = [], [], [problem.loss(problem.theta)]
    for _ in range(min(most, len(open_rows))):
        best: tuple[float, int, float, Floats] | None = None
        for row, label in _short_list(problem, y, theta, open_rows):
            tried = y.copy()
            tried[row] = label
            there = problem.learner.fit(problem.crowd.moved(y=tried), theta)
            loss = problem.loss(there)
            if loss < (losses[-1] if best is None else best[0]):
                best = (loss, row, label, there)
        if best is None:
            break
        loss, row, label, theta = best
        y[row] = label
        open_rows.remove(row)
        rows.append(row)
        labels.append(label)
        losses.append(loss)
    return LabelMoves(
        np.array(rows, dtype=np.intp),
        np.array(labels),
        tuple(losses),
        theta,
        problem.reached(theta),
    )


def _short_list(
    problem: RecourseProblem, y: Floats, theta: Floats, rows: list[int]
) -> list[tuple[int, float]]:
    r"""Return the changes with the lowest loss to first order.

    Moving a row's weight from label a to b moves the model by
    :math:`-H^{-1} m (\nabla\ell(x, b) - \nabla\ell(x, a))`.
    """
    crowd = problem.crowd.moved(y=y)
    wish = problem.mass @ problem.goals.slopes(theta, problem.query, problem.goal)[0]
    v = problem.learner.solve(theta, crowd, wish)
    own = problem.learner.row_gradients(theta, crowd) @ v
    masses = {label: crowd.mass[y == label].sum() for label in problem.goals.known}
    ranked = []
    for label in problem.goals.known:
        other = problem.learner.row_gradients(theta, crowd.moved(y=np.full(crowd.n, label))) @ v
        change = -crowd.mass * (other - own)
        # The last of a class stays: a class nobody reports cannot be fitted.
        ranked += [
            (change[row], row, label)
            for row in rows
            if y[row] != label and masses[y[row]] > crowd.mass[row] * (1.0 + 1e-9)
        ]
    return [(row, label) for _, row, label in sorted(ranked)[:SHORT_LIST]]
