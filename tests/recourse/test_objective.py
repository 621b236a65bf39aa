"""Eq. 1 and Eq. 2 of the recourse paper, with the right sign."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from countermove.errors import ParameterError, UnknownNameError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse.objective import RecourseRisk, box_step, rows_with_bounds
from countermove.recourse.performance import best_f1
from countermove.response import BestResponse, NoResponse, Population
from countermove.scores import LinearScore, MLPScore
from countermove.training import Loss, Trainer, TrainingRows

RNG = np.random.default_rng(2)
X = RNG.normal(size=(40, 3))
Y = torch.from_numpy(np.where(X[:, 0] + RNG.normal(size=40) > 0, 1.0, -1.0))
BOX = ActionSet(lower=[-0.5, 0.0, -0.2], upper=[0.75, 0.6, 0.0], max_value=[2.5, 9, 9])
ROWS = torch.from_numpy(rows_with_bounds(X, BOX))


def network(seed: int = 0, **settings) -> MLPScore:
    draws = torch.Generator().manual_seed(seed)
    return MLPScore(3, hidden=(12, 12), generator=draws, **settings)


def test_the_step_is_the_best_of_all_vertices():
    score = network()
    step = RecourseRisk(3).action(score, ROWS).numpy()
    gradient = score.gradient(torch.from_numpy(X)).numpy()
    low, high = BOX.box(X)
    for i in range(len(X)):
        vertices = np.array(list(product(*zip(low[i], high[i], strict=True))))
        assert gradient[i] @ step[i] == pytest.approx((vertices @ gradient[i]).max())
        assert (step[i] == vertices).all(axis=1).any()


def test_a_feature_without_slope_stays_as_near_to_where_it_is_as_it_may():
    gradient = torch.zeros(1, 3, dtype=torch.float64)
    low = torch.tensor([[-1.0, 0.3, -2.0]], dtype=torch.float64)
    high = torch.tensor([[1.0, 0.5, -0.4]], dtype=torch.float64)
    assert box_step(gradient, low, high).tolist() == [[0.0, 0.3, -0.4]]


def test_the_step_raises_the_probability_of_everybody_with_a_slope():
    linear = LinearScore(3, torch.Generator().manual_seed(0))
    small = torch.from_numpy(rows_with_bounds(X, ActionSet(lower=[-0.05] * 3, upper=[0.05] * 3)))
    for score, rows in ((linear, ROWS), (network(), small)):
        at = rows[:, :3]
        after = score(at + RecourseRisk(3).action(score, rows))
        assert bool((after > score(at)).all())


def test_the_objective_is_equation_one():
    score, risk = network(), RecourseRisk(3, 0.8)
    at = ROWS[:, :3]
    reached = score(at + risk.action(score, ROWS))
    wanted = softplus(-Y * score(at)).mean() + 0.8 * softplus(-reached).mean()
    torch.testing.assert_close(risk.loss(score, ROWS, Y), wanted)


def test_class_weights_touch_the_labels_only():
    score, at = network(), ROWS[:, :3]
    risk = RecourseRisk(3, 2.0, Loss("logistic", (3.0, 0.5)))
    reached = score(at + risk.action(score, ROWS))
    weights = torch.where(Y > 0, 0.5, 3.0)
    wanted = (weights * softplus(-Y * score(at))).mean() + 2.0 * softplus(-reached).mean()
    torch.testing.assert_close(risk.loss(score, ROWS, Y), wanted)


def test_the_gradient_is_that_at_the_fixed_step():
    score, risk = network(), RecourseRisk(3, 0.8)
    names, values = zip(*score.named_parameters(), strict=True)
    values = tuple(value.detach().requires_grad_() for value in values)
    action = risk.action(score, ROWS)

    def fixed(*parameters):
        scores = torch.func.functional_call(
            score, dict(zip(names, parameters, strict=True)), torch.cat((X_, X_ + action))
        )
        return softplus(-Y * scores[:40]).mean() + 0.8 * softplus(-scores[40:]).mean()

    X_ = ROWS[:, :3]
    assert torch.autograd.gradcheck(fixed, values)
    wanted = torch.autograd.grad(fixed(*values), values)
    found = torch.autograd.grad(risk.loss(score, ROWS, Y), list(score.parameters()))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_the_step_is_taken_against_the_rule_without_dropout():
    score = network(dropout=0.5)
    risk = RecourseRisk(3)
    quiet = risk.action(score, ROWS)
    score.train()
    assert torch.equal(risk.action(score, ROWS), quiet)
    assert score.training


def test_of_people_who_differ_the_mean_loss_over_types_counts():
    score = LinearScore(3, torch.Generator().manual_seed(2))
    people = Population(BestResponse(QuadraticCost(2.0)), never=0.3, log_sd=0.5, nodes=4)
    alone = [RecourseRisk(3, 0.8, response=member) for member in people.members]
    joint = RecourseRisk(3, 0.8, response=people)
    losses = torch.stack([risk.loss(score, ROWS, Y) for risk in alone])
    weights = torch.tensor(people.weights, dtype=torch.float64)
    torch.testing.assert_close(joint.loss(score, ROWS, Y), weights @ losses)
    accuracies = [risk.judge(score, ROWS, Y).accuracy for risk in alone]
    wanted = np.dot(people.weights, accuracies)
    assert joint.judge(score, ROWS, Y).accuracy == pytest.approx(wanted)
    assert joint.of_rows(torch.arange(5)).loss(score, ROWS[:5], Y[:5]).isfinite()


def sample(limited: bool) -> TrainingRows:
    rows = ROWS if limited else ROWS[:, :3].contiguous()
    return TrainingRows(rows[:30], Y[:30], rows[30:], Y[30:])


class Plain:
    """The plainest logistic regression of a network."""

    def loss(self, score, X, y):
        return softplus(-y * score(X)).mean()

    def judge(self, score, X, y):
        scores = score(X)
        return float(((scores >= 0) == (y > 0)).double().mean()), float(self.loss(score, X, y))

    def for_epoch(self, epoch):
        return self

    def of_rows(self, rows):
        return self

    def parameters(self):
        return ()

    def settle(self):
        """Nothing besides the score is learned."""


def test_no_weight_is_plain_training_to_the_last_bit():
    trainer = Trainer(learning_rate=0.01, batch_size=8, max_epochs=4, patience=4)
    one, other = network(dropout=0.3), network(dropout=0.3)
    trainer.fit(one, RecourseRisk(3, 0.0, selection="accuracy"), sample(True))
    trainer.fit(other, Plain(), sample(False))
    for a, b in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


def test_dropout_resumes_to_the_last_bit(tmp_path):
    path, risk = tmp_path / "run.safetensors", RecourseRisk(3, 0.8)
    settings = {"learning_rate": 0.01, "batch_size": 8, "patience": 9}
    whole, half, rest = network(), network(), network()
    Trainer(max_epochs=5, **settings).fit(whole, risk, sample(True))
    Trainer(max_epochs=2, **settings).fit(half, risk, sample(True), checkpoint=path)
    Trainer(max_epochs=5, **settings).fit(rest, risk, sample(True), checkpoint=path)
    for a, b in zip(whole.parameters(), rest.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not rest.training


def test_the_labels_are_judged_after_the_response_and_recourse_where_people_stand():
    score = LinearScore(3, torch.Generator().manual_seed(1))
    response = BestResponse(QuadraticCost(2.0))
    risk, at = RecourseRisk(3, 0.5, response=response), ROWS[:, :3].contiguous()
    reached = score(at + risk.action(score, ROWS))
    after = response.scores_after(score, at)
    wanted = softplus(-Y * after).mean() + 0.5 * softplus(-reached).mean()
    torch.testing.assert_close(risk.loss(score, ROWS, Y), wanted)
    nobody = RecourseRisk(3, 0.5, response=NoResponse()).loss(score, ROWS, Y)
    torch.testing.assert_close(nobody, RecourseRisk(3, 0.5).loss(score, ROWS, Y))


@pytest.mark.parametrize("selection", ["f1", "loss", "accuracy"])
def test_epochs_are_chosen_by_what_was_asked(selection):
    score = network()
    with torch.no_grad():
        verdict = RecourseRisk(3, selection=selection).judge(score, ROWS, Y)
        scores, loss = score(ROWS[:, :3]), RecourseRisk(3).loss(score, ROWS, Y)
    accuracy = float(((scores >= 0) == (Y > 0)).double().mean())
    f1 = best_f1(scores.numpy(), (Y > 0).numpy())[1]
    merit = {"f1": f1, "loss": -float(loss), "accuracy": None}[selection]
    assert verdict == (pytest.approx(accuracy), pytest.approx(float(loss)), merit)


def test_constraints_are_kept_by_the_step():
    actions = ActionSet(lower=[-0.5] * 3, upper=[0.5] * 3, A=[[-1.0, -1.0, -1.0]], b=[0.4])
    score = network()
    step = RecourseRisk(3, constraints=actions.A).action(
        score, torch.from_numpy(rows_with_bounds(X, actions))
    )
    assert actions.contains(X, step.numpy()).all()
    gradient = score.gradient(torch.from_numpy(X))
    assert bool(((gradient * step).sum(1) > 0).all())


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf")])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ParameterError, match="recourse_weight"):
        RecourseRisk(3, weight)


def test_the_promised_f1_is_that_of_thresholds_most_people_reach():
    score = LinearScore(3, torch.Generator().manual_seed(0))
    verdict = RecourseRisk(3, selection="promised_f1").judge(score, ROWS, Y)
    with torch.no_grad():
        now = score(ROWS[:, :3]).numpy()
        best = score(ROWS[:, :3] + RecourseRisk(3).action(score, ROWS)).numpy()
    limit = np.sort(best)[1]  # one in twenty of 40 people: two stand at or below it
    deserving = Y.numpy() > 0
    cuts = np.append(now[now <= limit], limit)
    f1 = [2 * (deserving & (now >= c)).sum() / ((now >= c).sum() + deserving.sum()) for c in cuts]
    assert verdict.merit == pytest.approx(max(f1))
    assert verdict.merit < best_f1(now, deserving)[1]


def test_an_unknown_selection_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'accuracy'"):
        RecourseRisk(3, selection="acuracy")
