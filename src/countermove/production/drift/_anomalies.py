"""What no drift explains: values that are missing, columns that froze or left their range.

Such things come from a changed feed, a new unit or a broken join; look at the table first. Each
is named only if chance alone would hardly ever show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.production.drift._kernel_distance import spread_of
from countermove.production.drift._kolmogorov import snapped
from countermove.production.drift.terms import DriftTerms


@dataclass(frozen=True)
class Anomaly:
    """Something about a column that drift does not explain."""

    column: str
    kind: str
    share: float
    words: str

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return asdict(self)


def missing_values(
    reference: Floats, observed: Floats, names: Sequence[str], level: float
) -> Iterator[Anomaly]:
    """Name columns in which values are missing more often than before (Fisher's exact test).

    ``level`` is the probability of naming any where rows are exchangeable.
    """
    from scipy.stats import hypergeom

    before, after = (np.isnan(table).sum(axis=0) for table in (reference, observed))
    n, m = len(reference), len(observed)
    for j in np.flatnonzero(after).tolist():
        total = int(before[j] + after[j])
        if float(hypergeom.sf(int(after[j]) - 1, n + m, total, m)) <= level / len(names):
            share = float(after[j]) / m
            words = f"{share:.1%} of the values are missing, before {float(before[j]) / n:.1%}"
            yield Anomaly(names[j], "missing", share, words)


def anomalous_columns(
    expected: Floats, observed: Floats, names: Sequence[str], terms: DriftTerms, level: float
) -> Iterator[Anomaly]:
    r"""Name columns that froze, or of which a good part lies beyond all that was expected.

    That k given rows of N are all among the m observed ones has probability
    :math:`\binom{m}{k} / \binom{N}{k}` where rows are exchangeable.
    """
    n, m = len(expected), len(observed)
    pooled = np.concatenate([expected, observed])
    steps = snapped(pooled, spread_of(pooled), terms.resolution)
    old, new = steps[:n], steps[n:]
    limit = math.log(level / (3.0 * len(names)))
    for j, name in enumerate(names):
        same = int(np.sum(steps[:, j] == new[0, j]))
        if (new[:, j] == new[0, j]).all() and _log_all(m, same, n + m) <= limit:
            before = float(np.mean(old[:, j] == new[0, j]))
            words = f"every row holds one value, before {before:.1%} did"
            yield Anomaly(name, "constant", 1.0, words)
            continue
        for side, count in (
            ("above", int(np.sum(new[:, j] > old[:, j].max()))),
            ("below", int(np.sum(new[:, j] < old[:, j].min()))),
        ):
            # That the topmost of all rows are new ones: the same count, the roles exchanged.
            if count >= terms.odd_share * m and _log_all(count, m, n + m) <= limit:
                words = f"{count / m:.1%} of the values lie {side} all that was expected"
                yield Anomaly(name, "range", count / m, words)


def _log_all(k: int, among: int, total: int) -> float:
    """Return the log of C(among, k) / C(total, k): k draws all hit the marked ones."""
    if k > among:
        return -math.inf
    terms = (math.lgamma(value + 1.0) for value in (among, total - k, among - k, total))
    first, second, third, fourth = terms
    return first + second - third - fourth
