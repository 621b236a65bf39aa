r"""The best intercept for a fixed direction, judged by what people do.

For every person there is one shift of the intercept from which on they are
accepted: raising it only ever helps. So the accuracy after response is a step
function of the shift, and its maximum is found over the sorted thresholds: exactly for ``none``
and ``best``, elsewhere by probing rules. Responses found by ascent are local maxima, for which
this monotonicity is not proven: there the cut is the best of a search, not of all shifts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.randomness import generator
from countermove.response import ScalarResponse
from countermove.response.base import Response
from countermove.response.response_set import discretised
from countermove.response.training_signal import reach_around
from countermove.scores import Score
from countermove.training._labels import counted

AnyScore = TypeVar("AnyScore", bound=Score)
Penalty = Callable[[float], Floats]
"""Gives, for a shift of the intercept, one number per member."""

Kinds = Sequence[tuple[float, Floats]]
"""Of one model of people: shares, each with the shift from which on everybody is accepted."""

PRICED = 96
"""Shifts at which a penalty is computed: about one for each per cent of the people."""
GLOBAL_PROBES = 48
"""Rules tried over the whole range: no bracket then holds more than about 1/24 of the people."""
LOCAL_PROBES = 24
"""Rules tried around the best: resolves it to a few people in a thousand."""

SELDOM = 3
"""Costly responses are computed this many times less often: brackets of an eighth of the people,
and the best one resolved to some per cent."""


@dataclass(frozen=True)
class Cut:
    """A shift of the intercept and the accuracy after response it gives on the rows used."""

    shift: float
    accuracy: float


def shift_intercept(score: AnyScore, shift: float) -> AnyScore:
    """Return a copy of the score with ``shift`` added to its intercept."""
    shifted = copy.deepcopy(score)
    with torch.no_grad():
        shifted.bias.add_(shift)
    return shifted


def best_shift(
    score: Score,
    responses: Sequence[Response],
    X: Floats,
    y: Floats,
    weights: Sequence[float] | None = None,
    smoothing: float = 0.0,
    penalty: Penalty | None = None,
) -> Cut:
    """Return the shift of the intercept with the highest accuracy after response."""
    if not responses:
        raise ParameterError("a bias search needs at least one response")
    # The worst member counts, or the weighted mean. Smoothing averages the accuracy over that share
    # of all cuts on either side, which is steadier on new people; a penalty, in shares of people
    # misjudged, is subtracted per member.
    return best_cut(_members(score, responses, X, y), y, weights, smoothing, penalty)


def shift_spread(
    score: Score,
    rules: Sequence[Score],
    responses: Sequence[Response],
    X: Floats,
    y: Floats,
    weights: Sequence[float] | None = None,
    smoothing: float = 0.0,
) -> tuple[float, float]:
    """Return mean and variance of the best shift over refits, each on its draw of the rows."""
    draws, found = generator(0, "cut"), []
    members = [
        [(share, _thresholds_around(score, kind, X, y)) for share, kind in discretised(response)]
        for response in responses
    ]
    for rule in rules:
        who = draws.integers(0, len(y), len(y))
        again = [[(share, around(rule)[who]) for share, around in kinds] for kinds in members]
        found.append(best_cut(again, y[who], weights, smoothing).shift)
    return float(np.mean(found)), float(np.var(found, ddof=1))


def _thresholds_around(
    score: Score, response: Response, X: Floats, y: Floats
) -> Callable[[Score], Floats]:
    """Return a function from a rule near the score to everybody's shift under it."""
    if not response.exact_reach:
        # Every threshold takes a search: the direction stays that of the score.
        known = accepted_from(score, response, X, y)
        return lambda _: known
    reach = reach_around(response, score, X)
    if reach is None:
        return lambda rule: accepted_from(rule, response, X, y)
    return lambda rule: -reach.scores_nearby(rule)


def _members(score: Score, responses: Sequence[Response], X: Floats, y: Floats) -> list[Kinds]:
    """Return, per model of people, its kinds with the shift from which on each is accepted."""
    return [kinds_accepted_from(score, response, X, y) for response in responses]


def kinds_accepted_from(score: Score, response: Response, X: Floats, y: Floats) -> Kinds:
    """Return the kinds of one model of people, each with everybody's `accepted_from`."""
    return [(share, accepted_from(score, kind, X, y)) for share, kind in discretised(response)]


def best_cut(
    members: Sequence[Kinds],
    y: Floats,
    weights: Sequence[float] | None = None,
    smoothing: float = 0.0,
    penalty: Penalty | None = None,
) -> Cut:
    """Return the best cut between two sorted thresholds; ties go to the widest gap."""
    thresholds = [values for kinds in members for _, values in kinds]
    is_mean = weights is not None or len(members) == 1
    if is_mean and penalty is None:
        parts = (1.0,) if weights is None else weights
        shares = [w * share for w, kinds in zip(parts, members, strict=True) for share, _ in kinds]
        edges, joined = _mean_curve(thresholds, y, shares)
    else:
        edges = np.unique(np.concatenate(thresholds))
    spread = max(float(edges[-1] - edges[0]), 1e-3)
    edges = np.concatenate([[edges[0] - 0.1 * spread], edges, [edges[-1] + 0.1 * spread]])
    between, room = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges)
    if not is_mean or penalty is not None:
        curves = np.stack([_accuracy_curve(kinds, y, between) for kinds in members])
        joined = _joined(curves, weights)
    judged = moving_mean(joined, round(smoothing * len(between)))
    if penalty is None:
        chosen = _roomiest(judged, room)
    else:
        groups = np.array_split(np.arange(len(between)), min(PRICED, len(between)))
        tried = np.array([group[_roomiest(judged[group], room[group])] for group in groups])
        priced = np.stack([penalty(float(shift)) for shift in between[tried]], axis=1)
        chosen = tried[_roomiest(_joined(curves[:, tried] - priced, weights), room[tried])]
    return Cut(float(between[chosen]), float(joined[chosen]))


def _joined(curves: Floats, weights: Sequence[float] | None) -> Floats:
    """Return the worst member's, or the weighted, curve."""
    joined: Floats = curves.min(axis=0) if weights is None else np.asarray(weights) @ curves
    return joined


def _roomiest(values: Floats, room: Floats) -> int:
    """Return the place of the highest value; of several, the one with most room around it."""
    highest = np.flatnonzero(values >= values.max() - 1e-12)
    return int(highest[np.argmax(room[highest])])


def moving_mean(values: Floats, width: int) -> Floats:
    """Return the mean over ``width`` neighbours on either side of the last axis, edges repeated."""
    if width == 0:
        return values
    sides = [(0, 0)] * (values.ndim - 1) + [(width + 1, width)]
    sums = np.cumsum(np.pad(values, sides, mode="edge"), axis=-1)
    means: Floats = (sums[..., 2 * width + 1 :] - sums[..., : -2 * width - 1]) / (2 * width + 1)
    return means


def _mean_curve(
    thresholds: Sequence[Floats], y: Floats, shares: Sequence[float]
) -> tuple[Floats, Floats]:
    """Return the distinct thresholds and the mean accuracy before, between and after them."""
    placed = np.concatenate(thresholds)
    order = np.argsort(placed)
    placed = placed[order]
    # Whoever is accepted from here on is right if the label is favourable, else wrong.
    gained = np.concatenate([share * y for share in shares])[order]
    last = np.append(placed[1:] > placed[:-1], True)
    curve: Floats = np.append(0.0, np.cumsum(gained)[last])
    curve = (curve + sum(shares) * np.abs(y[y <= 0]).sum()) / counted(y)
    return placed[last], curve


def _accuracy_curve(kinds: Kinds, y: Floats, shifts: Floats) -> Floats:
    """Return the mean accuracy at every shift, people accepted from their thresholds on."""
    curve = np.zeros(len(shifts))
    for share, thresholds in kinds:
        accepted_rightly = accepted_at(thresholds[y > 0], y[y > 0], shifts)
        refused = np.abs(y[y <= 0])
        refused_rightly = refused.sum() - accepted_at(thresholds[y <= 0], refused, shifts)
        curve += share * (accepted_rightly + refused_rightly) / counted(y)
    return curve


def accepted_at(thresholds: Floats, size: Floats, shifts: Floats) -> Floats:
    """Return how many people are accepted at every shift, each counted by size."""
    order = np.argsort(thresholds)
    so_far = np.append(0.0, np.cumsum(size[order]))
    found: Floats = so_far[np.searchsorted(thresholds[order], shifts, side="right")]
    return found


def accepted_from(score: Score, response: Response, X: Floats, y: Floats) -> Floats:
    """Return, per person, the shift from which on they are accepted."""
    if response.exact_reach:
        with torch.no_grad():
            exact: Floats = -response.scores_after(score, torch.from_numpy(X)).numpy()
        return exact
    if _everybody_alike(score, response, X):
        with torch.no_grad():
            scores: Floats = score(torch.from_numpy(X)).numpy()
        return _lowest_score(score, response, X[:1]) - scores
    probes, seldom = _Probes(score, response, X), SELDOM if response.costly else 1
    probes.bisect(GLOBAL_PROBES // seldom)
    best = best_cut([[(1.0, probes.thresholds())]], y).shift
    probes.bisect(LOCAL_PROBES // seldom, around=best)
    return probes.thresholds()


def _everybody_alike(score: Score, response: Response, X: Floats) -> bool:
    """Return whether a smoothed response depends on the score alone: nothing bounds it."""
    if not isinstance(response, ScalarResponse) or score.slope() is None:
        return False
    alone = response.for_people(X).plan(score.n_features).facts(len(X))[0]
    return alone and response.actions.A is None


def _lowest_score(score: Score, response: Response, row: Floats) -> float:
    """Return the score from which on a person is accepted after response, to rounding."""
    probes = _Probes(score, response, row)
    with torch.no_grad():
        at = float(score(torch.from_numpy(row)))
    low, high = probes.shifts[0], probes.shifts[-1]
    while high - low > 1e-12 * max(1.0, probes.step, abs(high)):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if probes.accepts(middle) else (middle, high)
    return at + high


class _Probes:
    """Decisions at a growing set of shifts, each between refusing and accepting everybody."""

    def __init__(self, score: Score, response: Response, X: Floats) -> None:
        self.score, self.response, self.X = copy.deepcopy(score), response, X
        self.bias = float(score.bias.detach())
        with torch.no_grad():
            values = score(torch.from_numpy(X)).numpy()
        self.step = max(float(np.ptp(values)), 1.0)
        self.shifts: list[float] = []
        self.accepted: list[NDArray[np.bool_]] = []
        # Nobody needs to move once the lowest score is favourable.
        self._probe(float(-values.min()) + 1e-9 * self.step)
        lowest, step = float(-values.max()), self.step
        for _ in range(60):
            lowest, step = lowest - step, 2.0 * step
            if not self._probe(lowest).any():
                break

    def bisect(self, probes: int, around: float | None = None) -> None:
        """Halve, ``probes`` times, the bracket that holds most people (near ``around``)."""
        if around is not None:
            position = int(np.searchsorted(self.shifts, around))
            low = self.shifts[max(position - 2, 0)]
            high = self.shifts[min(position + 1, len(self.shifts) - 1)]
        for _ in range(probes):
            counts = np.diff([int(accepted.sum()) for accepted in self.accepted]).astype(float)
            left, right = np.array(self.shifts[:-1]), np.array(self.shifts[1:])
            if around is not None:
                counts[(left < low) | (right > high)] = 0.0
            counts[right - left < 1e-9 * self.step] = 0.0
            widest = int(np.argmax(counts))
            if counts[widest] <= 1.0:
                return
            self._probe(0.5 * (left[widest] + right[widest]))

    def thresholds(self) -> Floats:
        """Return the middle of the bracket each person's threshold lies in."""
        shifts = np.array(self.shifts)
        refusals = (~np.stack(self.accepted)).sum(axis=0)
        middles = 0.5 * (shifts[1:] + shifts[:-1])
        edges = np.concatenate([[shifts[0] - self.step], middles, [shifts[-1] + self.step]])
        found: Floats = edges[refusals]
        return found

    def accepts(self, shift: float) -> NDArray[np.bool_]:
        """Return who is accepted at a shift."""
        with torch.no_grad():
            self.score.bias.fill_(self.bias + shift)
        return self.response.decisions_after(self.score, self.X)

    def _probe(self, shift: float) -> NDArray[np.bool_]:
        accepted = self.accepts(shift)
        position = int(np.searchsorted(self.shifts, shift))
        self.shifts.insert(position, shift)
        self.accepted.insert(position, accepted)
        return accepted
