"""Networks of dense layers as arrays, whatever holds them: what proofs about a score read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from countermove._types import Floats
from countermove.scores._layers import DenseScore
from countermove.scores.base import RescaledScore, Score, values
from countermove.scores.opaque import ModuleScore

IDENTITY = "identity"
SAME = 1e-4
"""Values of a module and of the layers read off it may differ by this share, in its precision."""


@dataclass(frozen=True)
class DenseNetwork:
    r""":math:`s(x) = w\cdot h_L + b`, :math:`h_0 = x`, :math:`h_l = \phi_l(W_l h_{l-1} + c_l)`.

    ``activations`` are ``relu`` (with the ``leaks`` as slopes below zero), ``tanh``, ``elu`` or
    ``softplus``; ``roundoff`` is half the spacing of the numbers the score itself computes with,
    ``constant`` the size of what the first layer adds to a row, before anything cancels.
    """

    weights: tuple[Floats, ...]
    offsets: tuple[Floats, ...]
    activations: tuple[str, ...]
    leaks: tuple[float, ...]
    weight: Floats
    bias: float
    roundoff: float
    constant: Floats

    def of_rescaled(self, mean: Floats, scale: Floats) -> DenseNetwork:
        """Return the same network of the rows ``x`` of which this one reads (x - mean) / scale."""
        first = self.weights[0] / scale
        offset = self.offsets[0] - first @ mean
        return replace(
            self,
            weights=(first, *self.weights[1:]),
            offsets=(offset, *self.offsets[1:]),
            constant=self.constant + np.abs(first) @ np.abs(mean),
        )


def dense_network(score: Score) -> DenseNetwork | None:
    """Return the layers of a score that is such a network, else None."""
    if isinstance(score, DenseScore):
        layers = [
            tuple(map(_array, pair)) for pair in zip(score.weights, score.offsets, strict=True)
        ]
        n = len(layers)
        return DenseNetwork(
            tuple(weight for weight, _ in layers), tuple(offset for _, offset in layers),
            (score.activation,) * n, (0.0,) * n, _array(score.weight), float(score.bias.detach()),
            _roundoff(torch.float64), np.abs(_array(score.offsets[0])),
        )  # fmt: skip
    if isinstance(score, RescaledScore):
        inner = dense_network(score.inner)
        moments = (_array(part) for part in (score.mean, score.scale))
        return None if inner is None else inner.of_rescaled(*moments)
    if isinstance(score, ModuleScore):
        return _of_module(score)
    return None


def _array(part: Tensor) -> Floats:
    return np.array(part.detach().numpy(), np.float64)


def _roundoff(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps) / 2.0


_LAYERS: dict[type[nn.Module], str] = {
    nn.ReLU: "relu",
    nn.LeakyReLU: "relu",
    nn.Tanh: "tanh",
    nn.ELU: "elu",
    nn.Softplus: "softplus",
    nn.Sigmoid: "sigmoid",
}
_CALLED: dict[Any, str] = {
    torch.relu: "relu",
    nn.functional.relu: "relu",
    torch.tanh: "tanh",
    nn.functional.tanh: "tanh",
    torch.sigmoid: "sigmoid",
    nn.functional.sigmoid: "sigmoid",
    nn.functional.elu: "elu",
    nn.functional.softplus: "softplus",
    "relu": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "squeeze": IDENTITY,
    torch.squeeze: IDENTITY,
}
"""Functions and methods that a module may call on what it computes, and on nothing else."""

Step = tuple[str, Floats | float, Floats | None]
"""``affine`` with matrix and offset, or an activation with its leak."""


def _of_module(score: ModuleScore) -> DenseNetwork | None:
    """Return the layers of a torch module that is a chain of them, checked against its values."""
    steps = _steps(score.module)
    if steps is None:
        return None
    if score.probability:
        # Log-odds of a sigmoid are what it reads; a softmax of two is that of their difference.
        if not steps or steps[-1][0] not in ("sigmoid", "softmax"):
            return None
        steps = steps[:-1]
    found = _network(steps, score)
    if found is None:
        return None
    draws = np.random.default_rng(0).standard_normal((64, score.n_features))
    own, read = values(score, draws), _forward(found, draws)
    close = np.abs(own - read) <= SAME * (1.0 + np.abs(own))
    return found if close.all() else None


def _network(steps: list[Step], score: ModuleScore) -> DenseNetwork | None:
    """Return steps as alternating layers, neighbouring affine maps folded into one."""
    maps: list[tuple[Floats, Floats]] = []
    kinds: list[tuple[str, float]] = []
    matrix, offset = np.eye(score.n_features), np.zeros(score.n_features)
    for kind, value, shift in steps:
        if kind == "affine":
            weights = np.asarray(value)
            if weights.shape[1] != len(offset):
                return None
            matrix, offset = weights @ matrix, weights @ offset + np.asarray(shift)
        elif kind in ("relu", "tanh", "elu", "softplus"):
            maps.append((matrix, offset))
            kinds.append((kind, float(np.asarray(value))))
            matrix, offset = np.eye(len(offset)), np.zeros(len(offset))
        elif kind == "sigmoid":  # (1 + tanh(z / 2)) / 2
            maps.append((0.5 * matrix, 0.5 * offset))
            kinds.append(("tanh", 0.0))
            matrix, offset = 0.5 * np.eye(len(offset)), np.full(len(offset), 0.5)
        elif kind != IDENTITY:
            return None
    if len(offset) == 2:
        matrix, offset = matrix[1:] - matrix[:1], offset[1:] - offset[:1]
    if len(offset) != 1 or not maps:
        return None
    return DenseNetwork(
        tuple(weights for weights, _ in maps), tuple(shift for _, shift in maps),
        tuple(kind for kind, _ in kinds), tuple(leak for _, leak in kinds),
        score.sign * matrix[0], score.sign * float(offset[0]) + float(score.bias.detach()),
        _roundoff(score.dtype), np.abs(maps[0][1]),
    )  # fmt: skip


def _steps(module: nn.Module) -> list[Step] | None:
    """Return what a module does to its input, one step after the other; None if it is no chain."""
    from torch import fx

    try:
        traced = fx.symbolic_trace(module)
    except Exception:  # noqa: BLE001  (any code of the module's own may fail when it is traced)
        return None
    parts = dict(traced.named_modules())
    before: fx.Node | None = None
    steps: list[Step] = []
    for node in traced.graph.nodes:
        if node.op == "placeholder" and before is None:
            before = node
            continue
        if node.all_input_nodes != [before]:
            return None
        if node.op == "output":
            return steps if node.args == (before,) else None
        step = _layer(parts[node.target]) if node.op == "call_module" else _call(node)
        if step is None:
            return None
        steps += step
        before = node
    return None


def _layer(module: nn.Module) -> list[Step] | None:
    if isinstance(module, nn.Linear):
        weight = _array(module.weight)
        offset = np.zeros(len(weight)) if module.bias is None else _array(module.bias)
        return [("affine", weight, offset)]
    if isinstance(module, nn.BatchNorm1d):
        return _batch_norm(module)
    if isinstance(module, nn.Identity | nn.Dropout):
        return []
    if isinstance(module, nn.Softmax):
        return [("softmax", 0.0, None)]
    kind = _LAYERS.get(type(module))
    usual = getattr(module, "alpha", 1.0) == 1.0 and getattr(module, "beta", 1.0) == 1.0
    leak = float(getattr(module, "negative_slope", 0.0))
    return [(kind, leak, None)] if kind and usual and 0.0 <= leak < 1.0 else None


def _batch_norm(module: nn.BatchNorm1d) -> list[Step] | None:
    """Return the affine map of a normalisation by moments that are kept."""
    if module.running_mean is None or module.running_var is None:
        return None
    factor = 1.0 / np.sqrt(_array(module.running_var) + module.eps)
    if module.affine:
        factor = factor * _array(module.weight)
    shift = -factor * _array(module.running_mean)
    if module.affine:
        shift = shift + _array(module.bias)
    return [("affine", np.diag(factor), shift)]


def _call(node: Any) -> list[Step] | None:
    """Return the step of a function or method; one with settings of its own is not read."""
    kind = _CALLED.get(node.target)
    plain = len(node.args) == 1 and not node.kwargs
    if kind == IDENTITY:
        return [(IDENTITY, 0.0, None)]
    return [(kind, 0.0, None)] if kind and plain else None


_VALUES: dict[str, Callable[[Floats], Floats]] = {
    "tanh": np.tanh,
    "elu": lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0))),
    "softplus": lambda z: np.logaddexp(0.0, z),
}


def _forward(network: DenseNetwork, X: Floats) -> Floats:
    """Return the network's values."""
    h = X
    for weight, offset, kind, leak in zip(
        network.weights, network.offsets, network.activations, network.leaks, strict=True
    ):
        z = h @ weight.T + offset
        h = np.where(z > 0.0, z, leak * z) if kind == "relu" else _VALUES[kind](z)
    result: Floats = h @ network.weight + network.bias
    return result
