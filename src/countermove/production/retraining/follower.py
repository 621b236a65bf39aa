"""One night of the policy that follows the world, in one process.

Everything a night needs is handed in and everything it finds is handed back, so the pipeline and
the benchmark run the same code. A night (1) estimates how far people move, (2) sets people back to
where they stood, (3) fits rules that forget at several speeds, and (4) compares the one that
predicts the newest labels best with the champion, on people it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import expit

from countermove._types import Floats, Mask
from countermove.production.retraining.discounted import DiscountedFits, Looked
from countermove.production.retraining.evidence import MONTH, Evidence, weigh
from countermove.production.retraining.following import (
    DeployedRule,
    Memory,
    Night,
    SeenBatch,
    linear_score,
    shifted_score,
)
from countermove.production.retraining.policy import DriftActs, FollowingPolicy
from countermove.production.retraining.reach import (
    LEAST_PEOPLE,
    Boundary,
    ReachEstimate,
    ReachModel,
    estimate_reach,
)
from countermove.production.retraining.set_back import (
    SetBackRows,
    as_seen,
    fit,
    places,
    set_back,
)
from countermove.randomness import generator
from countermove.response import Response
from countermove.scores import LinearScore
from countermove.scores.base import values

LEAST_SHIFT = 0.05
"""Smallest change of the threshold, as a share of the reach, for which it is shifted."""
SAMPLE, FEW = 500, 25
"""People whose moves show the way to the boundary, and of those who are asked one by one."""
HARDLY = 0.1
"""Of the usual advance: whoever can raise the score by less can hardly move."""
CUTS = 41
"""Thresholds tried where people differ."""
TOLD_LEVEL = 0.95
"""The same where the drift report says by itself that people respond otherwise."""
REACH_LEVEL = 0.996
"""Of the region that the people assumed have to leave: .05 a year over twelve looks."""


class Follower:
    """Walks the nights of one dataset.

    Parameters
    ----------
    X, y
        The base table: people who had no rule to respond to, standardised, and labels ±1.
    movers
        How people who move are taken to respond: a best response.
    policy
        On which terms.
    seed
        Of the folds.
    """

    def __init__(
        self, X: Floats, y: Floats, movers: Response, policy: FollowingPolicy, seed: int = 0
    ) -> None:
        self.base, self.movers, self.policy, self.seed = as_seen(X, y), movers, policy, seed
        self._X, self._ways = X, dict[str, Floats]()
        self._mean: Floats = X.mean(axis=0)
        spread: Floats = np.asarray(np.atleast_2d(np.cov(X.T)), dtype=np.float64)
        ridge = 1e-3 * float(np.trace(spread)) / len(spread)
        inverse = np.linalg.inv(spread + ridge * np.eye(len(spread)))
        self._precision: Floats = np.asarray(inverse, dtype=np.float64)

    def first(self, people: ReachModel) -> tuple[LinearScore, float]:
        """Return the rule fitted to the base table and what its threshold allows for moves."""
        theta = fit([self.base], [1.0], np.zeros(self.base.X.shape[1]), iterations=40, within="fit")
        allowance = self.allowance(theta, people, [self.base])
        return linear_score(theta, allowance), allowance

    def night(
        self,
        champion: DeployedRule,
        batches: Sequence[SeenBatch],
        memory: Memory,
        acts: DriftActs | None = None,
    ) -> Night:
        """Return what tonight's batches show; they are in order of their day."""
        acts = DriftActs() if acts is None else acts
        memory = replace(
            memory,
            opened=min(b.day for b in batches) - MONTH if memory.opened is None else memory.opened,
            reaches=dict(memory.reaches),
        )
        reach = self._reach(champion, batches, TOLD_LEVEL if acts.people else REACH_LEVEL)
        memory = self._remembered(memory, champion, batches, reach)
        placed = [self._placed(batch, memory) for batch in batches]
        natural = self._natural(champion)
        recent = placed[-3:] if placed else [self.base]
        people, allowance = self._people(champion, natural, reach, recent)
        shifted = people != champion.people
        look = self._look(natural, batches, placed, memory, acts)
        evidence, memory = self._weighed(look, memory)
        if look is not None and evidence is not None:
            look = look.at(evidence.step)
        if look is not None and (not shifted or (evidence is not None and evidence.sufficient)):
            theta = look.theta
            allowance = self.allowance(theta, people, recent)
        else:
            theta = natural
        proposal: Literal["rule", "shift", "none"] = "shift" if shifted else "none"
        if evidence is not None and evidence.sufficient:
            proposal = "rule"
        return Night(
            proposal,
            linear_score(theta, allowance),
            allowance,
            people,
            reach,
            None if look is None else look.memory.discount,
            evidence,
            memory,
            None if look is None else look.covariance,
            None if look is None else look.look.day,
            tuple(
                self._stood(batch, rows, natural)
                for batch, rows in zip(batches, placed, strict=True)
            ),
            () if look is None else look.folds,
            () if look is None else self._held_out(look, people, recent),
            look is not None and look.memory.trend,
        )

    def allowance(self, theta: Floats, people: ReachModel, tables: Sequence[SetBackRows]) -> float:
        """Return what the threshold of a rule has to allow for moves, in units of its score.

        Where people reach equally far, as much as they advance: then the same people are approved
        as would be if nobody moved. Else what is right most often, by the rule's own probabilities.
        """
        rule = linear_score(theta, 0.0)
        X, weight = _where_they_stood(tables)
        advance = self._advance(rule, X)
        typical = float(np.average(advance, weights=weight))
        if typical <= 0.0:
            return 0.0
        alike = float(np.abs(advance - typical).max()) < 1e-6 * typical
        if alike and people.log_sd == 0.0 and people.never == 0.0:
            return people.reach * typical
        score = values(rule, X)
        gained = weight * (2.0 * expit(score) - 1.0)
        cuts = typical * np.linspace(0.0, 1.3 * people.farthest, CUTS)
        worth = [
            float(gained @ people.chance((cut - score) / np.maximum(advance, 1e-9))) for cut in cuts
        ]
        return _peak(cuts, np.array(worth))

    def _advance(self, rule: LinearScore, X: Floats) -> Floats:
        """Return how far everybody can raise the score at the price assumed."""
        with torch.no_grad():
            after = self.movers.scores_after(rule, torch.from_numpy(np.ascontiguousarray(X)))
        found: Floats = after.numpy() - values(rule, X)
        return found

    def _distance(self, rule: LinearScore, X: Floats) -> Floats:
        """Return the signed distance from the boundary in units of the reach assumed."""
        found: Floats = values(rule, X) / np.maximum(self._advance(rule, X), 1e-9)
        return found

    def _estimated(
        self, rule: DeployedRule, X: Floats, level: float = REACH_LEVEL
    ) -> ReachEstimate | None:
        """Estimate how far people moved who responded to a rule; None for too few."""
        seen, before = (self._distance_of_movers(rule.score, rows) for rows in (X, self._X))
        return estimate_reach(seen, before, rule.people, level)

    def _distance_of_movers(self, rule: LinearScore, X: Floats) -> Floats:
        """Return the distance of those who can move; the others say nothing about the reach."""
        advance = self._advance(rule, X)
        able = advance > HARDLY * float(np.median(advance))
        found: Floats = values(rule, X)[able] / np.maximum(advance[able], 1e-9)
        return found

    def _way(self, rule: LinearScore) -> Floats:
        """Return the move that crosses a gap of one reach, the average of some people's."""
        X = self._X[:SAMPLE]
        score, advance = values(rule, X), self._advance(rule, X)
        there = shifted_score(rule, -float(np.median(score)) - 0.5 * float(np.median(advance)))
        gap = -values(there, X) / np.maximum(advance, 1e-9)
        moves = self.movers.respond(there, X, on_failure="mask").x_new - X
        who = (gap > 0.1) & (gap < 1.0)
        if not who.any():
            return self._way_of_few(rule, X[:FEW], score[:FEW], advance[:FEW])
        found: Floats = (moves[who] / gap[who, None]).mean(axis=0)
        return found

    def _way_of_few(self, rule: LinearScore, X: Floats, score: Floats, advance: Floats) -> Floats:
        """Return the same where the rule asks for next to nothing that anybody can change.

        No threshold is then within reach of many people: each is asked at one of their own.
        """
        moves = [np.zeros(X.shape[1])]
        for i in np.flatnonzero(advance > 0.0):
            there, x = shifted_score(rule, -score[i] - 0.5 * advance[i]), X[i : i + 1]
            moves.append((self.movers.respond(there, x, on_failure="mask").x_new - x)[0] / 0.5)
        found: Floats = np.mean(moves[1:] or moves, axis=0)
        return found

    def _natural(self, rule: DeployedRule) -> Floats:
        """Return weights and intercept of a rule about people before they moved."""
        allowance = rule.allowance
        if allowance is None:
            typical = float(self._advance(rule.score, self._X[:SAMPLE]).mean())
            allowance = rule.people.reach * typical
        weight = rule.score.weight.detach().numpy()
        return np.append(weight, float(rule.score.bias.detach()) + allowance)

    def _reach(
        self, champion: DeployedRule, batches: Sequence[SeenBatch], level: float
    ) -> ReachEstimate | None:
        """Estimate how far the newest people moved who responded to the champion."""
        chosen: list[Floats] = []
        for batch in reversed(batches):
            if batch.rule is None or batch.rule.version != champion.version:
                break
            chosen.append(batch.X)
            if sum(map(len, chosen)) >= LEAST_PEOPLE:
                break
        return self._estimated(champion, np.vstack(chosen), level) if chosen else None

    def _people(
        self,
        champion: DeployedRule,
        natural: Floats,
        reach: ReachEstimate | None,
        recent: Sequence[SetBackRows],
    ) -> tuple[ReachModel, float]:
        """Return the people to count on, and what the champion's threshold then allows."""
        present = float(natural[-1]) - float(champion.score.bias.detach())
        if reach is None or not reach.excluded:
            return champion.people, present
        expected = self.allowance(natural, champion.people, recent)
        needed = self.allowance(natural, reach.people, recent)
        if abs(needed - expected) <= LEAST_SHIFT * max(expected, 1e-9):
            return champion.people, present
        return reach.people, needed

    def _remembered(
        self,
        memory: Memory,
        champion: DeployedRule,
        batches: Sequence[SeenBatch],
        reach: ReachEstimate | None,
    ) -> Memory:
        """Write down how far the people of every batch moved, once."""
        known = dict(memory.reaches)
        for batch in batches:
            if batch.rule is None or batch.name in known:
                continue
            found = reach if batch is batches[-1] else None
            if found is None:
                found = self._estimated(batch.rule, batch.X)
            if found is None:
                nobody = Boundary(-1e-6, 1e-6)
                known[batch.name] = _reach_facts(batch.rule.people, nobody)
            else:
                people = found.people if found.excluded else batch.rule.people
                known[batch.name] = _reach_facts(people, found.boundary)
        return replace(memory, reaches=known)

    def _placed(self, batch: SeenBatch, memory: Memory) -> SetBackRows:
        """Return the people of a batch where they may have stood."""
        seen = as_seen(batch.X, batch.y)
        if batch.rule is None:
            return seen
        said = memory.reaches[batch.name]
        people, boundary = ReachModel(**said["people"]), Boundary(**said["boundary"])
        moved = boundary.holds(self._distance(batch.rule.score, batch.X))
        width = boundary.high - boundary.low
        if batch.rule.version not in self._ways:
            self._ways[batch.rule.version] = self._way(batch.rule.score)
        way = self._ways[batch.rule.version]
        return set_back(seen, moved, way, people, width, self._mean, self._precision)

    def where_they_stood(self, batch: SeenBatch, memory: Memory) -> Floats:
        """Return where the people of a batch are likely to have stood, shape (n, d)."""
        if batch.rule is None:
            return batch.X
        memory = self._remembered(memory, batch.rule, [batch], None)
        return self._stood(batch, self._placed(batch, memory), self._natural(batch.rule))

    def _stood(self, batch: SeenBatch, rows: SetBackRows, natural: Floats) -> Floats:
        """Draw where the people of a batch stood, by the champion's account of their labels."""
        X = rows.X[:, :-1].copy()
        if len(rows.prior):
            known = batch.labelled[rows.moved]
            likely = np.where(known[:, None], places(rows, natural), rows.prior)
            drawn = generator(self.seed, f"places of {batch.name}").random(len(likely))
            chosen = (np.cumsum(likely, axis=1) < drawn[:, None]).sum(axis=1)
            steps = rows.steps[np.minimum(chosen, len(rows.steps) - 1)]
            X[rows.moved] -= steps[:, None] * rows.way[:-1]
        return X

    def _held_out(
        self, look: Looked, people: ReachModel, recent: Sequence[SetBackRows]
    ) -> tuple[LinearScore, ...]:
        """Return the challengers fitted without each fold, as they would be deployed."""
        return tuple(
            linear_score(theta, self.allowance(theta, people, recent)) for theta in look.without
        )

    def _look(
        self,
        natural: Floats,
        batches: Sequence[SeenBatch],
        placed: Sequence[SetBackRows],
        memory: Memory,
        acts: DriftActs,
    ) -> Looked | None:
        """Fit rules to all labels and compare the best with the champion on the fresh ones."""
        if not any((batch.fresh & batch.labelled).any() for batch in batches):
            return None
        newest = max(batch.day for batch in batches if batch.labelled.any())
        assert memory.opened is not None
        tables, days = [self.base], [memory.opened]
        fresh: list[Mask] = [np.zeros(self.base.n, dtype=np.bool_)]
        counts: list[Floats] = [np.ones(self.base.n)]
        for batch, rows in zip(batches, placed, strict=True):
            who = batch.labelled
            if who.any():
                tables.append(rows.take(who))
                days.append(batch.day)
                fresh.append(batch.fresh[who])
                counts.append(
                    np.ones(int(who.sum())) if batch.weight is None else batch.weight[who]
                )
        ages = [max(newest - day, 0.0) / MONTH for day in days]
        given = (tables, ages, fresh, counts, natural, newest, self.seed, acts)
        fits = DiscountedFits(*given)
        found, labelled = fits.look(memory.losses), iter(fits.fold[1:])
        folds = []
        for batch in batches:
            fold = np.full(len(batch.y), -1, dtype=np.intp)
            if batch.labelled.any():
                fold[batch.labelled] = next(labelled)
            folds.append(fold)
        return replace(found, folds=tuple(folds))

    def _weighed(self, found: Looked | None, memory: Memory) -> tuple[Evidence | None, Memory]:
        """Put a look beside the earlier ones."""
        if found is None:
            return None, memory
        assert memory.opened is not None
        looks, days = (*memory.looks, found.look), (*memory.days, found.look.day)
        evidence = weigh(looks, days, memory.opened, self.policy, memory.promoted)
        return evidence, replace(memory, looks=looks, days=days, losses=found.losses)


def _where_they_stood(tables: Sequence[SetBackRows]) -> tuple[Floats, Floats]:
    """Return places and weights of people, those on the boundary at all they may have stood at."""
    X: list[Floats] = []
    weight: list[Floats] = []
    for rows in tables:
        X.append(rows.X[~rows.moved, :-1])
        weight.append(np.ones(len(X[-1])))
        if len(rows.prior):
            here = rows.X[rows.moved, :-1]
            back = here[:, None, :] - rows.steps[:, None] * rows.way[:-1]
            X.append(back.reshape(-1, here.shape[1]))
            weight.append(rows.prior.ravel())
    return np.vstack(X), np.concatenate(weight)


def _peak(at: Floats, worth: Floats) -> float:
    """Return where a curve on an even grid is highest, by the parabola through the three best."""
    best = int(np.argmax(worth))
    if best in (0, len(at) - 1):
        return float(at[best])
    left, middle, right = worth[best - 1 : best + 2]
    bend = left - 2.0 * middle + right
    shift = 0.0 if bend >= 0.0 else 0.5 * (left - right) / bend
    return float(at[best] + shift * (at[1] - at[0]))


def _reach_facts(people: ReachModel, boundary: Boundary) -> dict[str, Any]:
    return {"people": people.to_json(), "boundary": {"low": boundary.low, "high": boundary.high}}
