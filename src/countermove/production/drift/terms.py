"""On which terms two tables are compared: the level, its parts, and how much work is done."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from countermove.errors import ParameterError

SHARES: Mapping[str, float] = {"joint": 0.4, "marginal": 0.4, "labels": 0.18, "oddities": 0.02}
"""Parts of the level: one joint test, all single columns (Holm), the labels given the score, and
what no drift explains. Without labels their part goes to the first two."""

LEAST_SHARE = 0.18
"""The smallest part of a Monte-Carlo test: permutations must be able to go below it."""


@dataclass(frozen=True)
class DriftTerms:
    r"""Terms of a drift report.

    Parameters
    ----------
    level
        Probability of any alarm where people respond as predicted and nothing else changed.
    permutations
        :math:`B` of each Monte-Carlo test; the least p-value is :math:`1/(1+B)`.
    max_rows
        Rows of either table that are looked at; more are sampled by the seed.
    bootstrap
        Resamples behind the interval of the share explained.
    resolution
        Differences below this part of a column's spread are rounding, not moves: people who
        stop on the boundary stand on one point.
    labels
        ``kept``: a move changes no label. ``follow``: P(Y | X) is kept.
    odd_share
        Part of the new table beyond all that was expected from which on a column is odd.
    """

    level: float = 0.05
    permutations: int = 999
    max_rows: int = 20_000
    bootstrap: int = 200
    resolution: float = 1e-3
    labels: Literal["kept", "follow"] = "kept"
    odd_share: float = 0.05

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 0.5:
            raise ParameterError(f"level is a probability in (0, 0.5), got {self.level!r}")
        least = math.ceil(1.0 / (self.level * LEAST_SHARE)) - 1
        if self.permutations < least:
            raise ParameterError(
                f"{self.permutations} permutations can never raise an alarm at level "
                f"{self.level:g}; take at least {least}"
            )
        for name, value in (("max_rows", self.max_rows), ("bootstrap", self.bootstrap)):
            if value < 50:
                raise ParameterError(f"{name} is {value}; expected at least 50")
        for name, part in (("resolution", self.resolution), ("odd_share", self.odd_share)):
            if not 0.0 < part < 1.0:
                raise ParameterError(f"{name} is a part of the whole in (0, 1), got {part!r}")
        if self.labels not in ("kept", "follow"):
            raise ParameterError(f"labels are 'kept' or 'follow', got {self.labels!r}")

    def levels(self, labelled: bool) -> dict[str, float]:
        """Return each family's part of the level."""
        parts = dict(SHARES)
        free = 0.0 if labelled else parts.pop("labels")
        parts["joint"] += 0.5 * free
        parts["marginal"] += 0.5 * free
        return {family: self.level * part for family, part in parts.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the terms, JSON-ready."""
        return asdict(self)
