"""Nights of the policy that follows the world, in one process."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.production.retraining.known_worlds import MONTHLY, DriftingWorld

from countermove.people import ActionSet, QuadraticCost
from countermove.production.gates import Improvement
from countermove.production.registry import Decision
from countermove.production.retraining.discounted import DiscountedFits
from countermove.production.retraining.evidence import MONTH, Look
from countermove.production.retraining.follower import Follower
from countermove.production.retraining.following import (
    DeployedRule,
    Memory,
    SeenBatch,
    linear_score,
)
from countermove.production.retraining.nightly import (
    Followed,
    corrected_looks,
    memory_of,
    still_shown,
)
from countermove.production.retraining.policy import DriftActs, FollowingPolicy
from countermove.production.retraining.reach import ReachModel
from countermove.production.retraining.set_back import as_seen, fit, log_likelihood, set_back
from countermove.response import BestResponse


def numbers(score):
    return score.weight.detach().numpy(), float(score.bias.detach())


class Town:
    """A world, its follower and its first champion."""

    def __init__(self, kind: str, seed: int) -> None:
        self.world = DriftingWorld(kind, seed)
        self.follower = Follower(*self.world.base(), self.world.movers, FollowingPolicy(), seed)
        score, allowance = self.follower.first(ReachModel())
        self.champion = DeployedRule("first", score, ReachModel(), allowance)

    def batch(self, month: int, labelled: bool = True, odd: int = 0) -> SeenBatch:
        came = self.world.arrivals(month, *numbers(self.champion.score))
        y = came.y if labelled else np.full(MONTHLY, np.nan)
        X = came.X.copy()
        X[:odd] = self.world.arrivals(month, np.zeros(5) + 1e-9, -1.0).X[:odd]
        new = np.full(MONTHLY, labelled)
        return SeenBatch(str(month), X, y, MONTH * month, self.champion, new)


def test_a_turned_world_is_followed_and_a_still_one_left_alone():
    turned = Town("abrupt", 31)
    night = turned.follower.night(turned.champion, [turned.batch(7)], Memory())
    assert night.proposal == "rule"
    best = turned.world.oracle(8)
    assert best - turned.world.accuracy(8, *numbers(night.score)) < 0.012
    assert best - turned.world.accuracy(8, *numbers(turned.champion.score)) > 0.1
    still = Town("still", 31)
    night = still.follower.night(still.champion, [still.batch(1)], Memory())
    assert night.proposal == "none"
    assert night.people == ReachModel()


def test_a_label_that_counts_three_times_is_three_labels():
    town = Town("still", 33)
    came = town.batch(1)
    table, few = as_seen(came.X, came.y), np.arange(len(came.y)) < 40
    counts = np.where(few, 3.0, 1.0)
    thrice = np.concatenate([np.arange(len(counts)), *[np.flatnonzero(few)] * 2])

    def whole(rows, count):
        nobody = np.zeros(rows.n, dtype=bool)
        start, acts = np.zeros(rows.X.shape[1]), DriftActs()
        given = ([rows], [0.0], [nobody], [count], start, 0.0, 0, acts)
        return DiscountedFits(*given)._fit(1.0, start, None, 40)

    repeated = as_seen(came.X[thrice], came.y[thrice])
    np.testing.assert_allclose(
        whole(table, counts), whole(repeated, np.ones(repeated.n)), atol=1e-6
    )
    assert not np.allclose(whole(table, counts), whole(table, np.ones(table.n)), atol=1e-3)


def test_weights_of_one_change_nothing_and_others_the_evidence():
    town = Town("still", 34)
    came = town.batch(1)
    plain = town.follower.night(town.champion, [came], Memory())
    same = replace(came, weight=np.ones(len(came.y)))
    again = town.follower.night(town.champion, [same], Memory())
    assert again.evidence == plain.evidence
    assert again.score.weight.tolist() == plain.score.weight.tolist()
    heavy = replace(came, weight=np.where(np.arange(len(came.y)) < 50, 20.0, 1.0))
    other = town.follower.night(town.champion, [heavy], Memory())
    assert other.evidence.people == plain.evidence.people
    assert other.evidence.value != plain.evidence.value


def test_a_halved_price_shifts_the_threshold_without_a_label():
    town = Town("price", 32)
    night = town.follower.night(town.champion, [town.batch(7, labelled=False)], Memory())
    assert night.proposal == "shift"
    assert night.evidence is None
    assert night.people.reach == pytest.approx(2.0**0.5, abs=0.06)
    assert night.score.weight.tolist() == town.champion.score.weight.tolist()
    best = town.world.oracle(8)
    assert best - town.world.accuracy(8, *numbers(night.score)) < 0.004
    assert best - town.world.accuracy(8, *numbers(town.champion.score)) > 0.01


def test_three_odd_applicants_cannot_cause_a_shift():
    for seed in range(33, 38):
        town = Town("still", seed)
        night = town.follower.night(town.champion, [town.batch(1, odd=3)], Memory())
        assert night.proposal == "none"


def test_whoever_cannot_move_says_nothing_about_the_reach():
    """A tenth of the people stand at the end of what they may change, as in real tables."""
    town = Town("still", 34)
    X, y = town.world.base()
    actions = ActionSet(
        immutable=(3, 4), max_value=[1.0, 1.0, 1.0, np.inf, np.inf],
        min_value=[-1.0, -1.0, -1.0, -np.inf, -np.inf],
    )  # fmt: skip
    X[:300, :3] = np.sign(town.world.first[:3])
    movers = BestResponse(QuadraticCost(town.world.scale), actions)
    follower = Follower(X, y, movers, FollowingPolicy(), 34)
    score, allowance = follower.first(ReachModel())
    champion = DeployedRule("first", score, ReachModel(), allowance)
    came = town.world.people_of(1, MONTHLY, 1)[0]
    came[:150, :3] = np.sign(town.world.first[:3])
    there = movers.respond(score, came, on_failure="mask").x_new
    labels = np.full(MONTHLY, np.nan)
    seen = SeenBatch("1", there, labels, MONTH, champion, labels > 0)
    night = follower.night(champion, [seen], Memory())
    assert night.reach is not None
    assert night.reach.n < MONTHLY - 100
    assert night.reach.low < 1.1
    assert night.reach.high > 0.9


@pytest.mark.parametrize("slight", [1.0, 1e-6])
def test_the_way_is_known_where_a_rule_asks_for_next_to_nothing_that_moves(slight):
    """A law that turns may leave what people can change without weight for a month."""
    X = np.random.default_rng(3).standard_normal((600, 3))
    movers = BestResponse(QuadraticCost(2.0), ActionSet(immutable=[2]))
    follower = Follower(X, np.sign(X[:, 2]), movers, FollowingPolicy())
    way = follower._way(linear_score(np.array([0.6 * slight, 0.8 * slight, 1.0, 0.0]), 0.0))
    # One reach at this price is a move of length one along the weights that move.
    np.testing.assert_allclose(way, [0.6, 0.8, 0.0], atol=1e-6)


def test_nobody_moves_where_nothing_that_moves_has_weight():
    X = np.random.default_rng(3).standard_normal((600, 3))
    movers = BestResponse(QuadraticCost(2.0), ActionSet(immutable=[2]))
    follower = Follower(X, np.sign(X[:, 2]), movers, FollowingPolicy())
    assert (follower._way(linear_score(np.array([0.0, 0.0, 1.0, 0.0]), 0.0)) == 0.0).all()


def looked_at(names, days, corrected):
    """Return batches, a look at each but the last, and facts whose last batch corrects others."""
    nobody, y = np.zeros(3, dtype=bool), np.array([1.0, -1.0, 1.0])
    batches = [
        SeenBatch(name, np.zeros((3, 2)), y, day, None, nobody)
        for name, day in zip(names, days, strict=True)
    ]
    memory = Memory(tuple(Look(day, 3, 1.0, 1.0, 0.0, 1.0) for day in days))
    facts = {name: {"new": False} for name in names}
    return batches, memory, facts | {"c": {"new": True, "corrected": corrected}}


def test_whoever_is_corrected_after_a_look_counts_once_with_the_new_label():
    batches, memory, facts = looked_at("ab", (1.0, 31.0), {"a": {"to_favourable": 1}})
    again, left = corrected_looks(batches, memory, facts)
    assert [batch.fresh.all() for batch in again] == [True, False]
    assert [look.day for look in left.looks] == [31.0]
    # Before the last promotion: no look is left to take back, so the newest labels are looked at.
    again, left = corrected_looks(batches, replace(memory, looks=memory.looks[1:]), facts)
    assert [batch.fresh.all() for batch in again] == [False, True]
    assert left.looks == ()


def test_memory_survives_being_written_down():
    town = Town("rotation", 34)
    night = town.follower.night(town.champion, [town.batch(2)], Memory())
    written = json.loads(json.dumps(night.after(promoted=False).to_json()))
    assert Memory.from_json(written) == night.after(promoted=False)
    assert night.after(promoted=True).looks == () or night.proposal == "shift"
    again = town.follower.night(town.champion, [town.batch(2)], Memory())
    assert again.score.weight.tolist() == night.score.weight.tolist()


def test_only_a_rule_promoted_on_evidence_lowers_what_the_next_is_asked():
    town = Town("abrupt", 31)
    night = town.follower.night(town.champion, [town.batch(7)], Memory())
    assert night.evidence.months is None
    assert night.evidence.value > night.evidence.full_limit
    assert night.after(promoted=True).promoted == 7 * MONTH
    assert night.after(promoted=False).promoted is None
    after = replace(night.after(promoted=True), reaches={})
    assert town.follower.night(town.champion, [town.batch(8)], after).evidence.months == 3.0
    # Without evidence (no gate asked for any), and by a shift, nothing is shown about the law.
    for proposal in ("none", "shift"):
        assert replace(night, proposal=proposal).after(promoted=True).promoted is None
    moving = replace(night.memory, promoted=6 * MONTH)
    assert replace(night, proposal="shift", memory=moving).after(True).promoted == 6 * MONTH


def test_a_rollback_asks_the_full_limit_again_and_a_replay_what_was_asked():
    """A decision is repeated from the memory of the decision before it."""
    facts = {"policy": {"memory": Memory(promoted=31.0, opened=0.0).to_json()}}
    said = Decision("2", "retrain", "promoted", "", "1", "2", [], facts)
    assert memory_of([said], "2").promoted == 31.0
    assert memory_of([said], "1").promoted is None
    assert memory_of([], "1").promoted is None


def test_the_gate_names_the_limit_that_was_asked():
    town = Town("still", 37)
    moving = Memory(days=(MONTH,), promoted=MONTH, opened=0.0)
    night = town.follower.night(town.champion, [town.batch(2)], moving)
    gate = Followed(night).gates([Improvement()])[-1].check(None)
    assert gate.limit == night.evidence.limit == 0.0
    assert "0.00 is required in the 3 months after a promotion (2.55 at other" in gate.words
    again = town.follower.night(town.champion, [town.batch(2)], moving)
    assert again.evidence == night.evidence


def test_a_withdrawn_batch_no_longer_lowers_what_is_asked():
    memory, facts = Memory(promoted=31.0), {"a": {"day": 31.0}, "b": {"day": 59.0}}
    assert still_shown(memory, facts) == memory
    assert still_shown(memory, {"b": facts["b"]}).promoted is None


def test_drift_makes_a_night_forget_and_reweight():
    town = Town("immutables", 35)
    batches = [town.batch(11)]
    plain = town.follower.night(town.champion, batches, Memory())
    acted = town.follower.night(town.champion, batches, Memory(), DriftActs(True, True))
    assert acted.discount < 1.0
    assert "1" in plain.memory.losses
    assert not np.allclose(acted.score.weight.detach(), plain.score.weight.detach())


def test_a_discount_that_drift_ruled_out_is_not_chosen_for_lack_of_a_past():
    """After two nights that had to forget, the world still turns: nothing is remembered whole."""
    town = Town("rotation", 36)
    memory, batches = Memory(), []
    for month in (3, 6, 9):
        batches = [replace(batch, fresh=batch.labelled & False) for batch in batches]
        batches.append(town.batch(month))
        night = town.follower.night(town.champion, batches, memory, DriftActs(forget=month < 9))
        memory = night.after(promoted=False)
        plain = {"0.1", "0.4", "0.7", "1"}
        assert set(memory.losses) == plain | {f"{g} moved on" for g in plain - {"1"}}
    assert night.discount < 1.0
    # What is not known counts as the worst.
    memory = replace(memory, losses={"0.1": 1.0, "0.4": 1.2})
    night = town.follower.night(town.champion, batches, memory)
    assert night.discount == 0.1


def test_people_on_the_boundary_are_set_back_by_their_labels():
    rng = np.random.default_rng(6)
    n, truth = 6000, np.array([2.0, 1.0, 0.3])
    stood = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-(stood @ truth[:2] + truth[2]))), 1.0, -1.0)
    gap = 1.0 - stood[:, 0]  # People raise the first feature to one.
    moved = (gap > 0.0) & (gap <= 1.2)
    seen = as_seen(np.where(moved[:, None], [[1.0, 0.0]] + [0, 1] * stood, stood), y)
    way, reach = np.array([1.0, 0.0]), ReachModel(1.2)
    back = set_back(seen, moved, way, reach, 1e-6, np.zeros(2), np.eye(2))
    found = fit([back], [1.0], np.zeros(3), within="the test")
    naive = fit([seen], [1.0], np.zeros(3))
    assert found == pytest.approx(truth, abs=0.25)
    assert np.abs(naive - truth).max() > 0.5
    assert log_likelihood(back, found).sum() > log_likelihood(seen, naive).sum()
