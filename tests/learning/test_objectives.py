"""The risk is the loss after response; robust risk is the worst member's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from countermove.errors import ParameterError
from countermove.learning import L2, StrategicRisk
from countermove.learning.regularisers import Regulariser
from countermove.people import QuadraticCost, WeightedQuadraticCost
from countermove.randomness import torch_generator
from countermove.response import BestResponse, NoResponse, ScalarResponse
from countermove.scores import LinearScore
from countermove.training import Loss, Trainer, TrainingRows

NONE, CHEAP, DEAR = NoResponse(), BestResponse(QuadraticCost(0.5)), BestResponse(QuadraticCost(8.0))


@pytest.fixture
def batch(crowd):
    X, y = crowd
    return LinearScore(4, torch_generator(1, "start")), torch.from_numpy(X), torch.from_numpy(y)


def test_blind_risk_is_the_plain_loss(batch):
    score, X, y = batch
    assert torch.equal(StrategicRisk((NONE,)).loss(score, X, y), Loss("hinge")(score(X), y))


def test_against_best_responders_everybody_counts_with_their_reach(batch):
    score, X, y = batch
    reach = math.sqrt(2 / 0.5) * score.weight.norm()
    expected = Loss("logistic")(score(X) + reach, y)
    assert torch.allclose(StrategicRisk((CHEAP,), Loss("logistic")).loss(score, X, y), expected)


def test_robust_risk_is_the_largest_member_risk(batch):
    members = (NONE, CHEAP, DEAR)
    alone = [float(StrategicRisk((m,)).loss(*batch).detach()) for m in members]
    assert float(StrategicRisk(members).loss(*batch).detach()) == max(alone)


def test_the_smooth_maximum_lies_above_and_tends_to_the_hard_one(batch):
    members = (NONE, CHEAP, DEAR)
    hard = float(StrategicRisk(members).loss(*batch).detach())
    soft = [
        float(StrategicRisk(members, softness=softness).loss(*batch).detach())
        for softness in (0.5, 0.05, 0.005)
    ]
    assert soft == sorted(soft, reverse=True)
    assert hard <= soft[-1] <= hard + 0.005 * math.log(3)


def test_weights_give_the_mean_over_members(batch):
    alone = [float(StrategicRisk((m,)).loss(*batch).detach()) for m in (NONE, CHEAP)]
    mixed = float(StrategicRisk((NONE, CHEAP), weights=(0.25, 0.75)).loss(*batch).detach())
    assert mixed == pytest.approx(0.25 * alone[0] + 0.75 * alone[1])


def test_judgement_is_the_worst_accuracy_among_the_judges(batch):
    score, X, y = batch
    accuracies = [StrategicRisk((m,)).judge(score, X, y)[0] for m in (NONE, CHEAP, DEAR)]
    assert StrategicRisk((NONE,), judged_by=(NONE, CHEAP, DEAR)).judge(score, X, y)[0] == min(
        accuracies
    )


def test_a_regulariser_adds_its_strength_times_its_penalty(batch):
    score, X, y = batch
    plain = StrategicRisk((CHEAP,)).loss(score, X, y)
    with_l2 = StrategicRisk((CHEAP,), regulariser=L2(0.3)).loss(score, X, y)
    assert torch.allclose(with_l2 - plain, 0.15 * score.weight.square().sum())


def test_any_object_with_strength_and_penalty_is_a_regulariser(batch):
    class Refusals:
        strength = 2.0

        def penalty(self, score, X, y, response):
            return torch.relu(-response.scores_after(score, X)).mean()

    assert isinstance(Refusals(), Regulariser)
    plain = StrategicRisk((CHEAP,)).loss(*batch)
    assert StrategicRisk((CHEAP,), regulariser=Refusals()).loss(*batch) > plain


@pytest.mark.parametrize("members", [(NONE,), (CHEAP,), (NONE, CHEAP, DEAR)])
def test_gradients_agree_with_differences(batch, members):
    score, X, y = batch
    objective = StrategicRisk(members, Loss("logistic"), L2(0.1), softness=0.1)

    def risk(weight, bias):
        probe = LinearScore(4)
        del probe.weight, probe.bias
        probe.weight, probe.bias = weight, bias
        return objective.loss(probe, X, y)

    start = [score.weight.detach().requires_grad_(), score.bias.detach().requires_grad_()]
    assert torch.autograd.gradcheck(risk, start)


def test_scaling_the_score_only_scales_its_margin(batch):
    score, X, _ = batch
    scaled = LinearScore(4)
    with torch.no_grad():
        scaled.weight.copy_(7.0 * score.weight)
        scaled.bias.copy_(7.0 * score.bias)
    for response in (NONE, CHEAP):
        small, large = response.scores_after(score, X), response.scores_after(scaled, X)
        np.testing.assert_allclose(large.detach(), 7.0 * small.detach(), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"responses": ()}, "at least one"),
        ({"responses": (NONE, CHEAP), "weights": (1.0,)}, "as many weights"),
        ({"responses": (NONE, CHEAP), "weights": (0.5, 0.6)}, "sum to one"),
        ({"responses": (NONE,), "softness": -1.0}, "softness"),
    ],
)
def test_objectives_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        StrategicRisk(**arguments)


@pytest.mark.parametrize("strength", [-1.0, float("nan"), float("inf")])
def test_a_strength_is_a_number_from_zero_on(strength):
    with pytest.raises(ParameterError, match="strength"):
        L2(strength)


def test_the_procedure_takes_one_more_step_per_epoch(batch):
    growing = ScalarResponse(start="stay", polish=False, stopping="increasing")
    risk = StrategicRisk((growing, NONE))
    steps = [risk.for_epoch(epoch).responses[0].max_iterations for epoch in range(3)]
    assert steps == [1, 2, 3]
    assert StrategicRisk((NONE, CHEAP)).for_epoch(4).responses == (NONE, CHEAP)


def test_training_lets_the_procedure_grow(batch):
    seen = []

    class Noted(ScalarResponse):
        def for_epoch(self, epoch):
            seen.append(epoch)
            return super().for_epoch(epoch)

    score, X, y = batch
    growing = Noted(start="stay", polish=False, stopping="increasing")
    trainer = Trainer(max_epochs=3, patience=3)
    trainer.fit(score, StrategicRisk((growing,)), TrainingRows(X, y, X, y))
    assert seen == [0, 1, 2]


def test_people_with_prices_per_feature_climb_gentler_steps_first():
    """The step is made gentle for the cheapest feature; the last step is the one asked for."""
    cost = WeightedQuadraticCost([4.0, 1.0, 0.25])
    risk = StrategicRisk((ScalarResponse(cost, temperature=0.2),))
    heats = [gentle.responses[0].temperature for gentle in risk.softened()]
    assert heats == sorted(heats, reverse=True)
    assert heats[0] == pytest.approx(2.0)
    assert all(heat > 0.2 for heat in heats)
