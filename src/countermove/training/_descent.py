"""How one epoch changes the score: mini-batches, line searches on all rows, or Newton's steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import nn

from countermove._types import Floats
from countermove.randomness import torch_generator
from countermove.scores import LinearScore, Score
from countermove.training._labels import between_means, mean_and_spread
from countermove.training.history import Optimum
from countermove.training.newton import TOLERANCE, Derivatives, NewtonRun, minimise
from countermove.training.rows import (
    Objective,
    SecondOrderObjective,
    SoftenedObjective,
    TrainingRows,
)
from countermove.training.second_order import with_ridge

MOST_STEPS = 100
"""Of Newton's method, which takes about ten where the loss is smooth."""
TRIAL_STEPS = 8
"""Of a descent from another start, unless it has come below the first."""
ALIKE = 1e-6
"""Ends whose losses and cosines differ by less are one optimum."""
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
        self,
        score: Score,
        objective: SecondOrderObjective,
        sample: TrainingRows,
        most: int,
        tolerance: float = TOLERANCE,
    ) -> None:
        # What `Score.linear_columns` promises: weight and bias are all there is.
        self.score = cast(LinearScore, score)
        self.objective, self.sample, self.most = objective, sample, most
        self.whole: tuple[SecondOrderObjective, Any] | None = None
        self.given = self._point()
        self.run = NewtonRun(self._derivatives, self.given, tolerance)
        self.path = objective.softened() if isinstance(objective, SoftenedObjective) else ()
        self.optima: tuple[Optimum, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the optimum was reached."""
        return self.run.converged

    def epoch(self, objective: Objective, number: int) -> float:
        """Take one step; once no other follows, descend from another start where that may pay."""
        if number == 0 and self.path:
            self.run = NewtonRun(self._derivatives, self._softer_optimum(), self.run.tolerance)
        elif self.run.ended:
            self._descend_again()
        else:
            self.run.step()
        if self.run.ended and not (self.optima or self._may_end_elsewhere):
            self.optima = (_optimum(self._first_start, self.run, self.run.point),)
        self._put(self.run.point)
        return self.run.here.value

    def ended(self, epochs: int) -> str:
        """Stop at the optimum, where nothing helps, or after too many steps."""
        if epochs >= self.most and not self.run.ended:
            return f"stopped after {self.most} steps, gradient {self.run.here.norm:.1e}"
        pending = not self.optima and self._may_end_elsewhere and 0 < epochs < self.most
        pending |= epochs == 0 and bool(self.path)
        return "" if pending else self.run.ended

    def state(self) -> dict[str, Any]:
        """Return what was learned of the curvature, and by how much the last steps helped."""
        return {
            "lowered": self.run.lowered,
            "unknown": torch.from_numpy(self.run.unknown),
            "stuck": self.run.stuck,
            "optima": [asdict(optimum) for optimum in self.optima],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where the score is."""
        self.run = NewtonRun(self._derivatives, self._point())
        self.run.unknown, self.run.stuck = state["unknown"].numpy().copy(), bool(state["stuck"])
        self.run.lowered = list(state["lowered"])
        self.optima = tuple(Optimum(**one) for one in state["optima"])

    @property
    def _may_end_elsewhere(self) -> bool:
        # Rows in parts are read again for every step: there one descent has to do.
        return self.run.here.may_have_several_optima and not self.sample.in_parts

    @property
    def _first_start(self) -> str:
        return "softer" if self.path else "given"

    def _softer_optimum(self) -> Floats:
        """Return where the softer objectives lead, one after the other, whatever the start."""
        point = self.given
        for objective in self.path:

            def function(at: Floats, objective: SecondOrderObjective = objective) -> Derivatives:
                return self._derivatives(at, objective)

            point = minimise(function, point, max_steps=self.most).point
        return point

    def _descend_again(self) -> None:
        """Descend from another start too; the first end is kept unless the other is lower.

        What softer objectives led to is kept unless the other's log-likelihood, over all
        rows, is higher by one: optima that alike must not depend on where training started.
        """
        name, start = "class_means", self._class_means
        if self.path:
            name, start = "given", lambda: self.given
        other = NewtonRun(self._derivatives, start(), self.run.tolerance)
        steps, margin = 0, 1.0 / self.sample.counted if self.path else 0.0
        # After its first steps only a descent that is already lower is followed to its end.
        while not other.ended and steps < self.most:
            if steps >= TRIAL_STEPS and other.here.value >= self.run.here.value:
                break
            other.step()
            steps += 1
        ends = [(self._first_start, self.run), (name, other)]
        if other.here.value < self.run.here.value - margin:
            ends.reverse()
        self.run = ends[0][1]
        found = [_optimum(label, run, self.run.point) for label, run in ends]
        # The same optimum from both starts is one.
        same = abs(found[0].loss - found[1].loss) < ALIKE and found[1].cosine > 1.0 - ALIKE
        self.optima = tuple(found[:1] if same else found)

    def _class_means(self) -> Floats:
        """Return the line between the class means, its scores standardised, on what is trained."""
        columns = self.score.linear_columns()
        assert columns is not None
        X, y = self.sample.X.numpy()[:, list(columns)], self.sample.y.numpy()
        direction = np.zeros(X.shape[1])
        if (y > 0).any() and (y <= 0).any():
            direction = between_means(X, y)
        scores = X @ direction
        centre, spread = mean_and_spread(scores, y)
        return np.append(direction, -centre) / max(spread, 1e-12)

    def _point(self) -> Floats:
        with torch.no_grad():
            return np.append(self.score.weight.numpy(), self.score.bias.item())

    def _put(self, point: Floats) -> None:
        with torch.no_grad():
            self.score.weight.copy_(torch.from_numpy(point[:-1]))
            self.score.bias.fill_(float(point[-1]))

    def _derivatives(
        self, point: Floats, objective: SecondOrderObjective | None = None
    ) -> Derivatives:
        self._put(point)
        asked = self.objective if objective is None else objective
        if self.whole is None or self.whole[0] is not asked:
            # Of the same people at every step: what is made of their bounds is made once.
            self.whole = asked, of_training(asked, self.sample)
        found = self.sample.second_order(self.whole[1], self.score)
        return with_ridge(found, point[:-1], self.sample.counted)


def _optimum(start: str, run: NewtonRun, kept: Floats) -> Optimum:
    """Describe where a descent ended."""
    ours, theirs = run.point[:-1], kept[:-1]
    size = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
    cosine = float(ours @ theirs) / size if size > 0.0 else 1.0
    ended = run.ended or f"given up at a higher loss, gradient {run.here.norm:.1e}"
    return Optimum(start, run.here.value, run.here.norm, ended, min(cosine, 1.0))


def to_the_optimum(
    score: Score,
    objective: SecondOrderObjective,
    sample: TrainingRows,
    tolerance: float = TOLERANCE,
) -> None:
    """Take Newton's steps until they end, without a verdict on each."""
    steps = NewtonSteps(score, objective, sample, MOST_STEPS, tolerance)
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
