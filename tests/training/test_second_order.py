"""The logistic loss after response, its derivatives and its optimum."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from countermove.learning import L2, ExpectedUtility, Recourse, SocialBurden
from countermove.learning.objectives import StrategicRisk
from countermove.people import ActionSet, MahalanobisCost, QuadraticCost, WeightedQuadraticCost
from countermove.response import BestResponse, NoResponse, Population, ScalarResponse
from countermove.scores import LinearScore, PartlyLinearScore
from countermove.training import History, Loss, Trainer, TrainingRows
from countermove.training.second_order import PRIOR_SD, with_ridge

N, D = 300, 4
RNG = np.random.default_rng(2)
Y = np.where(RNG.random(N) < 0.6, 1.0, -1.0)
X = RNG.normal(size=(N, D)) + Y[:, None] * [0.8, 0.3, -0.2, 0.0]
BOX = ActionSet(min_value=X.min(axis=0), max_value=X.max(axis=0), immutable=[3])
ONE_WAY = ActionSet(only_increase=[0], only_decrease=[1])
ROWS = TrainingRows(*2 * (torch.from_numpy(X), torch.from_numpy(Y)))

PEOPLE = {
    "none": NoResponse(),
    "best": BestResponse(QuadraticCost(0.8)),
    "one way": BestResponse(QuadraticCost(0.8), ONE_WAY),
    "box": BestResponse(QuadraticCost(0.8), BOX),
    "box, weighted": BestResponse(WeightedQuadraticCost(np.linspace(0.5, 2.0, D)), BOX),
    "box, priced": BestResponse(QuadraticCost(0.8), BOX).with_log_price([0.0, 0.0, 0.0, 0.5]),
    "log-normal": Population(BestResponse(QuadraticCost(0.8)), never=0.2, log_sd=0.5),
    "log-normal, box": Population(BestResponse(QuadraticCost(0.8), BOX), never=0.2, log_sd=0.5),
    "kinds": Population([BestResponse(), BestResponse(QuadraticCost(4.0), ONE_WAY)], [0.3, 0.7]),
}
SMOOTH = {
    "smooth": ScalarResponse(QuadraticCost(0.8)),
    "smooth, weighted, one way": ScalarResponse(
        WeightedQuadraticCost(np.linspace(0.5, 2.0, D)), ONE_WAY, temperature=0.8
    ),
    "smooth, in score units": ScalarResponse(
        actions=ActionSet(immutable=[3]), normalised=False, temperature=0.7
    ),
    "smooth, some stay": Population(ScalarResponse(temperature=0.9), never=0.2),
}
OWN = {"own bounds": BestResponse(actions=ActionSet(upper=np.abs(X[:, ::-1]), lower=-np.abs(X)))}


def risk_of(people, **settings):
    members = people if isinstance(people, tuple) else (people,)
    return StrategicRisk(members, Loss("logistic", settings.pop("class_weight", None)), **settings)


def at(score, point):
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(point[:-1]))
        score.bias.fill_(float(point[-1]))
    return score


def differences(risk, point, score, step=1e-6):
    """Return gradient and Hessian by central differences, the latter of the gradients."""
    gradient, hessian = np.zeros(len(point)), np.zeros((len(point), len(point)))
    for j in range(len(point)):
        ends = []
        for sign in (1.0, -1.0):
            moved = point.copy()
            moved[j] += sign * step
            ends.append(ROWS.second_order(risk, at(score, moved)))
        gradient[j] = (ends[0].value - ends[1].value) / (2 * step)
        hessian[j] = (ends[0].gradient - ends[1].gradient) / (2 * step)
    return gradient, hessian


@pytest.mark.parametrize("weights", [None, (0.6, 1.7)], ids=["alike", "weighted"])
@pytest.mark.parametrize("people", (PEOPLE | SMOOTH | OWN).values(), ids=PEOPLE | SMOOTH | OWN)
def test_value_gradient_and_hessian_are_those_of_the_loss(people, weights):
    risk, score = risk_of(people, class_weight=weights), LinearScore(D)
    point = np.array([0.7, -0.4, 0.2, 0.5, -0.3])
    found = ROWS.second_order(risk, at(score, point))
    assert found.exact
    with torch.no_grad():
        assert found.value == pytest.approx(float(risk.loss(score, ROWS.X, ROWS.y)), abs=1e-7)
    gradient, hessian = differences(risk, point, score)
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-7)
    np.testing.assert_allclose(found.hessian, hessian, atol=2e-6)


@pytest.mark.parametrize(
    "regulariser", [L2(0.1), ExpectedUtility(0.2), SocialBurden(0.1), Recourse(0.3)], ids=str
)
def test_penalties_add_their_exact_gradient(regulariser):
    risk, score = risk_of(PEOPLE["best"], regulariser=regulariser), LinearScore(D)
    point = np.array([0.7, -0.4, 0.2, 0.5, -0.3])
    found = ROWS.second_order(risk, at(score, point))
    gradient, _ = differences(risk, point, score)
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-6)


@pytest.mark.parametrize("softness", [0.0, 0.05])
def test_the_worst_of_several_is_followed_smoothly(softness):
    risk, score = risk_of((PEOPLE["none"], PEOPLE["best"]), softness=softness), LinearScore(D)
    point = np.array([0.7, -0.4, 0.2, 0.5, -0.3])
    found = ROWS.second_order(risk, at(score, point))
    gradient, hessian = differences(risk, point, score)
    np.testing.assert_allclose(found.gradient, gradient, atol=1e-7)
    np.testing.assert_allclose(found.hessian, hessian, atol=1e-3)
    with torch.no_grad():
        worst = float(risk.loss(score, ROWS.X, ROWS.y))
    assert found.value == pytest.approx(worst, abs=1e-3)


def test_blind_training_is_logistic_regression_with_a_normal_prior():
    score = LinearScore(D)
    history = Trainer("newton").fit(score, risk_of(NoResponse()), ROWS)
    theirs = LogisticRegression(C=PRIOR_SD**2, tol=1e-10, max_iter=1000).fit(X, Y)
    assert history.converged
    np.testing.assert_allclose(score.weight.detach(), theirs.coef_[0], atol=1e-4)
    assert score.bias.item() == pytest.approx(theirs.intercept_[0], abs=1e-4)


@pytest.mark.parametrize("people", PEOPLE.values(), ids=PEOPLE)
def test_six_starts_end_at_one_rule(people):
    points = []
    for seed in range(6):
        score = LinearScore(D, torch.Generator().manual_seed(seed))
        history = Trainer("newton").fit(score, risk_of(people), ROWS)
        assert history.converged, history.ended
        points.append(score.weight.detach().numpy() / np.linalg.norm(score.weight.detach()))
    assert np.min(np.array(points) @ points[0]) > 0.9999


@pytest.mark.parametrize(
    "people",
    [ScalarResponse(actions=BOX), BestResponse(MahalanobisCost(np.eye(D) + 0.2))],
    ids=["smooth, box", "mahalanobis"],
)
def test_curvature_learned_on_the_way_leads_to_the_optimum(people):
    risk = risk_of(people)
    score = LinearScore(D)
    history = Trainer("newton").fit(score, risk, ROWS)
    assert history.converged, history.ended
    weight = score.weight.detach().numpy()
    found = with_ridge(ROWS.second_order(risk, score), weight, N)
    assert found.norm < 1e-7
    assert not found.exact


def test_a_network_that_is_held_leaves_a_linear_rule_to_train():
    score = PartlyLinearScore(D, movable=[0, 1], generator=torch.Generator().manual_seed(0))
    assert score.linear_columns() is None
    score.network.requires_grad_(False)
    before = [parameter.clone() for parameter in score.network.parameters()]
    history = Trainer("auto").fit(score, risk_of(PEOPLE["best"]), ROWS)
    assert (history.method, history.converged) == ("newton", True)
    for old, new in zip(before, score.network.parameters(), strict=True):
        assert torch.equal(old, new)


def test_collinear_columns_and_separable_classes_have_one_optimum():
    doubled = torch.from_numpy(np.column_stack([X, X[:, 0], X[:, :2].sum(axis=1)]))
    labels = torch.from_numpy(np.where(X[:, 0] > 0, 1.0, -1.0))
    rows = TrainingRows(doubled, labels, doubled, labels)
    found = []
    for seed in range(3):
        score = LinearScore(6, torch.Generator().manual_seed(seed))
        assert Trainer("newton").fit(score, risk_of(NoResponse()), rows).converged
        found.append(score.weight.detach().numpy())
    np.testing.assert_allclose(found[1], found[0], atol=2e-2 * np.abs(found[0]).max())


@pytest.mark.parametrize(
    "people",
    [(ScalarResponse(temperature=0.1),), (NoResponse(), PEOPLE["best"])],
    ids=["jumps", "robust"],
)
def test_where_there_may_be_several_optima_all_found_are_reported_and_the_lowest_is_kept(people):
    kept = []
    for _ in range(2):
        score = LinearScore(D, torch.Generator().manual_seed(3))
        history = Trainer("newton").fit(score, risk_of(people), ROWS)
        losses = [optimum.loss for optimum in history.optima]
        # What gentler steps led to is kept unless another is likelier by a factor of e.
        assert losses[0] <= min(losses) + (1.0 / N if len(people) == 1 else 0.0)
        assert history.optima[0].cosine == pytest.approx(1.0)
        assert history.records[-1].train_loss == losses[0]
        assert History.from_json(history.to_json()).optima == history.optima
        kept.append(score.weight.detach().numpy().copy())
    np.testing.assert_array_equal(kept[0], kept[1])


@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_a_steep_step_is_reached_over_gentler_ones_so_that_starts_agree(temperature):
    risk = risk_of(ScalarResponse(temperature=temperature))
    points = []
    for seed in range(6):
        score = LinearScore(D, torch.Generator().manual_seed(seed))
        history = Trainer("newton").fit(score, risk, ROWS)
        assert history.optima[0].start == "softer"
        points.append(score.weight.detach().numpy() / np.linalg.norm(score.weight.detach()))
    assert np.min(np.array(points) @ points[0]) > 0.9999


def test_gentle_steps_need_no_gentler_ones():
    assert risk_of(ScalarResponse(temperature=1.0)).softened() == ()
    assert risk_of(ScalarResponse(QuadraticCost(4.0), temperature=0.5)).softened() == ()
    heats = [one.responses[0].temperature for one in risk_of(ScalarResponse()).softened()]
    assert heats[0] == 1.0
    assert heats == sorted(heats, reverse=True)
    assert heats[-1] > 0.5


def test_where_the_curvature_is_known_one_descent_is_enough():
    history = Trainer("newton").fit(LinearScore(D), risk_of(PEOPLE["box"]), ROWS)
    assert [optimum.start for optimum in history.optima] == ["given"]
    assert history.optima[0].gradient <= 1e-7
