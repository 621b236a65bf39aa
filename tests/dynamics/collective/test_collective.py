"""What the theory of collectives says, on people for whom the answer is known."""

from dataclasses import dataclass

import numpy as np
import pytest

from countermove.dynamics.collective.balls import Ball
from countermove.dynamics.collective.bilevel import Bilevel
from countermove.dynamics.collective.collective import Collective
from countermove.dynamics.collective.coordination import coordination
from countermove.dynamics.collective.selfish import JoinedPopulation
from countermove.dynamics.collective.spaces import Mixing
from countermove.dynamics.collective.utilities import (
    LossUtility,
    PenalisedLossUtility,
    TargetModelUtility,
    TargetPredictionUtility,
    Utility,
)
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner, RidgeLearner
from countermove.dynamics.retraining.loop import retrain_until_stable
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.dynamics.retraining.stability import linearise
from countermove.errors import NotConvergedError, NotEnoughRowsError, ParameterError
from countermove.people import ActionSet

from ..mean_learner import MeanLearner


def crowd_of(n=80, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X @ np.linspace(1.0, -0.5, d) + rng.logistic(size=n) > 0.3).astype(float)
    return Crowd(X, y)


def box(width, d=3):
    return ActionSet(lower=[-width] * d, upper=[width] * d)


class Shifting(PerformativePopulation):
    """Some of the people move against the model's first weight, as the paper's level-1 people."""

    def __init__(self, base, strength):
        self.base, self.strength = base, strength

    def answer(self, theta, learner):
        X = self.base.X.copy()
        some = X[:, 1] < 0.0
        X[some, 0] -= self.strength * theta[0]
        return self.base.moved(X)


class Following(PerformativePopulation):
    """Everybody moves a share of the way of the model: a mean that is followed."""

    def __init__(self, base, strength):
        self.base, self.strength = base, strength

    def answer(self, theta, learner):
        return self.base.moved(self.base.X + self.strength * theta)


class TestBenefit:
    def test_none_against_the_learner(self):
        """Proposition 4, c > 0: the game is zero-sum."""
        found = Collective(
            crowd_of(), LossUtility(1.0), LogisticLearner(), columns=(0,), actions=box(5.0)
        ).coordination(tolerance=1e-7)
        assert found.benefit == pytest.approx(0.0, abs=1e-9)
        assert found.alignment == pytest.approx(0.0, abs=1e-9)
        without = Crowd(crowd_of().X[:, 1:], crowd_of().y)
        best = LogisticLearner().risk(LogisticLearner().fit(without), without)
        assert found.selfish.point.value == pytest.approx(best, abs=1e-9)

    def test_none_with_the_learner(self):
        """Proposition 4, c < 0: a potential game."""
        found = Collective(
            crowd_of(), LossUtility(-2.0), LogisticLearner(), columns=(0, 2), ball=Ball(0.3)
        ).coordination(tolerance=1e-7)
        assert found.benefit == pytest.approx(0.0, abs=1e-9)
        assert (
            found.selfish.point.value
            > Collective(
                crowd_of(), LossUtility(-2.0), LogisticLearner(), columns=(0, 2), ball=Ball(0.3)
            )
            .at()
            .value
        )

    def test_of_labels_is_the_distance_of_truth_and_wish(self):
        """Example 5: B = E(E[y|x] - g)^2. Each x has two labels, so that the fit is E[y|x]."""
        rng = np.random.default_rng(0)
        X, noise = rng.normal(size=(40, 2)), rng.normal(size=40)
        truth, wanted = 1.0 + X @ [0.5, -1.0], 2.0 - X @ [0.3, 0.4]
        crowd = Crowd(np.vstack([X, X]), np.concatenate([truth + noise, truth - noise]))
        found = Collective(
            crowd,
            TargetPredictionUtility(np.tile(wanted, 2)),
            RidgeLearner(),
            columns=(),
            labels=True,
            label_range=(-20.0, 20.0),
        ).coordination(tolerance=1e-8)
        assert found.benefit == pytest.approx(np.mean((truth - wanted) ** 2), rel=1e-9)
        assert not found.selfish.point.eta.any()

    def test_is_never_negative_and_below_its_bound(self):
        """Theorem 12 where the utility is strongly concave on the way."""
        target = TargetModelUtility(np.array([0.9, -0.2, 0.1, 0.0]))
        found = Collective(
            crowd_of(), target, LogisticLearner(0.1), columns=(0,), uniform=False, cost_rate=0.05
        ).coordination(tolerance=1e-8)
        assert found.theorem_12.kind == "bound"
        assert 0.0 < found.benefit <= found.theorem_12.value
        assert found.alignment <= 0.0
        assert found.theorem_6.kind == "proxy"
        assert "not linear" in found.theorem_6.why


@dataclass(frozen=True)
class BetweenTwo(Utility):
    """Appendix B: u = -|p1 - t|^2 - |p2 - t|^2 - |z - t|^2."""

    anchors: np.ndarray

    def of_rows(self, theta, members, learner):
        return -((self.anchors - theta) ** 2).sum() - learner.losses(theta, members)

    def by_theta(self, theta, members, learner):
        return 2 * (self.anchors - theta).sum(axis=0) + 2 * (members.mean(members.X) - theta)

    def by_rows(self, theta, members, learner):
        return -2 * members.mass[:, None] * (members.X - theta), np.zeros(members.n)


def test_the_triangle_needs_the_normalisation():
    """Appendix B at r = 1: B = 0.75; 1.0 bounds it, the printed 1/6 does not."""
    angles = np.pi / 2 + np.array([1, 2, 0]) * 2 * np.pi / 3
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    answers = [Crowd(corner[None], np.zeros(1)) for corner in corners]
    problem = Bilevel(Mixing(answers), BetweenTwo(corners[:2]), MeanLearner())
    found = coordination(problem, tolerance=1e-9)
    assert np.allclose(found.selfish.point.eta, 1 / 3)
    assert np.allclose(found.best.eta, [0.5, 0.5, 0.0], atol=1e-8)
    assert found.benefit == pytest.approx(0.75)
    assert found.alignment == pytest.approx(-1.0)
    assert found.distance**2 == pytest.approx(1 / 6)
    assert found.curvature == pytest.approx(3.0)
    assert found.theorem_6.value == pytest.approx(1.0)
    assert found.theorem_6.kind == "bound"
    printed = found.alignment**2 / (2 * found.curvature)
    assert printed == pytest.approx(1 / 6)
    assert printed < found.benefit <= min(found.theorem_6.value, found.theorem_12.value)


class TestSize:
    LEARNER = LogisticLearner(0.05, penalise_intercept=True)

    def collective(self, eligible, participation, rest=None):
        base = crowd_of(120)
        return Collective(
            base,
            TargetModelUtility(np.array([0.5, 0.5, 0.5, 0.5])),
            self.LEARNER,
            columns=(0, 1),
            uniform=True,
            ball=Ball(5.0),
            participants=base.y == 1.0 if eligible == "one class" else None,
            participation=participation,
            rest=None if rest is None else Shifting(base, rest),
        )

    @pytest.mark.parametrize("eligible", ["everybody", "one class"])
    @pytest.mark.parametrize("participation", [0.2, 0.5, 0.8])
    def test_slope_agrees_with_differences(self, eligible, participation):
        """Proposition 7, corrected for collectives drawn from one class."""
        eta, step = np.array([[0.8, -0.4]]), 1e-5
        sized = self.collective(eligible, participation)
        ends = [sized.of_size(participation + sign * step).at(eta).value for sign in (1, -1)]
        found = sized.scaling(eta)
        assert found.slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)
        assert found.worth_growing == (found.psi < 0.0)
        if eligible == "everybody":
            assert found.psi == pytest.approx(found.psi_published, rel=1e-8)

    def test_slope_beside_a_selfish_rest_agrees_with_differences(self):
        eta, step = np.array([[0.8, -0.4]]), 1e-4
        sized = self.collective("everybody", 0.5, rest=0.3)
        ends = [sized.of_size(0.5 + sign * step).at(eta).value for sign in (1, -1)]
        assert sized.scaling(eta).slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5)

    def test_best_utility_has_the_slope_of_its_strategy(self):
        """Proposition 8: the envelope theorem."""
        sized = Collective(
            crowd_of(60),
            LossUtility(),
            LogisticLearner(0.1),
            columns=(0,),
            cost_rate=0.2,
            participation=0.4,
        )
        best = sized.optimal_strategy(tolerance=1e-9)
        step = 1e-3
        ends = [
            sized.of_size(0.4 + sign * step).optimal_strategy(start=best.eta, tolerance=1e-9).value
            for sign in (1, -1)
        ]
        assert sized.scaling(best.eta).slope == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), rel=1e-4
        )

    def test_a_whole_class_and_its_rows_are_the_same_collective(self):
        eta = np.array([[0.3, 0.3]])
        whole = self.collective("one class", 1.0)
        assert whole.at(eta).value == pytest.approx(whole.of_size(1.0 - 1e-12).at(eta).value)


class TestSelfishRest:
    def test_gradient_agrees_with_differences(self):
        """The performatively stable point is what is differentiated."""
        base = crowd_of(30)
        sized = Collective(
            base,
            PenalisedLossUtility(penalty=0.3),
            LogisticLearner(0.1),
            columns=(0, 2),
            cost_rate=0.1,
            participants=np.arange(6),
            rest=Shifting(base, 1.0),
        )
        eta, step = np.full((6, 2), 0.1), 1e-4
        gradient = sized.problem.gradient(sized.at(eta))
        for index in np.ndindex(eta.shape):
            change = np.zeros_like(eta)
            change[index] = step
            ends = [sized.at(eta + sign * change).value for sign in (1, -1)]
            assert gradient[index] == pytest.approx(
                (ends[0] - ends[1]) / (2 * step), abs=1e-5 * np.abs(gradient).max()
            )

    @pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
    def test_retraining_contracts_in_proportion_to_the_rest(self, share):
        """Proposition 9 with equality: gamma = beta = 2, and people follow the mean."""
        sized = Collective(
            crowd_of(),
            TargetModelUtility(np.zeros(3)),
            MeanLearner(),
            uniform=True,
            cost_rate=1.0,
            participation=share,
            rest=Following(crowd_of(), 0.6),
        )
        theta, far = sized.at().theta, np.ones(3)
        after = sized.learner.fit(sized.problem.facing.meet(sized.space.crowd, far))
        assert sized.rate() == pytest.approx(0.6 * (1.0 - share), rel=1e-6)
        assert np.allclose(after - theta, 0.6 * (1.0 - share) * (far - theta))

    def test_the_rate_is_what_retraining_shows(self):
        base = crowd_of(200)
        sized = Collective(
            base,
            LossUtility(),
            LogisticLearner(0.02),
            columns=(0,),
            cost_rate=1.0,
            participation=0.3,
            rest=Shifting(base, 2.0),
        )
        far, gaps = np.zeros(4), []
        for _ in range(9):
            after = sized.learner.fit(sized.problem.facing.meet(sized.space.crowd, far), far)
            gaps.append(np.linalg.norm(after - far))
            far = after
        assert sized.rate() > 0.01
        assert gaps[-1] / gaps[-2] == pytest.approx(sized.rate(), rel=1e-2)

    def test_retraining_that_never_settles_is_said(self):
        base = crowd_of(100)
        sized = Collective(
            base,
            LossUtility(),
            RidgeLearner(0.1),
            columns=(),
            labels=True,
            label_range=(-5.0, 5.0),
            participation=0.05,
            rest=Shifting(base, 50.0),
        )
        with pytest.raises(NotConvergedError, match="may settle it"):
            sized.at()

    def test_one_retraining_settles_without_one(self):
        sized = Collective(crowd_of(), LossUtility(), RidgeLearner(), cost_rate=9.0)
        assert sized.rate() == 0.0


class TestMisjudgement:
    def collective(self, **changes):
        return Collective(
            crowd_of(100),
            TargetModelUtility(np.array([0.0, 1.0, 0.0, 0.0])),
            LogisticLearner(0.05),
            **{
                "columns": (0, 1),
                "ball": Ball(1.0),
                "participants": np.arange(30),
            }
            | changes,
        )

    def test_the_right_belief_costs_nothing(self):
        found = self.collective().misjudged(LogisticLearner(0.05))
        assert found.regret == pytest.approx(0.0, abs=1e-6)
        assert found.promised == pytest.approx(found.realised, abs=1e-12)
        assert found.share_kept == pytest.approx(1.0, abs=1e-4)

    def test_a_wrong_penalty_costs_and_more_so_the_wronger_it_is(self):
        regrets = [
            self.collective().misjudged(LogisticLearner(penalty)).regret
            for penalty in (0.06, 0.5, 5.0)
        ]
        assert 0.0 <= regrets[0] < regrets[1] < regrets[2]

    @pytest.mark.parametrize("uniform", [True, False])
    def test_a_larger_sample_of_the_people_misleads_less(self, uniform):
        sized = self.collective(uniform=uniform)
        means = [
            np.mean([sized.misjudged(sample=size, seed=seed).regret for seed in range(3)])
            for size in (8, 60)
        ]
        assert 0.0 <= means[1] < means[0]

    def test_a_sample_keeps_the_shares(self):
        sized = self.collective()
        known = sized.believed(sample=20).space
        assert known.crowd.n == 50
        assert known.crowd.mass[:30].sum() == pytest.approx(0.3)

    def test_nobody_left_to_sample(self):
        with pytest.raises(ParameterError, match="nobody is left"):
            self.collective(participants=None).believed(sample=5)
        with pytest.raises(ParameterError, match="at least one person"):
            self.collective().believed(sample=0)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"participation": 1.2}, ParameterError, r"share in \[0, 1\], got 1.2"),
        ({"participation": -0.1}, ParameterError, r"share in \[0, 1\]"),
        ({"participation": float("nan")}, ParameterError, r"share in \[0, 1\]"),
        ({"participation": 0.0}, NotEnoughRowsError, "nobody takes part"),
        ({"participants": []}, NotEnoughRowsError, "nobody takes part"),
        ({"participants": np.ones(3, bool)}, ParameterError, "mask of participants"),
        ({"columns": (3,)}, ParameterError, "does not exist"),
        ({"cost_rate": 0.0}, ParameterError, "neither bounded nor costly"),
    ],
)
def test_collectives_that_make_no_sense(arguments, error, message):
    settings = {"columns": (0,), "cost_rate": 1.0} | arguments
    with pytest.raises(error, match=message):
        Collective(crowd_of(), LossUtility(), LogisticLearner(), **settings)


def test_a_selfish_rest_needs_somebody_in_it():
    base = crowd_of()
    with pytest.raises(ParameterError, match="strictly between"):
        Collective(base, LossUtility(), LogisticLearner(), cost_rate=1.0, rest=Shifting(base, 0.1))


def test_retraining_promises_a_rate_in_proportion_to_the_rest():
    """Proposition 9's bound, as retraining reports it."""
    base, learner = crowd_of(), LogisticLearner(0.5, penalise_intercept=True)
    rest = Shifting(base, 0.1)
    alone = retrain_until_stable(learner, rest)
    joined = retrain_until_stable(learner, JoinedPopulation(base, rest, 0.75), alone.theta)
    assert joined.stable
    assert joined.promise.rate == pytest.approx(0.25 * alone.promise.rate, rel=0.05)
    assert (
        joined.promise.rate
        >= linearise(learner, JoinedPopulation(base, rest, 0.75), joined.theta).radius
    )


def test_members_who_become_indifferent_stop_where_their_strides_take_them():
    """Stable points are many once a column is useless; all are worth the same."""
    sized = Collective(crowd_of(), LossUtility(), LogisticLearner(), columns=(0,), actions=box(5.0))
    short, long = (sized.selfish_strategy(stride=stride) for stride in (0.01, None))
    assert short.converged
    assert long.converged
    assert short.point.value == pytest.approx(long.point.value, abs=1e-9)
    assert np.abs(short.point.eta - long.point.eta).max() > 1e-3
    assert len(short.residuals) > len(long.residuals)


def test_a_selfish_play_cut_short_says_so():
    sized = Collective(crowd_of(), LossUtility(), LogisticLearner(), columns=(0,), actions=box(5.0))
    with pytest.raises(NotConvergedError, match="would still move"):
        sized.selfish_strategy(max_steps=1, stride=0.01)
    assert not sized.selfish_strategy(max_steps=1, stride=0.01, strict=False).converged


def test_the_public_names_are_where_the_design_says():
    from countermove import dynamics

    assert dynamics.Collective is Collective
    assert all(hasattr(dynamics, name) for name in dynamics.__all__)
