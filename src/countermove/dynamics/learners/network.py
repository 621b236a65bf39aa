r"""Any differentiable torch module, or our own trainer, as a learner.

A torch module's fit ends at a stationary point to rounding (L-BFGS, then damped Newton steps
that lead downhill whatever the curvature); Hessians of large modules are products alone.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, vmap
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from countermove._types import Floats
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners.linear import Learner
from countermove.dynamics.learners.newton import (
    descend_anywhere,
    downhill,
    downhill_by_products,
    least_squares,
    solve_by_products,
)
from countermove.errors import DataError, NotConvergedError, ParameterError
from countermove.scores import Score
from countermove.scores.base import RescaledScore
from countermove.scores.opaque import ModuleScore
from countermove.training.estimator import ScoreClassifier
from countermove.training.losses import LOSSES

Loss = Callable[[Tensor, Tensor], Tensor]

ROUGH = 1e-4
"""Below this gradient Newton's method takes over from L-BFGS."""
DENSE = 300
"""Up to so many parameters the Hessian is made whole; beyond, it is read through products."""


def logistic_loss(s: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\log(1 + e^s) - y s` of each score."""
    return torch.nn.functional.softplus(s) - y * s


@dataclass(frozen=True, eq=False)
class TorchLearner(Learner):
    r"""Minimises :math:`E[\ell(s_\theta(x), y)] + \frac\lambda2 |\theta|^2` of a torch module.

    Parameters
    ----------
    module
        Any differentiable one, a `Score` or a plain ``nn.Sequential``: gives
        :math:`s_\theta(x)`, shape (n,) or (n, 1), of rows of shape (n, d). A copy in float64 is
        held, its noise of training turned off; its present weights are where a fit without a
        start begins.
    loss
        :math:`\ell` of scores and labels, row by row, twice differentiable in both.
    penalty
        :math:`\lambda \ge 0` on every parameter. Where the Hessian is singular the learner's
        response to data is that of least squares, and refused where it is not determined.
    tolerance
        A fit ends when no entry of the gradient is larger.
    max_steps
        Newton steps before a fit is given up, with `NotConvergedError`: a module with kinks
        (ReLU) may rest at one, where no gradient is 0; raise the tolerance there.

    Notes
    -----
    Where the module is not convex in its parameters a fit is a local minimum: the response to a
    small change of data is that of this minimum, and `strong_convexity` promises nothing.
    """

    module: nn.Module
    loss: Loss = logistic_loss
    penalty: float = 1e-2
    tolerance: float = 1e-9
    max_steps: int = 200
    name: ClassVar[str] = "torch"

    def __post_init__(self) -> None:
        if not np.isfinite(self.penalty) or self.penalty < 0.0:
            raise ParameterError(f"a penalty is a number >= 0, got {self.penalty}")
        held = copy.deepcopy(self.module).double().eval()
        if not list(held.parameters()):
            raise ParameterError("a module needs parameters to fit; this one has none at all")
        object.__setattr__(self, "module", held)

    @property
    def strong_convexity(self) -> float:
        """Return 0: a module's loss need not be convex, whatever the penalty."""
        return 0.0

    def fit(self, crowd: Crowd, start: Floats | None = None) -> Floats:
        """Return a minimiser: L-BFGS to its neighbourhood, damped Newton steps to rounding."""
        theta = self._now() if start is None else np.array(start)
        rough = max(ROUGH, self.tolerance)
        if np.abs(self.gradient(theta, crowd)).max() > rough:
            theta = self._approach(theta, crowd, rough)
        theta, worst = descend_anywhere(
            lambda at: self.risk(at, crowd),
            lambda at: self.gradient(at, crowd),
            lambda at, slope: self._step(at, slope, crowd),
            theta,
            tolerance=self.tolerance,
            max_steps=self.max_steps,
        )
        if worst > self.tolerance:
            raise NotConvergedError(
                f"the module's gradient is still {worst:.2g} after at most {self.max_steps} "
                f"Newton steps (tolerance {self.tolerance:.2g}); raise the penalty or the "
                "tolerance (a module with kinks may rest where no gradient is 0)"
            )
        return theta

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
        return self._risk_and_gradient(theta, crowd)[1]

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

    def hessian(self, theta: Floats, crowd: Crowd) -> Floats:
        """Return the Hessian of the risk, shape (p, p)."""
        X, y = self._tensors(crowd)

        def mean(at: Tensor) -> Tensor:
            return self._mean(at, crowd, X, y)

        found = jacrev(grad(mean))(torch.from_numpy(theta))
        return cast(Floats, found.detach().numpy()) + self.penalty * np.eye(len(theta))

    def solve(self, theta: Floats, crowd: Crowd, v: Floats) -> Floats:
        r"""Return :math:`H^{-1} v` by least squares, so that H need not be definite."""
        if len(theta) <= DENSE:
            return least_squares(self.hessian(theta, crowd), v)
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
        """Return the model as a published score; a plain module is read as log-odds."""
        found = copy.deepcopy(self.module)
        with torch.no_grad():
            vector_to_parameters(torch.from_numpy(np.array(theta)), found.parameters())
        if isinstance(found, Score):
            return found
        return ModuleScore(found, self._width(), sign=1.0, probability=False)

    def _risk_and_gradient(self, theta: Floats, crowd: Crowd) -> tuple[float, Floats]:
        at = torch.from_numpy(theta).requires_grad_()
        mean = self._mean(at, crowd, *self._tensors(crowd))
        (found,) = torch.autograd.grad(mean, at)
        risk = float(mean.detach()) + 0.5 * self.penalty * float(theta @ theta)
        return risk, cast(Floats, found.numpy()) + self.penalty * theta

    def _approach(self, theta: Floats, crowd: Crowd, rough: float) -> Floats:
        from scipy.optimize import minimize

        found = minimize(
            lambda at: self._risk_and_gradient(at, crowd),
            theta,
            jac=True,
            method="L-BFGS-B",
            options={"gtol": rough, "ftol": 0.0, "maxiter": 2_000, "maxcor": 20},
        )
        return cast(Floats, np.asarray(found.x, dtype=np.float64))

    def _step(self, theta: Floats, gradient: Floats, crowd: Crowd) -> Floats:
        """Return a Newton step that leads downhill."""
        if len(theta) <= DENSE:
            return downhill(self.hessian(theta, crowd), gradient)
        return downhill_by_products(lambda u: self.hessian_product(theta, crowd, u), gradient)

    def _width(self) -> int:
        """Return how many features a plain module reads: the columns of its first matrix."""
        shapes = (part.shape for part in self.module.parameters() if part.ndim == 2)
        first = next(shapes, None)
        if first is None:
            raise ParameterError(
                f"{type(self.module).__name__} has no matrix to tell how many features it reads; "
                "build the learner on a countermove Score"
            )
        return int(first[1])

    def _losses(self, theta: Tensor, X: Tensor, y: Tensor) -> Tensor:
        scores: Tensor = functional_call(self.module, self._parts(theta), (X,))
        if scores.shape == (len(y), 1):
            scores = scores[:, 0]
        if scores.shape != y.shape:
            raise DataError(
                f"the module gives scores of shape {tuple(scores.shape)} for {len(y)} people; "
                f"expected ({len(y)},) or ({len(y)}, 1)"
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
