"""How one epoch changes the score: mini-batches, line searches on all rows, or Newton's steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import nn

from countermove._types import Floats
from countermove.randomness import torch_generator
from countermove.scores import LinearScore, Score
from countermove.training.newton import Derivatives, NewtonRun
from countermove.training.rows import Objective, SecondOrderObjective, TrainingRows
from countermove.training.second_order import with_ridge

MOST_STEPS = 100
"""Of Newton's method, which takes about ten where the loss is smooth."""
POLISHED = 1e-6
"""Largest entry of the gradient of the mean loss at which L-BFGS has converged."""
MOST_POLISHES = 10
"""Epochs of L-BFGS, of up to 20 steps each, after Adam's on rows in parts."""


class Descent(Protocol):
    """What an epoch does."""

    @property
    def converged(self) -> bool | None:
        """Whether the optimum was reached; None where nothing tells."""

    def epoch(self, objective: Objective, number: int) -> float:
        """Change the score by one epoch, counted from 0; return the mean loss met."""

    def ended(self, epochs: int) -> str:
        """Say why no epoch should follow the first ``epochs``; empty if one should."""

    def state(self) -> dict[str, Any]:
        """Return what a continued run needs, tensors and plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a stored state; the score is already there."""


class MiniBatches:
    """Adam: one step per batch, in an order drawn from the seed."""

    converged = None

    def __init__(
        self,
        score: Score,
        parameters: list[nn.Parameter],
        sample: TrainingRows,
        settle: Callable[[], None],
        learning_rate: float,
        batch_size: int,
        max_epochs: int,
        seed: int,
    ) -> None:
        self.score, self.sample, self.settle = score, sample, settle
        self.batch_size, self.max_epochs, self.seed = batch_size, max_epochs, seed
        # One fused call per step: for a few dozen rows the calls are the price, not the sums.
        self.optimiser = torch.optim.Adam(parameters, lr=learning_rate, fused=True)

    def epoch(self, objective: Objective, number: int) -> float:
        """Step once per batch."""
        shuffler = torch_generator(self.seed, f"shuffle:{number}")
        batches = self.sample.batches(self.batch_size, shuffler)
        step, zero_grad = self.optimiser.step, self.optimiser.zero_grad
        of_rows, settle, score = objective.of_rows, self.settle, self.score
        total = torch.zeros((), dtype=torch.float64)
        with _noisy(score, torch_generator(self.seed, f"noise:{number}")):
            for X, y, rows in batches:
                loss = of_rows(rows).loss(score, X, y)
                zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                step()
                settle()
                total.add_(loss.detach(), alpha=len(y))
        return float(total) / self.sample.n

    def ended(self, epochs: int) -> str:
        """Stop after the epochs asked for."""
        return _all_done(epochs, self.max_epochs)

    def state(self) -> dict[str, Any]:
        """Return Adam's moments."""
        return self.optimiser.state_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put them back."""
        self.optimiser.load_state_dict(dict(state))


class LineSearches:
    """L-BFGS: up to 20 steps on all rows per epoch."""

    def __init__(
        self,
        score: Score,
        parameters: list[nn.Parameter],
        sample: TrainingRows,
        settle: Callable[[], None],
        max_epochs: int,
    ) -> None:
        self.score, self.sample, self.settle, self.max_epochs = score, sample, settle, max_epochs
        self.optimiser = torch.optim.LBFGS(
            parameters,
            tolerance_grad=POLISHED,
            tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )
        self.norm, self.stuck = math.inf, False

    @property
    def converged(self) -> bool:
        """Whether the gradient was as small as asked for where the last epoch ended."""
        return self.norm <= POLISHED

    def epoch(self, objective: Objective, number: int) -> float:
        """Take the steps; the loss is that of where they ended."""
        whole = of_training(objective, self.sample)
        parameters = self.optimiser.param_groups[0]["params"]
        before = [parameter.detach().clone() for parameter in parameters]

        def closure() -> float:
            self.optimiser.zero_grad()
            return self.sample.descend(whole, self.score)

        self.optimiser.step(closure)  # type: ignore[no-untyped-call]
        self.settle()
        loss = closure()
        gradients = (one.grad for one in parameters if one.grad is not None)
        self.norm = max((float(one.abs().max()) for one in gradients), default=0.0)
        self.stuck = all(map(torch.equal, before, parameters))
        return loss

    def ended(self, epochs: int) -> str:
        """Stop at the optimum, where nothing helps, or after the epochs asked for."""
        if self.converged:
            return f"converged: no entry of the gradient exceeds {POLISHED:g}"
        if self.stuck:
            return f"stopped where no step lowers the loss (gradient {self.norm:.1e})"
        done = _all_done(epochs, self.max_epochs)
        return f"{done}, gradient {self.norm:.1e}" if done and epochs else done

    def state(self) -> dict[str, Any]:
        """Return the pairs of steps and gradients, and where the last epoch ended."""
        return self.optimiser.state_dict() | {"norm": self.norm, "stuck": self.stuck}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Put them back."""
        self.optimiser.load_state_dict({key: state[key] for key in ("state", "param_groups")})
        self.norm, self.stuck = state.get("norm", math.inf), state.get("stuck", False)


class NewtonSteps:
    """One Newton step on all rows per epoch, to the optimum."""

    def __init__(
        self, score: Score, objective: SecondOrderObjective, sample: TrainingRows, most: int
    ) -> None:
        # What `Score.linear_columns` promises: weight and bias are all there is.
        self.score = cast(LinearScore, score)
        self.objective, self.sample, self.most = objective, sample, most
        self.run = NewtonRun(self._derivatives, self._point())

    @property
    def converged(self) -> bool:
        """Whether the optimum was reached."""
        return self.run.converged

    def epoch(self, objective: Objective, number: int) -> float:
        """Take one step."""
        self.run.step()
        self._put(self.run.point)
        return self.run.here.value

    def ended(self, epochs: int) -> str:
        """Stop at the optimum, where nothing helps, or after too many steps."""
        if epochs >= self.most and not self.run.ended:
            return f"stopped after {self.most} steps, gradient {self.run.here.norm:.1e}"
        return self.run.ended

    def state(self) -> dict[str, Any]:
        """Return what was learned of the curvature."""
        return {"unknown": torch.from_numpy(self.run.unknown), "stuck": self.run.stuck}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where the score is."""
        self.run = NewtonRun(self._derivatives, self._point())
        self.run.unknown, self.run.stuck = state["unknown"].numpy().copy(), bool(state["stuck"])

    def _point(self) -> Floats:
        with torch.no_grad():
            return np.append(self.score.weight.numpy(), self.score.bias.item())

    def _put(self, point: Floats) -> None:
        with torch.no_grad():
            self.score.weight.copy_(torch.from_numpy(point[:-1]))
            self.score.bias.fill_(float(point[-1]))

    def _derivatives(self, point: Floats) -> Derivatives:
        self._put(point)
        whole = of_training(self.objective, self.sample)
        found = self.sample.second_order(whole, self.score)
        return with_ridge(found, point[:-1], self.sample.n)


def to_the_optimum(score: Score, objective: SecondOrderObjective, sample: TrainingRows) -> None:
    """Take Newton's steps until they end, without a verdict on each."""
    steps = NewtonSteps(score, objective, sample, MOST_STEPS)
    taken = 0
    while not steps.ended(taken):
        steps.epoch(objective, taken)
        taken += 1


def of_training(objective: Any, sample: TrainingRows) -> Any:
    """Return the objective of the training rows."""
    return objective.of_rows(torch.arange(len(sample.y)))


def _all_done(epochs: int, most: int) -> str:
    return f"stopped after {most} epochs" if epochs >= most else ""


@contextmanager
def _noisy(score: Score, generator: torch.Generator) -> Iterator[None]:
    """Turn the score's training noise on for an epoch, drawn from ``generator`` only."""
    score.noise_from(generator)
    score.train()
    try:
        yield
    finally:
        score.eval()
        score.noise_from(None)
