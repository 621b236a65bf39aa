"""A population in parts: any response, mapped over parquet partitions on any engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.partitions import Partitions
from countermove.data.schema import WINDOW_PREFIX
from countermove.data.storage import settings_digest
from countermove.errors import CountermoveError, ParameterError
from countermove.execution import Mapper, PartsRun, PartTask, SerialMapper, map_parts, matrix_of
from countermove.response.base import Response
from countermove.response.reduction import known_scores
from countermove.scores import LinearScore, Score
from countermove.scores.base import values
from countermove.scores.storage import score_digest

if TYPE_CHECKING:
    import pyarrow as pa

COST, MOVED, FAVOURED = "move_cost", "moved", "favoured"
FAVOURED_BEFORE = "favoured_before"
"""Columns beside the moved features: what the move cost, who moved, and what the rule decides
for people where they end up and where they stood."""
CELLS, FEWEST = 1 << 18, 1024
"""Numbers (2 MB) that are handled at once, and the fewest rows for which a call pays."""


class RespondTask(PartTask):
    """Let the people of a part respond; ``keep`` names columns to carry along.

    ``windows`` names the columns of the months that histories are read off.
    """

    def __init__(
        self,
        response: Response,
        score: Score,
        features: Sequence[str],
        keep: Sequence[str] = (),
        windows: Sequence[str] = (),
    ) -> None:
        if len(features) != score.n_features:
            raise ParameterError(
                f"the score reads {score.n_features} features, {len(features)} columns were named"
            )
        taken = sorted({COST, MOVED, FAVOURED, FAVOURED_BEFORE} & {*features, *keep})
        if taken:
            raise ParameterError(f"the result has its own column {taken[0]!r}; rename yours")
        self.response, self.score = response, score
        self.features, self.keep = tuple(features), tuple(keep)
        possible = response.actions.possible
        self.windows = tuple(windows) if possible is not None and possible.in_responses else ()
        self.columns = (*self.keep, *self.features, *self.windows)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return the rows where people move to, with cost, mover and decision."""
        import pyarrow as pa

        try:
            found = self._respond(rows, first_row, max(FEWEST, CELLS // len(self.features)))
        except CountermoveError:
            # All as one block: the error then counts rows from the part's first.
            found = self._respond(rows, first_row, len(rows))
        kept = {name: rows[name] for name in self.keep}
        return pa.table(kept | {name: pa.array(column) for name, column in found.items()})

    def _respond(self, rows: pa.Table, first_row: int, size: int) -> dict[str, Floats | Mask]:
        """Respond for ``size`` people at a time: their matrix stays in the core's cache."""
        n = len(rows)
        moved, cost = np.empty((len(self.features), n)), np.empty(n)
        flags = {name: np.empty(n, dtype=np.bool_) for name in (MOVED, FAVOURED, FAVOURED_BEFORE)}
        for first in range(0, n, size):
            here = slice(first, first + size)
            X = matrix_of(rows.slice(first, size), self.features)
            begin = first_row + first
            people = self.response.of_rows(np.arange(begin, begin + len(X)))
            if self.windows:
                months = rows.slice(first, size).select(list(self.windows)).to_pandas()
                known = months.rename(columns=lambda name: str(name).removeprefix(WINDOW_PREFIX))
                people = people.with_windows(X, known)
            found = people.respond(self.score, X)
            moved[:, here], cost[here] = found.x_new.T, found.cost
            flags[MOVED][here] = found.moved
            flags[FAVOURED][here] = _decided(self.score, found.x_new)
            flags[FAVOURED_BEFORE][here] = _decided(self.score, X)
        return dict(zip(self.features, moved, strict=True)) | {COST: cost} | flags

    def fingerprint(self) -> str:
        """Return a digest of the score's numbers, the response and the columns."""
        said = {
            "score": score_digest(self.score),
            "response": self.response.describe(),
            "columns": [self.features, self.keep, *self.windows],
        }
        return settings_digest(said)


def respond_parts(
    response: Response,
    score: Score,
    parts: Partitions,
    folder: Path,
    features: Sequence[str],
    keep: Sequence[str] = (),
    mapper: Mapper | None = None,
    windows: Sequence[str] = (),
) -> PartsRun:
    """Let a population in parts respond to a score; the result is a folder of parts."""
    # For scores affine in what moves and costs with a scalar reduction the result is the same,
    # bit for bit, on every engine and for every way of cutting the table; for conic costs within
    # the solver's tolerance.
    task = RespondTask(response, score, features, keep, windows)
    return map_parts(task, parts, folder, SerialMapper() if mapper is None else mapper)


def _decided(score: Score, X: Floats) -> Mask:
    """Return whom the rule favours; a linear score is summed row by row, whoever is beside it."""
    from countermove.response._bounded_rows import score_rows

    if type(score) is not LinearScore:
        return values(score, X) >= 0.0
    _, weight, bias = known_scores(score, X)
    favoured: Mask = score_rows(X, weight, bias) >= 0.0
    return favoured
