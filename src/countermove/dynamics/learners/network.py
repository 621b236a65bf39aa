r"""Any differentiable torch module, or our own trainer, as a learner.

A torch module's fit ends at a stationary point to rounding (L-BFGS, then Newton with
conjugate gradients); Hessians appear only as products with vectors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners._newton import HALVINGS, solve_by_products
from countermove.dynamics.learners.linear import Learner
from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.scores import Score
from countermove.scores.base import RescaledScore
from countermove.training.estimator import ScoreClassifier
from countermove.training.losses import LOSSES

Loss = Callable[[Tensor, Tensor], Tensor]

ROUGH = 1e-4
"""Below this gradient Newton's method takes over from L-BFGS."""


def logistic_loss(s: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\log(1 + e^s) - y s` of each score."""
    return torch.nn.functional.softplus(s) - y * s


@dataclass(frozen=True, eq=False)
class TorchLearner(Learner):
    r"""Minimises :math:`E[\ell(s_\theta(x), y)] + \frac\lambda2 |\theta|^2` of a torch module.

    Parameters
    ----------
    module
        Gives :math:`s_\theta(x)`, shape (n,), of rows of shape (n, d), in float64; its present
        weights are where a fit without a start begins. Noise of training is turned off.
    loss
        :math:`\ell` of scores and labels, row by row, twice differentiable in both.
    penalty
        :math:`\lambda \ge 0` on every parameter. A learner's response to data is determined only
        where its Hessian is positive definite; the penalty makes it so.
    tolerance
        A fit ends when no entry of the gradient is larger.
    max_steps
        Newton steps before a fit is given up.

    Notes
    -----
    Where the module is not convex in its parameters a fit is a local minimum: the response to a
    small change of data is that of this minimum, and `strong_convexity` promises nothing.
    """

    module: nn.Module
    loss: Loss = logistic_loss
    penalty: float = 1e-2
    tolerance: float = 1e-9
    max_steps: int = 50
    name: ClassVar[str] = "torch"

    def __post_init__(self) -> None:
        if not np.isfinite(self.penalty) or self.penalty < 0.0:
            raise ParameterError(f"a penalty is a number >= 0, got {self.penalty}")
        held = copy.deepcopy(self.module).eval()
        wrong = [name for name, part in held.named_parameters() if part.dtype != torch.float64]
        if wrong or not list(held.parameters()):
            raise ParameterError(
                f"a module needs parameters of float64; not so: {', '.join(wrong) or 'none at all'}"
                " (call module.double())"
            )
        object.__setattr__(self, "module", held)

    @property
    def strong_convexity(self) -> float:
        """Return 0: a module's loss need not be convex, whatever the penalty."""
        return 0.0

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return a minimiser: L-BFGS to its neighbourhood, Newton's method to rounding."""
        theta = self._now() if start is None else np.array(start)
        if np.abs(self.gradient(theta, crowd)).max() > ROUGH:
            theta = self._approach(theta, crowd)
        for _ in range(self.max_steps):
            gradient = self.gradient(theta, crowd)
            if np.abs(gradient).max() <= self.tolerance:
                return theta
            theta = self._descend(theta, gradient, crowd)
        raise NotConvergedError(
            f"the module's gradient is still {np.abs(gradient).max():.2g} after {self.max_steps} "
            f"Newton steps (tolerance {self.tolerance:.2g}); raise the penalty or the tolerance"
        )

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return each person's loss, shape (n,)."""
        with torch.no_grad():
            found = self._losses(torch.from_numpy(theta), *self._tensors(crowd))
        return cast(Floats, found.numpy())

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean loss and the penalty."""
        return float(crowd.mean(self.losses(theta, crowd)) + 0.5 * self.penalty * theta @ theta)

    def row_gradients(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of each person's loss in the parameters, shape (n, p)."""

        def one(at: Tensor, x: Tensor, y: Tensor) -> Tensor:
            return self._losses(at, x[None], y[None])[0]

        X, y = self._tensors(crowd)
        rows = vmap(grad(one), in_dims=(None, 0, 0))(torch.from_numpy(theta), X, y)
        return cast(Floats, rows.detach().numpy())

    def gradient(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the gradient of the risk."""
        at = torch.from_numpy(theta).requires_grad_()
        (found,) = torch.autograd.grad(self._mean(at, crowd, *self._tensors(crowd)), at)
        return cast(Floats, found.numpy()) + self.penalty * theta

    def hessian_product(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        """Return the Hessian of the risk times a vector."""
        at = torch.from_numpy(theta).requires_grad_()
        mean = self._mean(at, crowd, *self._tensors(crowd))
        (slope,) = torch.autograd.grad(mean, at, create_graph=True)
        product = torch.zeros_like(at)
        if slope.requires_grad:
            (product,) = torch.autograd.grad(
                slope @ torch.from_numpy(v), at, materialize_grads=True
            )
        return cast(Floats, product.numpy()) + self.penalty * v

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} v` by conjugate gradients; refuse an H that is not definite."""
        return solve_by_products(lambda u: self.hessian_product(theta, crowd, u), v)

    def pull(self, theta: Floats, crowd: Crowd, v: Floats) -> tuple[Floats, Floats]:
        """Return the mixed derivative contracted over the parameters, by automatic gradients."""
        at = torch.from_numpy(theta).requires_grad_()
        X, y = (part.requires_grad_() for part in self._tensors(crowd))
        (slope,) = torch.autograd.grad(self._mean(at, crowd, X, y), at, create_graph=True)
        by_x, by_y = torch.autograd.grad(
            slope @ torch.from_numpy(v), (X, y), materialize_grads=True
        )
        return cast(Floats, by_x.numpy()), cast(Floats, by_y.numpy())

    def loss_slopes(self, theta: Floats, crowd: Crowd) -> tuple[Floats, Floats]:
        """Return the slopes of each person's loss in its features and label."""
        X, y = (part.requires_grad_() for part in self._tensors(crowd))
        total = self._losses(torch.from_numpy(theta), X, y).sum()
        by_x, by_y = torch.autograd.grad(total, (X, y), materialize_grads=True)
        return cast(Floats, by_x.numpy()), cast(Floats, by_y.numpy())

    def score(self, theta: Floats) -> Score:
        """Return the model as a published score, where the module is one."""
        if not isinstance(self.module, Score):
            raise ParameterError(
                f"people respond to a published score, and {type(self.module).__name__} is none; "
                "build the learner on a countermove Score (LinearScore, MLPScore, ...)"
            )
        found = copy.deepcopy(self.module)
        vector_to_parameters(torch.from_numpy(theta), found.parameters())
        return found

    def _approach(self, theta: Floats, crowd: Crowd) -> Floats:
        from scipy.optimize import minimize

        found = minimize(
            lambda at: (self.risk(at, crowd), self.gradient(at, crowd)),
            theta,
            jac=True,
            method="L-BFGS-B",
            options={"gtol": ROUGH, "ftol": 0.0, "maxiter": 2_000, "maxcor": 20},
        )
        return cast(Floats, np.asarray(found.x, dtype=np.float64))

    def _descend(self, theta: Floats, gradient: Floats, crowd: Crowd) -> Floats:
        """Take the longest of the halved Newton steps that does not raise the risk."""
        step, risk = self.solve(theta, crowd, gradient), self.risk(theta, crowd)
        rounding = 8.0 * np.finfo(np.float64).eps * max(1.0, abs(risk))
        for halving in range(HALVINGS):
            there = theta - 0.5**halving * step
            if self.risk(there, crowd) <= risk + rounding:
                return there
        raise NotConvergedError(f"no step lowers the module's risk of {risk:.6g}")

    def _losses(self, theta: Tensor, X: Tensor, y: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.module, self._parts(theta), (X,))
        if scores.shape != y.shape:
            raise DataError(
                f"the module gives scores of shape {tuple(scores.shape)} for {len(y)} people; "
                f"expected ({len(y)},)"
            )
        return self.loss(scores, y)

    def _mean(self, theta: Tensor, crowd: Crowd, X: Tensor, y: Tensor) -> Tensor:
        return torch.from_numpy(crowd.mass) @ self._losses(theta, X, y)

    def _parts(self, theta: Tensor) -> dict[str, Tensor]:
        """Cut the parameter vector into the module's parameters."""
        parts, begun = {}, 0
        for name, part in self.module.named_parameters():
            parts[name] = theta[begun : begun + part.numel()].reshape(part.shape)
            begun += part.numel()
        if begun != len(theta):
            raise DataError(f"the model has {len(theta)} parameters; the module needs {begun}")
        return parts

    def _now(self) -> Floats:
        flat = parameters_to_vector(self.module.parameters())
        return cast(Floats, flat.detach().numpy().copy())

    @staticmethod
    def _tensors(crowd: Crowd) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(crowd.X), torch.from_numpy(crowd.y)


EVEN = 1e-9
"""Weights this near to each other are equal but for rounding."""


class TrainedLearner(Learner):
    """A learner that only fits: a `StrategicClassifier` or another classifier around a score.

    The model is the vector of all parameters of ``score_``. There are no derivatives, hence no
    gradient descent and none of the theory's constants; retraining itself runs.

    Parameters
    ----------
    classifier
        Trained again, as configured, on the people of every round. A strategic one expects the
        people it sees to move once more; ``response="none"`` takes them as they are. Standard
        deviations are those of each round's people, unless it has ``standardise=False``.
    """

    name: ClassVar[str] = "trained"
    differentiable: ClassVar[bool] = False

    def __init__(self, classifier: ScoreClassifier) -> None:
        self.classifier = classifier
        self._pattern: Score | None = None

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return the parameters of the trained score; ``start`` is not read."""
        from sklearn.base import clone

        if crowd.weight is not None and np.ptp(crowd.weight) > EVEN / crowd.n:
            raise DataError(
                "the trainer counts all rows alike, but the people given count differently; draw "
                "who does what instead (LevelKPopulation.drawn), so that nobody needs a weight"
            )
        if set(np.unique(crowd.y)) != {0.0, 1.0}:
            raise DataError("the trainer reads labels 0 and 1, both present")
        trained = clone(self.classifier).fit(crowd.X, crowd.y.astype(np.int64))
        if isinstance(trained.score_, RescaledScore):
            raise ParameterError(
                f"a {trained.standardised_score_.kind} score does not hold the units of its rows, "
                "which change from round to round; give the classifier standardise=False, and "
                "people in standardised units"
            )
        self._pattern = trained.score_
        with torch.no_grad():
            return np.asarray(parameters_to_vector(trained.score_.parameters()).numpy().copy())

    def losses(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the loss of the classifier where people stand, shape (n,)."""
        loss = LOSSES[getattr(self.classifier, "loss", "logistic")]
        with torch.no_grad():
            scores = self.score(theta)(torch.from_numpy(crowd.X))
            return np.asarray(loss(scores, torch.from_numpy(2.0 * crowd.y - 1.0)).numpy())

    def risk(self, theta: Floats, crowd: Crowd) -> float:
        """Return the mean loss where people stand, without regularisers."""
        return float(crowd.mean(self.losses(theta, crowd)))

    def score(self, theta: Floats) -> Score:
        """Return the score with these parameters."""
        if self._pattern is None:
            raise ParameterError(
                "what the parameters mean is known after the first fit; call fit, or leave start "
                "out so that retraining begins with one"
            )
        score = copy.deepcopy(self._pattern)
        with torch.no_grad():
            vector_to_parameters(torch.from_numpy(np.array(theta)), score.parameters())
        return score

    @property
    def strong_convexity(self) -> float:
        """Return 0: nothing is promised for a trained score."""
        return 0.0

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ParameterError(
            f"{type(self.classifier).__name__} only fits: it has no derivatives to descend or look "
            "ahead by; use LogisticLearner or RidgeLearner for that"
        )

    row_gradients = gradient = solve = pull = loss_slopes = _refuse

    def describe(self) -> dict[str, Any]:
        """Return the classifier and its settings, as text."""
        return {"kind": self.name, "classifier": repr(self.classifier)}
