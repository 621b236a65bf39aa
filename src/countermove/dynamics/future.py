r"""What becomes of a deployed rule that is retrained on the people who responded to it.

Every period the people respond to the last rule, with their labels, and a learner is fitted to
where they stand: :math:`\theta_{t+1} = A(D(\theta_t))` from the deployed :math:`\theta_0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates.betting import clustered_interval
from countermove.certificates.intervals import MeasuredShare, per_cent
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import Learner, LogisticLearner
from countermove.dynamics.retraining.populations import LevelKPopulation
from countermove.errors import NotConvergedError, NotEnoughRowsError, SolverError
from countermove.randomness import generator
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores import (
    LinearScore,
    MLPScore,
    PartlyLinearScore,
    RecurrentScore,
    Score,
)
from countermove.scores.base import values

Course = Literal["settles", "cycles", "moves on", "collapses"]

PATIENCE, MAP_PATIENCE = 5, 2
"""Rounds in a row in which next to no decision may change, of the rule and on the map."""
MAP_ROUNDS = 8
ROUNDING = 1e-9
"""Changes of normalised scores below this are rounding."""
LONGEST_CYCLE = 6
"""Rounds after which a rule that returns is said to cycle."""
PRICES = (0.25, 0.5, 1.0, 2.0)
"""Multiples of the stated price of moving on the map."""
LOOKING_AHEAD = (0.0, 0.5, 1.0)
"""Shares of people of level 2 on the map: they respond to the rule they expect next."""
CHEAPEST = 1.0 / 64.0
"""The lowest multiple of the price at which the end of stability is looked for."""
NETWORKS = (MLPScore, PartlyLinearScore, RecurrentScore)
NETWORK_TOLERANCE = 1e-3
"""Gradient at which the refit of a network ends: no decision of a table depends on more."""
NETWORK_PEOPLE, CLIMBED_PEOPLE = 1_000, 600
"""Rows that retrain a network at most, and where people climb it: its future takes seconds too."""


@dataclass(frozen=True)
class FutureTerms:
    """How far ahead the future of a rule is computed.

    Parameters
    ----------
    rounds
        Retrainings after which a rule that has not settled is said not to.
    people, map_people
        Rows that retrain the rule, and those of the map over prices; more are drawn from.
    tolerated
        Share of decisions that may change from round to round in a rule that has settled: people
        who want a decision jump, so that a few keep changing on any finite table.
    failure_probability
        Chance that an interval of the accuracy misses.
    """

    rounds: int = 20
    people: int = 20_000
    map_people: int = 2_000
    tolerated: float = 0.01
    failure_probability: float = 0.05


@dataclass(frozen=True)
class RetrainingCourse:
    """Where retraining leads at one price of moving and one share who look ahead."""

    price: float  # multiple of the stated one
    looking_ahead: float
    course: Course
    rounds: int  # until it settled, or all that were tried
    changing: float  # mean share of decisions that still change from one round to the next
    contraction: float | None  # mean factor by which the change of the rule shrank a round
    accuracy: float  # once people have responded to the last rule


@dataclass(frozen=True)
class RetrainingFuture:
    """What becomes of the rule; ``words`` says it, and why it does not apply where it does not."""

    applies: bool
    words: str
    learner: str = ""
    response: str = ""
    course: RetrainingCourse | None = None
    accuracy: MeasuredShare | None = None  # of the last rule, on people who judge alone
    accuracy_now: MeasuredShare | None = None  # of the deployed rule, on the same people
    majority: float | None = None  # accuracy of giving all of them the more frequent outcome
    # multiple of the stated price below which retraining does not settle; None: never seen
    settles_above: float | None = None
    map: tuple[RetrainingCourse, ...] = ()
    n: int = 0  # rows that retrained it
    map_n: int = 0  # those of the map

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return asdict(self) | {"map": [asdict(cell) for cell in self.map]}


def _measured(
    right: Mask, failure_probability: float, clusters: NDArray[Any] | None
) -> MeasuredShare:
    if clusters is None:
        return MeasuredShare.of(right, failure_probability)
    ends = clustered_interval(right, clusters, failure_probability)
    return MeasuredShare(float(right.mean()), *ends, 1.0 - failure_probability, len(right))


def retraining_future(
    rule: Score,
    made_on: tuple[Floats, Floats],
    judged_on: tuple[Floats, Floats],
    response: Response,
    *,
    learner: Learner | None = None,
    terms: FutureTerms | None = None,
    judging: Response | None = None,
    clusters: NDArray[Any] | None = None,
    seed: int = 0,
) -> RetrainingFuture:
    """Return what becomes of a rule that is retrained on the people who responded to it.

    Parameters
    ----------
    rule
        The rule as deployed; retraining begins with it.
    made_on
        Features (n, d) and labels ±1 of the people every retraining sees, before they respond.
    judged_on
        The same of people used for nothing else: accuracies are measured on them.
    response
        How people respond; of a set the first member counts. Types and months are those of
        ``made_on``.
    learner
        What retrains, of labels 0 and 1; None: logistic regression, exactly, for a linear rule,
        gradients from its own weights on for a network. For trees and models of others give
        one (`TrainedLearner`, `TorchLearner`).
    terms
        See `FutureTerms`; a network is retrained on `NETWORK_PEOPLE` rows at most.
    judging
        The response with the types and months of ``judged_on``; None: ``response``.
    clusters
        Whose rows of ``judged_on`` belong together; accuracies have intervals of clusters then.
    seed
        Of the rows drawn.
    """
    terms = FutureTerms() if terms is None else terms
    people, judges = members_of(response)[0], members_of(judging or response)[0]
    if learner is None and not isinstance(rule, (LinearScore, *NETWORKS)):
        return RetrainingFuture(False, f"Not computed: {_unknown(rule)}", response=people.name)
    excuse = _excuse(rule, people, made_on)
    if excuse:
        return RetrainingFuture(False, excuse, response=people.name)
    climbed = people.costly
    if isinstance(rule, NETWORKS):
        most = CLIMBED_PEOPLE if climbed else NETWORK_PEOPLE
        terms = replace(terms, people=min(terms.people, most), map_people=min(terms.people, most))
    chosen = learner or own_learner(rule, min(terms.people, len(made_on[1])))
    base, people = _some(made_on, people, terms.people, seed)
    future = _Future(rule, base, people, chosen, terms)
    last, course = future.follow(1.0, 0.0, terms.rounds, PATIENCE)
    accuracy = [
        _measured(
            judges.decisions_after(score, judged_on[0]) == (judged_on[1] > 0),
            terms.failure_probability,
            clusters,
        )
        for score in (last, rule)
    ]
    small = _Future(rule, *_some(made_on, members_of(response)[0], terms.map_people, seed), chosen,
                    terms)  # fmt: skip
    # Whoever climbs takes seconds a round: only the stated price then.
    prices = (1.0,) if climbed else PRICES
    cells = tuple(small.follow(price, share)[1] for price in prices for share in LOOKING_AHEAD)
    edge = None if climbed else small.edge(cells)
    good = float(np.mean(judged_on[1] > 0.0))
    majority = max(good, 1.0 - good)
    words = _words(course, accuracy, majority, edge, cells)
    return RetrainingFuture(
        applies=True,
        words=words,
        learner=chosen.name,
        response=people.name,
        course=course,
        accuracy=accuracy[0],
        accuracy_now=accuracy[1],
        majority=majority,
        settles_above=edge,
        map=cells,
        n=base.n,
        map_n=small.base.n,
    )


def own_learner(rule: Score, n: int, tolerance: float = NETWORK_TOLERANCE) -> Learner:
    """Return what refits a rule to n people: exactly a linear one, a network from its weights."""
    if isinstance(rule, LinearScore):
        return LogisticLearner(1.0 / n)
    from countermove.dynamics.learners import TorchLearner

    return TorchLearner(rule, penalty=1.0 / n, tolerance=tolerance)


def _unknown(rule: Score) -> str:
    return (
        f"rules of kind {rule.kind} have no learner that refits them in seconds; "
        "retraining_future(..., learner=...) takes one."
    )


def _excuse(rule: Score, people: Response, made_on: tuple[Floats, Floats]) -> str:
    """Return why there is no future to compute, or nothing."""
    if len(np.unique(made_on[1])) < 2:
        raise NotEnoughRowsError("retraining needs people of both labels, got one")
    if not people.answers(rule):
        return f"Does not apply: {people.name} responses to such a rule are not known."
    if not people.respond(rule, made_on[0], on_failure="mask").moved.any():
        return (
            "Nobody moves in answer to this rule at the stated price, so that retraining sees the "
            "people it has already seen."
        )
    return ""


@dataclass(frozen=True, eq=False)
class _Future:
    """The rule, the people who answer it, and the learner that retrains it on them."""

    rule: Score
    base: Crowd
    people: Response
    learner: Learner
    terms: FutureTerms

    def follow(
        self,
        price: float,
        looking_ahead: float,
        rounds: int = MAP_ROUNDS,
        patience: int = MAP_PATIENCE,
    ) -> tuple[Score, RetrainingCourse]:
        """Return the last rule and the course of retraining; ``patience`` rounds must be quiet."""
        people = self.people.with_cost(self.people.cost.times(price))
        shares = {1: 1.0 - looking_ahead, 2: looking_ahead} if looking_ahead else {1: 1.0}
        population = LevelKPopulation(self.base, people, shares)
        score, theta, made = self.rule, None, [self._standing(self.rule)]
        course: Course = "moves on"
        quiet = 0
        for _ in range(rounds):
            try:
                crowd = (
                    self.base.moved(people.respond(score, self.base.X).x_new)
                    if theta is None
                    else population.answer(theta, self.learner)
                )
                theta = self.learner.fit(crowd, theta)
            except (NotConvergedError, SolverError):
                course = "collapses" if isinstance(self.rule, LinearScore) else "moves on"
                break
            score = self.learner.score(theta)
            made.append(self._standing(score))
            quiet = quiet + 1 if _changed(made[-2], made[-1]) <= self.terms.tolerated else 0
            if quiet == patience:
                course = "settles"
                break
        after = people.decisions_after(score, self.base.X)
        right = float(np.mean(after == (self.base.y > 0.5)))
        if after.all() or not after.any():
            course = "collapses"
        elif course == "moves on" and self._returns(made):
            course = "cycles"
        # The first of the quiet rounds is the one by which it has settled.
        taken = len(made) - max(quiet, 1)
        changing = [_changed(*pair) for pair in pairwise(made[-1 - patience :])]
        left = float(np.mean(changing)) if changing else 0.0
        exact = isinstance(self.rule, LinearScore)
        rate = _contraction(made, course == "settles") if exact else None
        return score, RetrainingCourse(price, looking_ahead, course, taken, left, rate, right)

    def edge(self, cells: Sequence[RetrainingCourse]) -> float | None:
        """Return the multiple of the price below which it no longer settles, by bisection."""
        known = {cell.price: cell.course for cell in cells if cell.looking_ahead == 0.0}
        rough = sorted((p for p, c in known.items() if c != "settles"), reverse=True)
        fine = [p for p, c in known.items() if c == "settles" and (not rough or p > rough[0])]
        if not fine:
            return max(known)
        high, low = min(fine), rough[0] if rough else 0.0
        while not low and high > CHEAPEST:
            if self.follow(high / 4.0, 0.0)[1].course == "settles":
                high /= 4.0
            else:
                low = high / 4.0
        if not low:
            return None
        for _ in range(2):
            middle = (low * high) ** 0.5
            if self.follow(middle, 0.0)[1].course == "settles":
                high = middle
            else:
                low = middle
        return high

    def _standing(self, score: Score) -> Floats:
        """Return everybody's score before they respond, over its root mean square."""
        found = values(score, self.base.X)
        size = float(np.sqrt(np.mean(found**2)))
        return found / (size or 1.0)

    def _returns(self, made: Sequence[Floats]) -> bool:
        ago = range(2, min(LONGEST_CYCLE, len(made) - 1) + 1)
        return any(_changed(made[-1 - lag], made[-1]) <= self.terms.tolerated for lag in ago)


def _changed(before: Floats, after: Floats) -> float:
    """Return the share of people whose decision is another."""
    return float(np.mean((before >= 0.0) != (after >= 0.0)))


def _contraction(made: Sequence[Floats], settled: bool) -> float | None:
    """Return the mean factor by which rules in a row came closer, before only noise was left."""
    # The first change, from the deployed rule to the first refit, is not one of the dynamics.
    gaps = [float(np.sqrt(np.mean((b - a) ** 2))) for a, b in pairwise(made)][1:]
    if len(gaps) < 2 or not gaps[0] > ROUNDING:
        return None
    noise = max(float(np.median(gaps[len(gaps) // 2 :])), ROUNDING)
    end = next((t for t, gap in enumerate(gaps) if gap <= 1.5 * noise), len(gaps) - 1)
    if settled and not end:
        return None  # The first refit led as near as the noise of the rows lets anything come.
    end = end or len(gaps) - 1
    # The later half of the way is nearer to the end, whose rate it is.
    half = end // 2
    return float((max(gaps[end], ROUNDING) / gaps[half]) ** (1.0 / (end - half)))


def _some(
    rows: tuple[Floats, Floats], people: Response, most: int, seed: int
) -> tuple[Crowd, Response]:
    """Return at most so many of the people, drawn, and their response."""
    X, y = rows
    drawn = generator(seed, "people of the future").permutation(len(y))[:most]
    kept = np.sort(drawn)
    return Crowd(X[kept], (y[kept] > 0.0).astype(np.float64)), people.of_rows(kept)


def _words(
    course: RetrainingCourse,
    accuracies: Sequence[MeasuredShare],
    majority: float,
    edge: float | None,
    cells: Sequence[RetrainingCourse],
) -> str:
    """Return the sentence a committee reads."""
    then, now = accuracies
    right = (
        f"accuracy {per_cent(then.value)} ({per_cent(then.low)} to {per_cent(then.high)}, "
        f"n = {then.n:,}; the rule as deployed {per_cent(now.value)}, one outcome for all "
        f"{per_cent(majority)})"
    )
    changing = per_cent(course.changing)
    left = f", {changing} of decisions still changing" if course.changing else ""
    ends = {
        "settles": f"it settles within {course.rounds} rounds at {right}{left}",
        "cycles": f"it does not settle but cycles{left}; after {course.rounds} rounds {right}",
        "moves on": f"it has not settled after {course.rounds} rounds{left}; {right}",
        "collapses": f"it collapses after {course.rounds} rounds: everybody is judged alike, "
        f"or no rule can be fitted; {right}",
    }[course.course]
    rate = ", too quickly to measure a contraction"
    if course.contraction is not None:
        rate = f", contraction {course.contraction:.2f} a round"
    rate = rate if course.course == "settles" else ""
    bound = (
        f" It settles even where moving costs {per_cent(CHEAPEST, 0)} of what is assumed."
        if edge is None
        else f" It cycles or collapses if moving costs less than {edge:.2g} times what is assumed."
    )
    if course.course != "settles" or len({cell.price for cell in cells}) == 1:
        bound = ""
    ahead = next(cell for cell in cells if (cell.price, cell.looking_ahead) == (1.0, 1.0))
    there = {"moves on": f"has not settled after {ahead.rounds} rounds"}
    return (
        f"Retrained every period on people who responded to the last rule, {ends}{rate}.{bound} "
        "Where everybody looks one retraining ahead it "
        f"{there.get(ahead.course, ahead.course)}."
    )
