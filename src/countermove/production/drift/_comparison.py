"""One table against another: every column, all of them together, and labels given the score.

All alarms of one comparison share one level: the joint test has its part, the columns theirs
(Holm among them), the labels theirs. Chances add up, so no independence is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.production.drift._kernel_distance import feature_map, permutation_test, spread_of
from countermove.production.drift._kolmogorov import kolmogorov_test, snapped
from countermove.production.drift._label_test import LabelTest, label_test
from countermove.production.drift._samples import ScoredSample
from countermove.production.drift.terms import DriftTerms
from countermove.randomness import generator

SCORE = "deployed score"
"""Name of the column in which a response shows first."""


@dataclass(frozen=True)
class ColumnTest:
    """One column of two tables: largest distance, exact p-value, and p-value after Holm."""

    name: str
    distance: float
    p_value: float
    adjusted: float
    alarm: bool


@dataclass(frozen=True)
class DriftComparison:
    """Whether a table is what was expected.

    ``alarms`` are the families that rejected; ``p_value`` is that of all families together:
    at most the level iff there is an alarm, and valid at every level (the parts given).
    """

    against: str
    columns: tuple[ColumnTest, ...]
    joint: float
    labels: LabelTest | None
    alarms: tuple[str, ...]
    p_value: float

    @property
    def moved(self) -> bool:
        """Whether the features are not those expected, whatever the labels say."""
        return bool({"joint", "marginal"} & set(self.alarms))

    @property
    def relabelled(self) -> bool:
        """Whether labels do not go with the score as expected."""
        return "labels" in self.alarms

    @property
    def differing(self) -> tuple[str, ...]:
        """The columns that rejected."""
        return tuple(column.name for column in self.columns if column.alarm)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison, JSON-ready."""
        return {
            "against": self.against,
            "alarms": list(self.alarms),
            "p_value": self.p_value,
            "joint_p_value": self.joint,
            "columns": [vars(column) for column in self.columns],
            "labels": None if self.labels is None else self.labels.to_json(),
        }


def compare(
    against: str,
    expected: ScoredSample,
    observed: ScoredSample,
    names: Sequence[str],
    terms: DriftTerms,
    seed: int,
    labelled: ScoredSample | None = None,
) -> DriftComparison:
    """Test whether two samples come from one distribution, labels included where both have them.

    Any alarm has probability at most ``terms.level`` if the rows are independent and equal in
    distribution. ``labelled`` says how labels go with the score; None: ``expected`` does.
    """
    rng = generator(seed, f"drift against {against}")
    pooled = np.concatenate([expected.columns, observed.columns])
    labels = _labels(labelled or expected, observed, terms, rng)
    levels = terms.levels(labels is not None)
    mapped = feature_map(pooled, rng)(pooled)
    n = len(expected.X)
    joint = permutation_test(mapped[:n], mapped[n:], terms.permutations, rng)
    columns = column_tests(pooled, n, (*names, SCORE), terms.resolution, levels["marginal"])
    p_values = {"joint": joint, "marginal": min(c.adjusted for c in columns)}
    if labels is not None:
        p_values["labels"] = labels.p_value
    weighted = [p * terms.level / levels[family] for family, p in p_values.items()]
    alarms = tuple(family for family, p in p_values.items() if p <= levels[family])
    return DriftComparison(against, columns, joint, labels, alarms, min(1.0, *weighted))


def column_tests(
    pooled: Floats, n: int, names: Sequence[str], resolution: float, level: float
) -> tuple[ColumnTest, ...]:
    """Test every column of a pooled table whose first ``n`` rows are those expected."""
    steps = snapped(pooled, spread_of(pooled), resolution)
    found = [kolmogorov_test(steps[:n, j], steps[n:, j]) for j in range(len(names))]
    adjusted = holm(np.array([test.p_value for test in found]))
    return tuple(
        ColumnTest(name, test.distance, test.p_value, p, p <= level)
        for name, test, p in zip(names, found, adjusted.tolist(), strict=True)
    )


def holm(p_values: Floats) -> Floats:
    """Return p-values adjusted for their number, step by step (Holm, 1979)."""
    order = np.argsort(p_values)
    number = len(p_values)
    steps = np.maximum.accumulate(p_values[order] * (number - np.arange(number)))
    adjusted = np.empty(number)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def _labels(
    expected: ScoredSample, observed: ScoredSample, terms: DriftTerms, rng: np.random.Generator
) -> LabelTest | None:
    if expected.y is None or observed.y is None:
        return None
    spread = float(spread_of(expected.score[:, None])[0])
    return label_test(
        (expected.score, expected.y),
        (observed.score, observed.y),
        terms.resolution * spread,
        terms.permutations,
        terms.level,
        rng,
    )
