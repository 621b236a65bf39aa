"""What another threshold or another rule would bring, judged on the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.data.rows import Rows
from countermove.errors import ParameterError
from countermove.response import NoResponse, Response
from countermove.response.response_set import kinds_of, members_of
from countermove.scores import Score
from countermove.scores.base import values
from countermove.transfer.induced import at
from countermove.transfer.optimal import worst_difference
from countermove.transfer.report import LabelledRows

THRESHOLDS = 60
"""Thresholds that compete, at quantiles of the scores."""
AS_IS, BEST = "as it is", "best threshold after response"


def compare_rules(
    model: Score,
    others: Mapping[str, Score],
    chosen_on: Rows,
    judged_on: Rows,
    response: Response,
    failure_probability: float,
) -> dict[str, Any]:
    """Compare a rule with itself at its best threshold after response, and with other rules.

    Parameters
    ----------
    model
        The rule as it is deployed.
    others
        Rules made for people who respond, by name.
    chosen_on
        Standardised people on whom the threshold is chosen.
    judged_on
        People used for nothing else; where they are in clusters, these are the units.
    response
        How people respond; of a robust set the worst member counts.
    failure_probability
        Chance that an interval misses the difference, each on its own.

    Returns
    -------
    dict
        By rule: ``threshold`` (added to the score's own), ``nobody_moves``, ``after_response``
        and ``gain`` over the model as it is, with its interval.
    """
    choosing, judging = (
        response.with_windows(people.X, people.windows) for people in (chosen_on, judged_on)
    )
    best = best_threshold(model, (chosen_on.X, chosen_on.y), choosing)
    rules = {AS_IS: (model, 0.0), BEST: (at(model, best), best)}
    rules |= {name: (score, 0.0) for name, score in others.items()}
    X, y = judged_on.X, judged_on.y
    wrong = {name: _wrong(score, X, y, judging) for name, (score, _) in rules.items()}
    found = {}
    for name, (score, threshold) in rules.items():
        pair = wrong[AS_IS], wrong[name]
        gain = worst_difference(*pair, failure_probability, judged_on.clusters)
        found[name] = {
            "threshold": threshold,
            "nobody_moves": 1.0 - float(_wrong(score, X, y, NoResponse()).mean()),
            "after_response": 1.0 - float(wrong[name].mean(axis=1).max()),
            "gain": asdict(gain),
        }
    return found


def check_answered(score: Score, response: Response) -> None:
    """Refuse a score to which nobody knows how such people respond."""
    names = [kind.name for kind in kinds_of(response) if not kind.answers(score)]
    if names:
        raise ParameterError(
            f"the model is read as {score.kind.replace('_', ' ')}, and how people respond to that "
            f"by {', '.join(names)} response is not known: set serm.response.kind=best, which "
            "linear rules and trees have exactly and black boxes by search"
        )


def best_threshold(score: Score, people: LabelledRows, response: Response) -> float:
    """Return the threshold whose rule is most often right once people have responded to it."""
    X, y = people
    levels = np.linspace(0.0, 1.0, THRESHOLDS)
    grid = np.unique(np.append(np.quantile(values(score, X), levels), 0.0))
    errors = [_wrong(at(score, float(t)), X, y, response).mean(axis=1).max() for t in grid]
    tied = grid[np.isclose(errors, min(errors), rtol=0.0, atol=1e-12)]
    return float(tied[np.argmin(np.abs(tied))])


def _wrong(score: Score, X: Floats, y: Floats, response: Response) -> Floats:
    """Return everybody's chance of a wrong decision after each of the responses, (members, n)."""
    chances = np.stack([member.chance_after(score, X) for member in members_of(response)])
    return np.where(y > 0, 1.0 - chances, chances)
