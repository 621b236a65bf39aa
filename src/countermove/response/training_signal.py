"""The training signal of a linear score under a quadratic cost: one compiled call per batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from countermove.response.base import Floats, check_converged
from countermove.response.failures import raise_failures
from countermove.response.trade import Reduction, plain_arrays
from countermove.scores import LinearScore


@dataclass(frozen=True)
class Setting:
    """How the smoothed response is solved: sharpness, start, gradient, and dlog N/dw."""

    sharpness: float
    first: bool
    proxy: bool
    by_unit: Floats


class _LinearSignal(torch.autograd.Function):
    """Score after the smoothed response as a function of weight and bias."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, bias: Tensor, job: Any) -> Tensor:
        from countermove.response.training_rows import training_rows

        reduction, rows, setting, moving = job
        n, d = rows.shape
        after, by_score, by_slope = np.empty(n), np.empty(n), np.empty((n, d))
        status = np.empty(n, dtype=np.int64)
        training_rows(
            rows, weight.detach().numpy(), float(bias.detach()), *plain_arrays(reduction.trade),
            setting.sharpness, setting.first, setting.proxy, setting.by_unit,
            after, by_score, by_slope, status,
        )  # fmt: skip
        check_converged(raise_failures(rows, status, reduction.trade), "raise")
        ctx.saved = (rows, by_score, by_slope, moving)
        return torch.from_numpy(after)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        rows, by_score, by_slope, moving = ctx.saved
        g = grads[0].numpy()
        on_score = g * by_score
        by_weight = g @ by_slope
        if moving is not None:
            by_weight *= moving
        by_weight += on_score @ rows
        return torch.from_numpy(by_weight), torch.tensor(on_score.sum()), None


def linear_signal(
    score: LinearScore, reduction: Reduction, rows: Floats, setting: Setting
) -> Tensor:
    """Return the scores after the response, with gradients to weight and bias."""
    job = (reduction, rows, setting, reduction.plan.moving_mask)
    result: Tensor = _LinearSignal.apply(score.weight, score.bias, job)  # type: ignore[no-untyped-call]
    return result


def log_unit_gradient(reduction: Reduction) -> Floats:
    """Return the derivative of log N(w) in the slope: w over N squared, where w can be used."""
    useful = reduction.plan.usable(reduction.trade.slope)
    total = float(useful @ useful)
    return useful / total if total > 0.0 else useful
