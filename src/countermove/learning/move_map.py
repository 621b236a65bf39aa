"""Where people stand and where they move to, in two dimensions, at several costs.

Both rules are published in turn and people respond to each. The two axes are chosen so
that nothing is lost about decisions: a person is drawn beyond a boundary iff they are approved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.randomness import generator
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.base import deciding
from countermove.scores.storage import PublishedModel

SCALES = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Multiples of the assumed cost."""
SHOWN = 240
"""People drawn: more arrows hide each other."""
SHOWN_COSTLY = 60
"""The same where a response takes long; then nobody else is measured either."""
DIGITS = 4
"""Of a coordinate: a ten-thousandth of a standard deviation is less than a pixel."""
PARALLEL = 1e-6
"""Share of a direction below which nothing of it is left beside another one."""


@dataclass(frozen=True)
class Projection:
    """Two coordinates of a person, and both boundaries in them."""

    # "linear" for two linear scores, "parallel" where their weights are; "scores" for any others,
    # "shifted" where one is the other at another threshold.
    kind: str
    place: Callable[[Floats], Floats]  # from people (n, d) to coordinates (n, 2)
    # Of each rule (a, b, c): the people with a u + b v + c >= 0 are approved.
    boundaries: Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True)
class MappedPeople:
    """People who respond: features (n, d), labels ±1 (n,), and the positions of those drawn."""

    X: Floats
    y: Floats
    seen: NDArray[np.intp]


def move_map(
    blind: PublishedModel,
    strategic: PublishedModel,
    test: pd.DataFrame,
    schema: Schema,
    response: Response,
    seed: int,
) -> dict[str, Any]:
    """Let test people respond to both rules at every cost scale; return numbers and points."""
    # The numbers are of all test rows, at scale 1 those of metrics.json; of the people drawn alone
    # where a response takes long (rows.measured says of how many). Of people who differ the moves
    # are those of one type drawn per row, approvals and accuracies are expected ones.
    rules = {"strategic": strategic.rule, "blind": blind.rule}
    people = rows_of(test, schema)
    member = members_of(response)[0].with_windows(people.X, people.windows)
    slow = member.costly or any(score.slope() is None for score in rules.values())
    shown = _drawn(len(people.y), SHOWN_COSTLY if slow else SHOWN, seed)
    measured = shown if slow else np.arange(len(people.y))
    mapped = MappedPeople(
        people.X[measured], people.y[measured], np.flatnonzero(np.isin(measured, shown))
    )
    drawing, of_measured = (
        projection(strategic.rule, blind.rule, people.X),
        member.of_rows(measured),
    )
    return {
        "dataset": schema.name,
        "response": member.name,
        "cost": member.cost.describe(),
        "rows": {"test": len(people.y), "measured": len(measured), "shown": len(shown)},
        "projection": drawing.kind,
        "boundaries": {name: list(line) for name, line in drawing.boundaries.items()},
        "people": {"row_id": people.ids[shown].tolist(), "label": people.y[shown].tolist()}
        | _coordinates(drawing, people.X[shown]),
        "rules": {
            name: [_responses(score, mapped, of_measured, scale, drawing) for scale in SCALES]
            for name, score in rules.items()
        },
    }


def projection(strategic: Score, blind: Score, X: Floats) -> Projection:
    """Choose two axes in which both boundaries are straight lines."""
    # For linear scores: u, the distance to the strategic boundary, and v, what the blind rule reads
    # besides (if parallel: where people differ most). Both scores are affine in (u, v).
    if not (strategic.kind == blind.kind == "linear"):
        return _by_scores(strategic, blind, X)
    (ws, bs), (wb, bb) = _linear(strategic), _linear(blind)
    length = float(np.linalg.norm(ws)) or 1.0
    forward = ws / length
    rest = wb - (wb @ forward) * forward
    parallel = float(np.linalg.norm(rest)) <= PARALLEL * max(float(np.linalg.norm(wb)), 1e-300)
    across = _largest_spread(forward, X) if parallel else rest / np.linalg.norm(rest)

    def place(rows: Floats) -> Floats:
        return np.stack([rows @ forward + bs / length, rows @ across], axis=1)

    along = float(wb @ forward)
    line = (along, 0.0 if parallel else float(wb @ across), bb - along * bs / length)
    lines = {"strategic": (1.0, 0.0, 0.0), "blind": line}
    return Projection("parallel" if parallel else "linear", place, lines)


def _by_scores(strategic: Score, blind: Score, X: Floats) -> Projection:
    """Return the scores as axes, or one of them where the other adds nothing."""
    first, second = _scores(strategic, X), _scores(blind, X)
    slope, offset = np.polyfit(first, second, 1) if np.ptp(first) > 0.0 else (0.0, 0.0)
    apart = np.abs(slope * first + offset - second).max()
    if slope > 0.0 and apart <= PARALLEL * np.ptp(second):
        across = _largest_spread(np.zeros(X.shape[1]), X)
        lines = {"strategic": (1.0, 0.0, 0.0), "blind": (float(slope), 0.0, float(offset))}
        return Projection(
            "shifted", lambda rows: np.stack([_scores(strategic, rows), rows @ across], 1), lines
        )
    lines = {"strategic": (1.0, 0.0, 0.0), "blind": (0.0, 1.0, 0.0)}
    return Projection(
        "scores", lambda rows: np.stack([_scores(s, rows) for s in (strategic, blind)], 1), lines
    )


def _largest_spread(forward: Floats, X: Floats) -> Floats:
    """Return the unit direction across ``forward`` in which people differ most."""
    beside = X - X.mean(axis=0)
    beside = beside - np.outer(beside @ forward, forward)
    first: Floats = np.linalg.svd(beside, full_matrices=False)[2][0]
    return first * (1.0 if first[np.abs(first).argmax()] > 0 else -1.0)


def _responses(
    score: Score, mapped: MappedPeople, response: Response, scale: float, drawing: Projection
) -> dict[str, Any]:
    """Return what people do when moves cost ``scale`` times as much, and who is drawn where."""
    scaled = response.with_price(scale)
    found = scaled.respond(score, mapped.X, on_failure="mask")
    moved = np.asarray(found.moved, dtype=bool)
    approved = scaled.chance_after(score, mapped.X)
    movers = np.flatnonzero(moved[mapped.seen])
    ends = _coordinates(drawing, np.asarray(found.x_new)[mapped.seen][movers])
    return {
        "scale": scale,
        "share_moved": float(moved.mean()),
        "mean_cost": float(np.asarray(found.cost)[moved].mean()) if moved.any() else None,
        "approved": float(approved.mean()),
        "accuracy": float(np.mean(np.where(mapped.y > 0, approved, 1.0 - approved))),
        "who": movers.tolist(),
    } | ends


def _drawn(n: int, most: int, seed: int) -> NDArray[np.intp]:
    """Return the positions of the people drawn, in order."""
    chosen = generator(seed, "move map").permutation(n)[:most]
    return np.sort(chosen).astype(np.intp)


def _coordinates(drawing: Projection, rows: Floats) -> dict[str, list[float]]:
    places = np.round(drawing.place(rows), DIGITS) + 0.0
    return {"x": places[:, 0].tolist(), "y": places[:, 1].tolist()}


def _scores(score: Score, rows: Floats) -> Floats:
    with deciding(score), torch.no_grad():
        found: Floats = score(torch.from_numpy(np.ascontiguousarray(rows))).numpy()
    return found


def _linear(score: Score) -> tuple[Floats, float]:
    slope = score.slope()
    assert slope is not None  # a linear score has one
    return slope.detach().numpy(), float(score.bias.detach())
