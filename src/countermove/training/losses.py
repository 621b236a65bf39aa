"""Losses of a score against labels in {-1, +1}, each one fused expression.

A loss is a mean over people, optionally weighted by class or by person (the size of the label);
batches of a few dozen rows make the number of torch calls, not the arithmetic, the price of an
epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from countermove.errors import ParameterError, UnknownNameError, nearest

_ONE = torch.ones((), dtype=torch.float64)


def hinge_values(scores: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\max(0, 1 - y s)` per person."""
    return torch.addcmul(_ONE, y, scores, value=-1.0).clamp_min(0.0)


def logistic_values(scores: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\log(1 + e^{-y s})` per person."""
    return softplus(-y * scores)


LOSSES: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "hinge": hinge_values,
    "logistic": logistic_values,
}


@dataclass(frozen=True)
class Loss:
    r"""Mean loss :math:`\frac1n \sum_i c_{y_i}\, \ell(y_i s_i)`.

    Parameters
    ----------
    name
        ``"hinge"`` or ``"logistic"``.
    class_weight
        :math:`(c_{-1}, c_{+1})`, both positive; None weighs every person alike.
    weighted
        Whether labels have sizes other than 1, which are people's weights in the mean.
    """

    name: str = "hinge"
    class_weight: tuple[float, float] | None = None
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise UnknownNameError(f"no loss is called {self.name!r}: {nearest(self.name, LOSSES)}")
        if self.class_weight is not None and not min(self.class_weight) > 0.0:
            raise ParameterError(f"both class weights must be positive, got {self.class_weight}")

    def __call__(self, scores: Tensor, y: Tensor) -> Tensor:
        """Return the mean loss of ``scores``, shape (n,), against ``y`` in {-1, +1}."""
        values = LOSSES[self.name](scores, y.sign() if self.weighted else y)
        if self.class_weight is not None:
            refused, favoured = map(values.new_tensor, self.class_weight)
            values = values * torch.where(y > 0, favoured, refused)
        return mean_by_size(values, y) if self.weighted else values.mean()


def mean_by_size(values: Tensor, y: Tensor) -> Tensor:
    """Return the mean over people of whom each counts as much as the size of the label."""
    size = y.abs()
    return (values * size).sum() / size.sum()


def balanced_weights(y: Tensor) -> tuple[float, float]:
    """Return class weights that give both classes the same say and mean one over people."""
    favoured = float(mean_by_size((y > 0).to(torch.float64), y))
    if not 0.0 < favoured < 1.0:
        raise ParameterError("balanced class weights need people of both classes")
    return 0.5 / (1.0 - favoured), 0.5 / favoured
