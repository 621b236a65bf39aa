"""Rows that stay in parquet parts: mini-batches streamed, full gradients summed part by part.

Some rows are drawn once and held, for starts, intercepts and verdicts.
An epoch learns from all rows: parts come in a drawn order, a few of them are blended and
shuffled together, and the next ones are read while these are learned from.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.data.partitions import Partitions
from countermove.data.schema import WINDOW_PREFIX
from countermove.errors import DataError, NotEnoughRowsError, shown
from countermove.execution import Mapper, Piece, SerialMapper, matrix_of, pieces_of
from countermove.randomness import generator
from countermove.scores import Score
from countermove.training.newton import Derivatives
from countermove.training.rows import (
    Batch,
    HistoryObjective,
    Objective,
    SecondOrderObjective,
    TrainingRows,
)

BLENDED = 4
"""Parts that are shuffled together: a table sorted by label must not train in its order."""
CACHED = 4
"""Parts a worker keeps in memory between two gradients."""


@dataclass(frozen=True)
class PartRows:
    """Labelled rows in parquet parts."""

    parts: Partitions  # no more than their ``rows_per_part`` rows make one piece
    features: tuple[str, ...]  # columns the score reads, in its order, standardised
    label: str = "label"  # in {-1, +1}
    windows: tuple[str, ...] = ()  # columns of the months that histories are read off

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces, in the order of the rows."""
        found = tuple(pieces_of(self.parts))
        if not found:
            raise NotEnoughRowsError("the parts hold no rows")
        return found

    @property
    def n(self) -> int:
        """Number of rows."""
        return sum(piece.n_rows for piece in self.pieces)

    def read(self, piece: Piece) -> tuple[Floats, Floats]:
        """Return the rows and labels of a piece, shapes (n, d) and (n,)."""
        table = _read(piece, [self.label, *self.features])
        return matrix_of(table, self.features), np.array(table[self.label].to_numpy(), np.float64)

    def months(self, piece: Piece) -> pd.DataFrame:
        """Return the months of a piece's people, under the columns' own names."""
        return _unprefixed(_read(piece, list(self.windows)).to_pandas())

    def span(self) -> tuple[Floats, Floats]:
        """Return the least and the largest value of each feature, shape (d,) each."""
        ends = [(X.min(axis=0), X.max(axis=0)) for X, _ in map(self.read, self.pieces)]
        low, high = zip(*ends, strict=True)
        return np.min(low, axis=0), np.max(high, axis=0)

    def check(self) -> None:
        """Refuse labels other than -1 and +1, wherever they are."""
        for piece in self.pieces:
            labels = _read(piece, [self.label])[self.label].to_numpy()
            wrong = piece.first_row + np.flatnonzero(np.abs(labels) != 1.0)
            if wrong.size:
                raise DataError(f"labels are -1 or +1; not so in rows {shown(wrong)}", rows=wrong)

    def draw(self, n: int, seed: int, stage: str) -> tuple[Tensor, Tensor, pd.DataFrame]:
        """Return about ``n`` rows drawn evenly from all parts, labels and months."""
        frame = self.parts.draw(n, generator(seed, stage))
        X = np.ascontiguousarray(frame[list(self.features)].to_numpy(dtype=np.float64))
        y = np.array(frame[self.label].to_numpy(), dtype=np.float64)
        return torch.from_numpy(X), torch.from_numpy(y), _unprefixed(frame[list(self.windows)])


@dataclass(frozen=True)
class StreamedRows(TrainingRows):
    """Training rows in parts; ``X, y`` and the validation rows are held."""

    rows: PartRows = field(kw_only=True)
    windows: pd.DataFrame = field(kw_only=True, default_factory=pd.DataFrame)
    """Months of the people held: those of ``X``, then those of the validation rows."""
    in_parts: ClassVar[bool] = True
    # Who sums over all rows (L-BFGS, Newton). Mini-batches are taken here: each needs the one
    # before.
    mapper: Mapper = field(kw_only=True, default_factory=SerialMapper)

    @classmethod
    def of(
        cls,
        train: PartRows,
        validation: PartRows,
        seed: int,
        held: int = 200_000,
        mapper: Mapper | None = None,
    ) -> StreamedRows:
        """Draw the rows to hold, at most about ``held`` of each, and leave the others on disk."""
        train.check()
        validation.check()
        X, y, months = train.draw(held, seed, "held:train")
        judged_X, judged_y, judged_months = validation.draw(held, seed, "held:validation")
        return cls(
            X,
            y,
            judged_X,
            judged_y,
            rows=train,
            windows=pd.concat([months, judged_months], ignore_index=True),
            mapper=SerialMapper() if mapper is None else mapper,
        )

    @property
    def n(self) -> int:
        """Number of rows an epoch learns from."""
        return self.rows.n

    @property
    def counted(self) -> float:
        """How many people an epoch learns from; rows in parts count alike."""
        return float(self.n)

    def batches(self, size: int, generator: torch.Generator) -> Iterator[Batch]:
        """Yield every row once: parts in drawn order, blended, the next ones read meanwhile."""
        pieces = self.rows.pieces
        order = torch.randperm(len(pieces), generator=generator).tolist()
        groups = [order[k : k + BLENDED] for k in range(0, len(order), BLENDED)]
        none = torch.empty(0, dtype=torch.int64)
        for X, y in self._blends([[pieces[k] for k in group] for group in groups]):
            shuffled = torch.randperm(len(y), generator=generator)
            for rows in torch.split(shuffled, size):
                yield X[rows], y[rows], none

    def descend(self, objective: Objective, score: Score) -> float:
        """Sum the parts' gradients, in the order of the parts whoever worked."""
        pieces, total = self.rows.pieces, self.n
        shared = GradientWork(self.rows, _of_nobody(objective), score)
        found = {one.index: one.value for one in self.mapper.map(part_gradient, pieces, shared)}
        parameters = [parameter for parameter in score.parameters() if parameter.requires_grad]
        risk = 0.0
        for k in range(len(pieces)):
            n, loss, gradients = found[k]
            risk += n / total * loss
            for parameter, gradient in zip(parameters, gradients, strict=True):
                part = torch.from_numpy(gradient) * (n / total)
                parameter.grad = part if parameter.grad is None else parameter.grad.add_(part)
        return risk

    def second_order(self, objective: SecondOrderObjective, score: Score) -> Derivatives:
        """Sum the parts' derivatives, in the order of the parts whoever worked."""
        shared = CurvatureWork(self.rows, _of_nobody(objective), score)
        pieces, total = self.rows.pieces, self.n
        found = {one.index: one.value for one in self.mapper.map(part_curvature, pieces, shared)}
        means = [found[0][m] * (pieces[0].n_rows / total) for m in range(len(found[0]))]
        for k, piece in enumerate(pieces[1:], start=1):
            share = piece.n_rows / total
            means = [mean + one * share for mean, one in zip(means, found[k], strict=True)]
        return objective.joined(means)

    def facts(self) -> Any:
        """Return names, sizes and times of the files."""
        return self.rows.parts.facts()

    def _blends(self, groups: Sequence[Sequence[Piece]]) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the rows of each group of pieces; the next group is read while one is used."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(_together, self.rows, groups[0])
            for k in range(len(groups)):
                X, y = ahead.result()
                if k + 1 < len(groups):
                    ahead = reader.submit(_together, self.rows, groups[k + 1])
                yield torch.from_numpy(X), torch.from_numpy(y)


@dataclass(frozen=True)
class GradientWork:
    """What every part's gradient needs; travels to workers."""

    rows: PartRows
    objective: Objective
    score: Score


def part_gradient(work: GradientWork, piece: Piece) -> tuple[int, float, list[Floats]]:
    """Return the number of rows of a part, its mean loss and the loss's gradient."""
    X, y = _cached(work.rows, piece, _state(piece))
    work.score.zero_grad()
    objective = _of_piece(work.objective, work.rows, piece, X)
    loss = objective.loss(work.score, torch.from_numpy(X), torch.from_numpy(y))
    loss.backward()
    trained = [parameter for parameter in work.score.parameters() if parameter.requires_grad]
    gradients = [
        np.zeros(tuple(p.shape)) if p.grad is None else p.grad.numpy().copy() for p in trained
    ]
    work.score.zero_grad()
    return len(y), float(loss.detach()), gradients


@dataclass(frozen=True)
class CurvatureWork:
    """What every part's derivatives need; travels to workers."""

    rows: PartRows
    objective: SecondOrderObjective
    score: Score


def part_curvature(work: CurvatureWork, piece: Piece) -> tuple[Derivatives, ...]:
    """Return the means over a part with their derivatives."""
    X, y = _cached(work.rows, piece, _state(piece))
    objective = _of_piece(work.objective, work.rows, piece, X)
    labels = torch.from_numpy(y)
    found: tuple[Derivatives, ...] = objective.second_order(work.score, torch.from_numpy(X), labels)
    return found


def _of_nobody(objective: Any) -> Any:
    """Return an objective as it travels: without the months of the people held."""
    if isinstance(objective, HistoryObjective):
        objective = objective.with_windows(np.empty((0, 0)), None)
    return objective


def _of_piece(objective: Any, rows: PartRows, piece: Piece, X: Floats) -> Any:
    """Return the objective of a piece's people, whose months it reads."""
    if rows.windows and isinstance(objective, HistoryObjective):
        objective = objective.with_windows(X, _cached_months(rows, piece, _state(piece)))
    return objective


FileState = tuple[int, int, int, int]


def _state(piece: Piece) -> FileState:
    """Return what changes whenever a file is written again, under its name or by a rename."""
    found = os.stat(piece.file)
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@lru_cache(maxsize=CACHED)
def _cached(rows: PartRows, piece: Piece, _: FileState) -> tuple[Floats, Floats]:
    return rows.read(piece)


@lru_cache(maxsize=CACHED)
def _cached_months(rows: PartRows, piece: Piece, _: FileState) -> pd.DataFrame:
    return rows.months(piece)


def _unprefixed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.rename(columns=lambda name: str(name).removeprefix(WINDOW_PREFIX))


def _together(rows: PartRows, pieces: Sequence[Piece]) -> tuple[Floats, Floats]:
    read = [rows.read(piece) for piece in pieces]
    return np.concatenate([X for X, _ in read]), np.concatenate([y for _, y in read])


def _read(piece: Piece, columns: list[str]) -> Any:
    import pyarrow.parquet as pq

    with pq.ParquetFile(piece.file) as file:
        return file.read_row_groups(list(piece.groups), columns=columns, use_threads=False)
