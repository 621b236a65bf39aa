"""A score that remembers: a recurrent network whose last step is linear.

An entity's history is a fact; only the last step can still move. The score is
affine in that step, so every closed-form response reads it as it is (SERM,
section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from countermove.data.schema import Schema
from countermove.data.series import ABSENT, step_columns
from countermove.errors import ParameterError, shown
from countermove.randomness import torch_generator
from countermove.scores._layers import empty
from countermove.scores.base import Score


class RecurrentScore(Score):
    r"""A recurrent network over the steps :math:`x_1, \dots, x_k` of an entity.

    .. math:: h_i = \operatorname{sigmoid}(W x_i + V h_{i-1} + a), \quad h_0 = 0, \quad i < k
    .. math:: s(x) = u \cdot (W x_k + V h_{k-1} + a) + b

    Rows are flat: the table ``steps`` says which columns are which step. The slope is
    :math:`W^\top u` on the last step and zero on the history, which people cannot rewrite.
    :math:`u \cdot a` is the intercept that is learned; ``bias`` :math:`b` is zero until a
    threshold or a calibrated intercept is folded into it. (Learned beside it, as one more
    parameter for the same thing, it makes the steps along the intercept twice as long.)

    Parameters
    ----------
    steps
        Positions of the columns, one row per step, earliest first, shape (k, d): entry
        (i, j) is the column of feature j at step i. Every column occurs exactly once. In
        earlier steps -1 stands for a feature that was not kept, and is read as zero. See
        `of_sequences` and `of_schema`.
    width
        Size of the state :math:`h`.
    generator
        Draws :math:`V, u, a \sim U(-1, 1)/\sqrt{\text{width}}` and
        :math:`W \sim U(-1, 1)/\sqrt d` (the SERM experiments' start); without one the draws
        are those of seed 0, the same every time.
    """

    kind: ClassVar[str] = "recurrent"

    def __init__(
        self,
        steps: Sequence[Sequence[int]],
        width: int = 10,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.steps = checked_steps(steps)
        if isinstance(width, bool) or width != int(width) or width < 1:
            raise ParameterError(f"width is a whole number of at least 1, got {width!r}")
        self.width = int(width)
        *history, self.last = self.steps
        self.fixed = [j for step in history for j in step if j != ABSENT]
        self._columns = torch.tensor(self.steps, dtype=torch.long).flatten()
        self._ordered = self._columns.tolist() == list(range(len(self._columns)))
        n_inputs = len(self.last)
        self.inputs = empty(self.width, n_inputs)
        self.memory = empty(self.width, self.width)
        self.offset, self.weight = empty(self.width), empty(self.width)
        self.bias = nn.Parameter(torch.zeros((), dtype=torch.float64), requires_grad=False)
        self._draw(torch_generator(0, "recurrent start") if generator is None else generator)

    @classmethod
    def of_sequences(
        cls,
        n_steps: int,
        n_features: int,
        width: int = 10,
        generator: torch.Generator | None = None,
    ) -> Self:
        """Return a score of flattened sequences: ``X.reshape(n, n_steps * n_features)``.

        ``X`` is what `countermove.data.series.stacked_histories` returns, shape
        (n, steps, features).
        """
        table = torch.arange(n_steps * n_features).reshape(n_steps, n_features)
        return cls(table.tolist(), width, generator)

    @classmethod
    def of_schema(
        cls, schema: Schema, width: int = 10, generator: torch.Generator | None = None
    ) -> Self:
        """Return a score of the model columns of a series: the last step, then the earlier ones.

        Raises
        ------
        ParameterError
            If the schema has no series.
        """
        return cls(step_columns(schema), width, generator)

    @property
    def n_features(self) -> int:
        """Number of columns the score reads, all steps together."""
        return len(self.fixed) + len(self.last)

    def forward(self, X: Tensor) -> Tensor:
        """Return the scores of flat rows, shape (n,)."""
        pushes = linear(self._sequences(X), self.inputs, self.offset)
        # The first state follows from the first step alone: there is nothing to remember yet.
        state: Tensor | None = None
        for i in range(len(self.steps) - 1):
            push = pushes[:, i]
            state = torch.sigmoid(
                push if state is None else torch.addmm(push, state, self.memory.T)
            )
        last = pushes[:, -1]
        if state is not None:
            last = torch.addmm(last, state, self.memory.T)
        return last @ self.weight + self.bias

    def slope(self) -> Tensor:
        """Return the weights of the last step, zero on the history."""
        return self.inputs.new_zeros(self.n_features).index_put(
            (torch.tensor(self.last, dtype=torch.long),), self.weight @ self.inputs
        )

    def describe(self) -> dict[str, Any]:
        """Return the table of columns and the width."""
        return {"steps": [list(step) for step in self.steps], "width": self.width}

    def _sequences(self, X: Tensor) -> Tensor:
        """Return the rows as sequences, shape (n, k, d)."""
        shape = (len(X), len(self.steps), len(self.last))
        if self._ordered:
            return X.reshape(shape)
        # Position -1 reads the column appended here: what was not kept is zero.
        padded = torch.cat([X, X.new_zeros(len(X), 1)], dim=1)
        return padded[:, self._columns].reshape(shape)

    def _draw(self, generator: torch.Generator) -> None:
        with torch.no_grad():
            for parameter in (self.inputs, self.memory, self.offset, self.weight):
                bound = parameter.shape[-1] ** -0.5
                parameter.uniform_(-bound, bound, generator=generator)


def checked_steps(steps: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the table of columns, or say what is wrong with it."""
    table = tuple(tuple(int(j) for j in step) for step in steps)
    if not table or not table[-1]:
        raise ParameterError("steps lists the columns of at least one step, got none")
    lengths = sorted({len(step) for step in table})
    if len(lengths) > 1:
        raise ParameterError(
            f"every step has the same features, got steps of {shown(lengths)} columns; "
            f"where a feature was not kept write {ABSENT}"
        )
    if ABSENT in table[-1]:
        raise ParameterError("every feature has a column at the last step: it is what people move")
    named = sorted(j for step in table for j in step if j != ABSENT)
    if named != list(range(len(named))):
        raise ParameterError(
            f"steps names every column 0…{len(named) - 1} exactly once (and {ABSENT} for none), "
            f"got {shown(named)}"
        )
    return table
