"""What applicants can do to a rule together, through its next retraining, and who would see it.

Members of a segment move within what is allowed and what a decision is worth to them, so that
the rule fitted to everybody afterwards approves people whom it would refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from countermove._types import Floats, Index, Mask
from countermove.certificates.intervals import per_cent
from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.shift_audit import _two_samples
from countermove.dynamics.collective.utilities import QueryUtility, goals_of
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.future import NETWORKS, own_learner
from countermove.dynamics.learners import Learner
from countermove.errors import NotConvergedError, NotEnoughRowsError, SolverError
from countermove.randomness import generator
from countermove.response import Response
from countermove.response.base import GAIN
from countermove.response.response_set import members_of
from countermove.scores import LinearScore, Score
from countermove.scores.base import values

Outcome = Literal["group", "person"]
EVERYBODY = "all applicants"
STEPS = 4
"""Ascent steps per size of the collective; each begins where the last size ended."""
HALVINGS = 5
"""Of the share: it is then known to a thirtieth of the segment."""
LARGEST = 0.6
"""A segment with more of the applicants is next to everybody."""
QUERIES = 200
"""Refused people whose approval is asked for, drawn where there are more."""
FEWEST = 30
"""Rows below which a segment is not looked at."""
REFITTED = 1e-4
"""Gradient at which refits of a network end: steps of the search are told apart by what is left."""
NETWORK_WORK = 100_000
"""Applicants times parameters of a network that is refitted at every step of the search."""
NETWORK_APPLICANTS = (60, 200)
"""Applicants before a network, at least and at most: its threat takes seconds too."""


@dataclass(frozen=True)
class ThreatTerms:
    """What is looked for.

    Parameters
    ----------
    people
        Applicants, drawn, whom the next retraining sees.
    flipped
        Share of a group's refused whose approval counts as its outcome flipped.
    audits
        Batches drawn to measure how often the audit sees the collective.
    false_alarm
        Of that audit, where nobody coordinates.
    segments
        Segments looked at, at most: the largest ones.
    """

    people: int = 800
    flipped: float = 0.5
    audits: int = 40
    false_alarm: float = 0.05
    segments: int = 3


@dataclass(frozen=True)
class SegmentThreat:
    """The smallest collective of one segment that flips one outcome."""

    segment: str
    outcome: Outcome
    refused: int  # people of the segment whom the next rule would refuse
    share: float | None  # of all applicants; None: not even the whole segment flips it
    of_segment: float | None
    mean_cost: float | None  # what a member pays; a favourable decision is worth ``worth``
    worth: float
    approved: float  # share of those refused who are then approved
    audit_power: float | None  # chance that an audit of ``audit_rows`` new applicants sees it
    audit_rows: int

    @property
    def words(self) -> str:
        """The finding in a sentence."""
        everybody = self.segment == EVERYBODY
        whom = EVERYBODY if everybody else f"applicants with {self.segment}"
        what = (
            "half of their refused approved" if self.outcome == "group"
            else "their typical refused person approved"
        )  # fmt: skip
        if self.share is None:
            whole = "" if everybody else "all "
            return f"Not even {whole}{whom} together get {what} by the next retraining."
        part = "" if everybody else f" ({per_cent(self.share)} of all)"
        seen = 0.0 if self.audit_power is None else self.audit_power
        return (
            f"{per_cent(self.of_segment or 0.0, 0)} of {whom}{part}, acting together and spending "
            f"{self.mean_cost:.2f} each (a favourable decision is worth {self.worth:g}), get "
            f"{what} by the next retraining; an audit of {self.audit_rows:,} new applicants would "
            f"notice with probability {per_cent(seen, 0)}."
        )


@dataclass(frozen=True)
class CollectiveThreat:
    """The smallest collectives by segment; ``words`` is about the smallest of all."""

    applies: bool
    words: str
    segments: tuple[SegmentThreat, ...] = ()
    learner: str = ""
    n: int = 0  # applicants whom the retraining sees

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        listed = [asdict(each) | {"words": each.words} for each in self.segments]
        return asdict(self) | {"segments": listed}


def collective_threat(
    rule: Score,
    made_on: tuple[Floats, Floats],
    response: Response,
    segments: Mapping[str, Mask] | None = None,
    *,
    learner: Learner | None = None,
    terms: ThreatTerms | None = None,
    seed: int = 0,
) -> CollectiveThreat:
    """Return the smallest shares of applicants who can flip an outcome together.

    Parameters
    ----------
    rule
        The deployed rule; its kind says whether logistic regression retrains it.
    made_on
        Features (n, d) and labels ±1 of the applicants whom the next retraining would see.
    response
        Its cost prices members' moves, its actions bound them; a member spends at most what a
        favourable decision is worth.
    segments
        Who could act together, by name, as masks of shape (n,); everybody is always looked at.
    learner
        What retrains; None: logistic regression, exactly, for a linear rule, gradients from its
        own weights on for a network.
    terms
        See `ThreatTerms`; before a network fewer applicants are drawn, the fewer the larger it
        is, and one segment is looked at.
    seed
        Of the rows drawn and of the audits.
    """
    terms = ThreatTerms() if terms is None else terms
    people = members_of(response)[0]
    if learner is None and not isinstance(rule, (LinearScore, *NETWORKS)):
        return CollectiveThreat(
            False,
            f"Not computed: the rule is of kind {rule.kind}; collective_threat(..., learner=...) "
            "takes its own learner.",
        )
    if learner is None and not isinstance(rule, LinearScore):
        few = {"people": min(terms.people, _affordable(rule)), "segments": min(terms.segments, 1)}
        terms = replace(terms, **few)
    X, y = made_on
    kept = np.sort(generator(seed, "applicants").permutation(len(y))[: terms.people])
    crowd = Crowd(X[kept], (y[kept] > 0.0).astype(np.float64))
    trainer = learner or own_learner(rule, crowd.n, REFITTED)
    search = ThreatSearch(crowd, people.of_rows(kept), trainer, terms, seed)
    if not search.columns:
        return CollectiveThreat(False, "Does not apply: the schema lets nobody change anything.")
    try:
        if not search.refused(np.ones(crowd.n, dtype=bool)).any():
            return CollectiveThreat(False, "Does not apply: the next rule would refuse nobody.")
        found = search.everything(_largest(segments or {}, kept, terms))
    except (NotConvergedError, SolverError) as error:
        return CollectiveThreat(False, f"Not computed: the rule cannot be refitted ({error}).")
    return CollectiveThreat(True, _headline(found), found, trainer.name, crowd.n)


def _affordable(rule: Score) -> int:
    """Return how many applicants a network is refitted to in seconds."""
    parameters = sum(part.numel() for part in rule.parameters())
    least, most = NETWORK_APPLICANTS
    return int(np.clip(NETWORK_WORK // max(parameters, 1), least, most))


def _largest(segments: Mapping[str, Mask], kept: Index, terms: ThreatTerms) -> dict[str, Mask]:
    """Return the largest segments that are not next to everybody."""
    masks = {name: np.asarray(mask, dtype=bool)[kept] for name, mask in segments.items()}
    sized = sorted(masks, key=lambda name: -int(masks[name].sum()))
    proper = [n for n in sized if FEWEST <= masks[n].sum() <= LARGEST * len(kept)]
    return {name: masks[name] for name in proper[: terms.segments]}


def _headline(found: tuple[SegmentThreat, ...]) -> str:
    able = [each for each in found if each.share is not None]
    if not able:
        return "No segment, nor all applicants together, can flip the outcomes looked at."
    least = min(able, key=lambda each: each.share or 0.0)
    return f"The smallest collective found: {least.words}"


@dataclass(frozen=True, eq=False)
class ThreatSearch:
    """Applicants, what their moves cost, and what retrains."""

    crowd: Crowd
    people: Response
    learner: Learner
    terms: ThreatTerms
    seed: int

    @property
    def columns(self) -> tuple[int, ...]:
        """What anybody can change."""
        moving = np.zeros(self.crowd.d, dtype=bool)
        moving[self.people.plan(self.crowd.d).moving] = True
        varied = np.ptp(self.crowd.X, axis=0) > 0.0
        return tuple(np.flatnonzero(moving & varied).tolist())

    @cached_property
    def theta(self) -> Floats:
        """The next rule if nobody acted together."""
        return self.learner.fit(self.crowd)

    def everything(self, segments: Mapping[str, Mask]) -> tuple[SegmentThreat, ...]:
        """Return the group outcome of every segment, and everybody's typical person."""
        everybody = np.ones(self.crowd.n, dtype=bool)
        found = [self.smallest(EVERYBODY, everybody, "group")]
        found += [self.smallest(EVERYBODY, everybody, "person")]
        found += [
            self.smallest(name, mask, "group")
            for name, mask in segments.items()
            if self.refused(mask).any()
        ]
        return tuple(found)

    def refused(self, segment: Mask) -> Mask:
        """Return who of a segment the next rule would refuse if nobody acted together."""
        low: Mask = goals_of(self.learner).decide(self.theta, self.crowd.X) < 0.5
        return segment & low

    def smallest(self, name: str, segment: Mask, outcome: Outcome) -> SegmentThreat:
        """Return the smallest collective of a segment, by bisection of its share."""
        rows = np.flatnonzero(segment)
        wanted = self.wanted_people(segment, outcome)
        ask = self.collective_of(rows, wanted)
        low, high, best = 0.0, 1.0, self.acted(ask, wanted, None)
        known = best
        for _ in range(HALVINGS if best.flipped else 0):
            middle = 0.5 * (low + high)
            tried = self.acted(ask.of_size(middle), wanted, known.eta)
            if tried.flipped:
                high, best = middle, tried
            else:
                low = middle
            known = tried
        refused = int(self.refused(segment).sum())
        half = self.crowd.n // 2
        if not best.flipped:
            return SegmentThreat(name, outcome, refused, None, None, None, GAIN, best.approved,
                                 None, half)  # fmt: skip
        power = self.audit_power(rows, high, best.X)
        cost = float(np.mean(self.people.of_rows(rows).cost.price(self.crowd.X[rows], best.X)))
        share = high * len(rows) / self.crowd.n
        return SegmentThreat(
            name, outcome, refused, share, high, cost, GAIN, best.approved, power, half
        )

    def wanted_people(self, segment: Mask, outcome: Outcome) -> Floats:
        """Return the people whose approval is asked for, shape (m, d)."""
        rows = np.flatnonzero(self.refused(segment))
        if not rows.size:
            raise NotEnoughRowsError("nobody of the segment would be refused")
        if outcome == "person":
            scores = values(self.learner.score(self.theta), self.crowd.X[rows])
            middle = rows[np.argsort(scores)[[len(rows) // 2]]]
            typical: Floats = self.crowd.X[middle]
            return typical
        drawn = generator(self.seed, "queries").permutation(rows)[:QUERIES]
        several: Floats = self.crowd.X[np.sort(drawn)]
        return several

    def collective_of(self, rows: Any, wanted: Floats) -> Collective:
        """Return the collective of some rows that asks for the approval of the people wanted."""
        count = len(wanted)
        utility = QueryUtility(
            goals_of(self.learner), wanted, np.ones(count), np.full(count, 1.0 / count)
        )
        here = np.zeros((1, self.crowd.d))
        units = [
            float(self.people.cost.price(here, here + np.eye(self.crowd.d)[[j]])[0])
            for j in self.columns
        ]
        prices = np.sqrt(np.maximum(units, 1e-6))
        actions = self.people.actions.of_rows(rows)
        return Collective(
            self.crowd, utility, self.learner, participants=rows, columns=self.columns,
            actions=actions, ball=Ball(GAIN**0.5, prices=prices),
        )  # fmt: skip

    def acted(self, ask: Collective, wanted: Floats, start: Floats | None) -> _Acted:
        """Let the collective act as well as a few steps find, and the learner refit."""
        found = ask.optimal_strategy(start=start, max_steps=STEPS, tolerance=1e-3, strict=False)
        approved = float(np.mean(goals_of(self.learner).decide(found.theta, wanted) > 0.5))
        members = ask.space.members_at(found.eta).X
        flipped = approved >= self.terms.flipped if len(wanted) > 1 else approved == 1.0
        return _Acted(found.eta, members, approved, flipped)

    def audit_power(self, rows: Any, share: float, moved: Floats) -> float:
        """Return how often a two-sample audit sees that a share of the segment moved."""
        rng, n = generator(self.seed, "audits"), self.crowd.n
        member = np.zeros(n, dtype=bool)
        after = self.crowd.X.copy()
        after[rows], member[rows] = moved, True
        quiet: list[float] = []
        seen: list[float] = []
        for _ in range(self.terms.audits):
            order = rng.permutation(n)
            old, new = order[: n // 2], order[n // 2 :]
            acts = member[new] & (rng.random(len(new)) < share)
            acted = np.where(acts[:, None], after[new], self.crowd.X[new])
            for batch, kept in ((self.crowd.X[new], quiet), (acted, seen)):
                test = _two_samples(self.crowd.X[old], batch, self.crowd.y[old], self.crowd.y[new])
                kept.append(test.statistic(None))
        edge = float(np.quantile(quiet, 1.0 - self.terms.false_alarm))
        return float(np.mean(np.array(seen) > edge))


@dataclass(frozen=True, eq=False)
class _Acted:
    """What a collective of one size brought about."""

    eta: Floats
    X: Floats  # where its members moved to
    approved: float  # share of those who asked
    flipped: bool
