"""People as a bound sees them: a score, a label, and who decides what.

A bound never looks at a model. It looks at the scores a rule gives to the people
before it is deployed (source) and to the people it then meets (induced).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown

Labels = Literal["kept", "follow"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Draws of (score, label); a score of at least 0 is the favourable decision.

    Parameters
    ----------
    score
        What the rule gives each person, shape (n,).
    label
        In {-1, +1}, +1 favourable, shape (n,).
    features
        Where the people stand, shape (n, d); None where nobody asks.
    weight
        How much each row counts, non-negative, shape (n,); None counts all alike. Rows
        with weights are a population or an expectation, not draws: no finite-sample
        bound is read off them.
    clusters
        Whose rows belong together, shape (n,): clusters are then the draws, rows are not.
    """

    score: Floats
    label: Floats
    features: Floats | None = None
    weight: Floats | None = None
    clusters: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        for name in ("score", "label", "weight", "features"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, np.asarray(value, dtype=np.float64))
        _check_lengths(self)
        _refuse(~np.isfinite(self.score), "scores must be finite", self.score)
        _refuse(np.abs(self.label) != 1.0, "labels must be -1 or +1", self.label)
        if self.weight is not None:
            wrong = ~(np.isfinite(self.weight) & (self.weight >= 0.0))
            _refuse(wrong, "weights must be finite and not negative", self.weight)
            if not self.weight.sum() > 0.0:
                raise DataError("all weights are 0; expected at least one row that counts")

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.score)

    @property
    def mass(self) -> Floats:
        """What each row counts, adding up to 1, shape (n,)."""
        if self.weight is None:
            return np.full(self.n, 1.0 / self.n)
        mass: Floats = self.weight / self.weight.sum()
        return mass

    @property
    def effective_n(self) -> float:
        """Number of equal draws with as much noise (Kish); the number of rows without weights."""
        return float(1.0 / np.sum(self.mass**2))

    @property
    def favourable(self) -> Mask:
        """Whose label is +1, shape (n,)."""
        return self.label > 0.0

    def accepted(self, threshold: float = 0.0) -> Mask:
        """Return who gets the favourable decision at a threshold on the score, shape (n,)."""
        return self.score >= threshold

    def wrong(self, threshold: float = 0.0) -> Mask:
        """Return who is judged wrongly at a threshold, shape (n,)."""
        missed: Mask = self.accepted(threshold) != self.favourable
        return missed

    def share(self, among: Mask) -> float:
        """Return the (weighted) share of the rows for which something holds."""
        return float(np.average(among, weights=self.weight))

    def error(self, threshold: float = 0.0) -> float:
        """Return the share judged wrongly."""
        return self.share(self.wrong(threshold))

    def rate(self, among: Mask, label: int) -> float:
        """Return the share among the people with a label; refuse a class without rows."""
        given = self.label == label
        mass = self.share(given)
        if mass == 0.0:
            raise NotEnoughRowsError(
                f"no row has label {label:+d}; its rate needs at least one such row"
            )
        return self.share(among & given) / mass

    def true_positive_rate(self, threshold: float = 0.0) -> float:
        """Return the share accepted among label +1."""
        return self.rate(self.accepted(threshold), 1)

    def false_positive_rate(self, threshold: float = 0.0) -> float:
        """Return the share accepted among label -1."""
        return self.rate(self.accepted(threshold), -1)

    def of_rows(self, rows: NDArray[np.intp] | Mask) -> Sample:
        """Return some of the rows."""
        return Sample(
            self.score[rows],
            self.label[rows],
            None if self.features is None else self.features[rows],
            None if self.weight is None else self.weight[rows],
            None if self.clusters is None else self.clusters[rows],
        )


@dataclass(frozen=True, eq=False)
class Pair:
    """People before a rule is deployed and the people it then meets.

    Parameters
    ----------
    source, induced
        Both scored by the same rule.
    labels
        What moving does to a label. ``kept``: nothing (gaming). ``follow``: P(Y | X) is
        kept, so a person who moves takes the chances of the new place (improvement).
    paired
        Whether row i of both is the same person; the samples are then dependent.
    """

    source: Sample
    induced: Sample
    labels: Labels
    paired: bool

    def __post_init__(self) -> None:
        if self.labels not in get_args(Labels):
            raise ParameterError(f"labels are 'kept' or 'follow', got {self.labels!r}")
        if self.paired and self.source.n != self.induced.n:
            raise DataError(
                f"paired samples have one row per person in both, got {self.source.n} rows "
                f"before and {self.induced.n} after"
            )

    @property
    def n(self) -> int:
        """Rows of the smaller sample: what a claim about both rests on."""
        return min(self.source.n, self.induced.n)

    @property
    def weighted(self) -> bool:
        """Whether rows carry weights, so that they are not draws."""
        return self.source.weight is not None or self.induced.weight is not None


def _check_lengths(sample: Sample) -> None:
    if sample.score.ndim != 1 or not len(sample.score):
        raise NotEnoughRowsError(
            f"a sample needs scores of shape (n,) with n at least 1, got {sample.score.shape}"
        )
    for name in ("label", "weight", "clusters"):
        value = getattr(sample, name)
        if value is not None and value.shape != sample.score.shape:
            raise DataError(
                f"{name} has shape {value.shape}; expected one per score, {sample.score.shape}"
            )
    features = sample.features
    if features is not None and (features.ndim != 2 or len(features) != len(sample.score)):
        raise DataError(f"features have shape {features.shape}; expected ({len(sample.score)}, d)")


def _refuse(wrong: Mask, rule: str, values: Floats) -> None:
    rows = np.flatnonzero(wrong)
    if rows.size:
        listed = shown(f"{row} ({values[row]:g})" for row in rows)
        raise DataError(f"{rule}, not so in rows {listed}", rows=rows)
