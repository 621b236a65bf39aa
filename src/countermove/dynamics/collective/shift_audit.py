r"""Did people move together? Tests of a coordinated shift, with an exact false-alarm level.

Under the null hypothesis some rearrangement of the data is as likely as the data themselves:
signs of matched moves, who is "before" and who "after", or who made which move. The share
of rearrangements that look at least as coordinated is a valid p-value (Phipson and Smyth, 2010).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats
from countermove.certificates import Assumption, Certificate
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.randomness import generator

Codes = NDArray[np.intp]
Null = Literal["no_shift", "same_for_all"]


@dataclass(frozen=True, eq=False)
class ShiftAudit:
    """Whether people moved together, and how far."""

    alarm: bool  # whether the p-value is at most the false-alarm probability
    p_value: float  # valid at every level
    statistic: float  # sum over classes of people times the squared mean shift, in units of spread
    shift: Floats  # mean shift of each class, in the units of the features, shape (k, d)
    classes: tuple[Any, ...]  # in that order
    mean_move: float | None  # mean Euclidean length of matched moves; None if not matched
    certificate: Certificate


def audit_shift(
    before: ArrayLike,
    after: ArrayLike,
    labels: ArrayLike | None = None,
    labels_after: ArrayLike | None = None,
    *,
    null: Null = "no_shift",
    false_alarm: float = 0.05,
    rearrangements: int = 999,
    seed: int = 0,
) -> ShiftAudit:
    r"""Test whether people moved in a coordinated way between two data collections.

    .. math:: T = \sum_c n_c \, |D^{-1} \bar\delta_c|^2, \qquad
              p = \frac{1 + \#\{b : T_b \ge T\}}{1 + B}

    Parameters
    ----------
    before, after
        Features, shapes (n, d) and (n', d). Row i is the same person in both (matched) unless
        ``labels_after`` is given; then they are two samples.
    labels
        A class for each row of ``before``; None: one class.
    labels_after
        A class for each row of ``after``; two independent samples.
    null
        ``"no_shift"``: matched moves are independent and symmetric around zero (signs are
        flipped), or both samples come from one distribution within each class (rows are
        exchanged). ``"same_for_all"`` (matched): moves are exchangeable between people, whatever
        drift they share; a coordination in which everybody makes the same move passes it.
    false_alarm
        Probability of an alarm where the null hypothesis holds.
    rearrangements
        :math:`B`; the least p-value is :math:`1/(1+B)`.
    seed
        Of the rearrangements.

    References
    ----------
    Phipson and Smyth, Permutation P-values should never be zero, 2010.
    """
    _check(false_alarm, rearrangements)
    old, new = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if old.ndim != 2 or new.ndim != 2 or old.shape[1] != new.shape[1]:
        raise DataError(f"before and after have one set of features, got {old.shape}, {new.shape}")
    rng = generator(seed, "audit of a shift")
    if labels_after is None:
        test = _matched(old, new, labels, null)
    elif null == "same_for_all":
        raise ParameterError('null="same_for_all" needs matched rows: leave labels_after out')
    else:
        test = _two_samples(old, new, labels, labels_after)
    found = test.statistic(None)
    drawn = np.array([test.statistic(rng) for _ in range(rearrangements)])
    # Equal up to rounding counts as equal.
    p = (1.0 + float((drawn >= found * (1.0 - 1e-12)).sum())) / (1.0 + rearrangements)
    n = len(old) if labels_after is None else len(old) + len(new)
    certificate = _certificate(p, false_alarm, n, test.assumptions)
    return ShiftAudit(
        p <= false_alarm, p, found, test.shift, test.classes, test.mean_move, certificate
    )


@dataclass(frozen=True, eq=False)
class _Test:
    """A statistic of the data (None) or of one rearrangement of them (a generator)."""

    statistic: Callable[[np.random.Generator | None], float]
    shift: Floats
    classes: tuple[Any, ...]
    mean_move: float | None
    assumptions: tuple[Assumption, ...]


def _matched(old: Floats, new: Floats, labels: ArrayLike | None, null: Null) -> _Test:
    if old.shape != new.shape:
        raise DataError(
            f"matched rows are the same people, got {len(old)} and {len(new)}; give labels_after "
            "for two samples"
        )
    names, codes = _classes(labels, len(old))
    moves = new - old
    scaled = moves / _spread(old)
    common = null == "same_for_all"
    if common and len(names) < 2:
        raise ParameterError('null="same_for_all" compares classes: give at least two')
    scaled = scaled - scaled.mean(axis=0) if common else scaled

    def statistic(rng: np.random.Generator | None) -> float:
        if rng is None:
            return _between(scaled, codes, len(names))
        if common:
            return _between(scaled[rng.permutation(len(scaled))], codes, len(names))
        signs = rng.integers(0, 2, len(scaled)) * 2.0 - 1.0
        return _between(signs[:, None] * scaled, codes, len(names))

    stated = (
        "where nobody coordinates, moves are exchangeable between people"
        if common
        else "where nobody coordinates, each person's move is independent of the others' and as "
        "likely as its opposite"
    )
    lengths = float(np.linalg.norm(moves, axis=1).mean())
    return _Test(statistic, _means(moves, codes, len(names)), names, lengths, (Assumption(stated),))


def _two_samples(
    old: Floats, new: Floats, labels: ArrayLike | None, labels_after: ArrayLike
) -> _Test:
    both = np.concatenate([np.asarray(labels), np.asarray(labels_after)])
    names, codes = _classes(both, len(old) + len(new))
    pooled, is_new = np.concatenate([old, new]), np.arange(len(old) + len(new)) >= len(old)
    blocks = [np.flatnonzero(codes == code) for code in range(len(names))]
    for name, block in zip(names, blocks, strict=True):
        if is_new[block].all() or not is_new[block].any():
            raise NotEnoughRowsError(f"class {name} is in one of the two samples only")
    spread = _spread(pooled)

    def gaps(marks: NDArray[np.bool_]) -> Floats:
        return np.array(
            [pooled[b][marks[b]].mean(axis=0) - pooled[b][~marks[b]].mean(axis=0) for b in blocks]
        )

    counts = np.array(
        [is_new[b].sum() * (~is_new[b]).sum() / len(b) for b in blocks], dtype=np.float64
    )

    def statistic(rng: np.random.Generator | None) -> float:
        marks = is_new.copy()
        if rng is not None:
            for block in blocks:
                marks[block] = rng.permutation(is_new[block])
        return float(counts @ ((gaps(marks) / spread) ** 2).sum(axis=1))

    stated = Assumption(
        "where nobody coordinates, both samples are independent draws from one distribution within "
        "each class"
    )
    return _Test(statistic, gaps(is_new), names, None, (stated,))


def _classes(labels: ArrayLike | None, n: int) -> tuple[tuple[Any, ...], Codes]:
    given = np.zeros(n, dtype=np.intp) if labels is None else np.asarray(labels)
    if given.shape != (n,):
        raise DataError(f"labels are one per row ({n}), got shape {given.shape}")
    names, codes = np.unique(given, return_inverse=True)
    return tuple(names.tolist()), codes.astype(np.intp)


def _spread(X: Floats) -> Floats:
    """Return standard deviations; a feature that never varies counts as it is."""
    spread: Floats = X.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def _means(values: Floats, codes: Codes, k: int) -> Floats:
    sums = np.zeros((k, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums / np.bincount(codes, minlength=k)[:, None]


def _between(values: Floats, codes: Codes, k: int) -> float:
    counts = np.bincount(codes, minlength=k)
    return float(counts @ (_means(values, codes, k) ** 2).sum(axis=1))


def _check(false_alarm: float, rearrangements: int) -> None:
    if not 0.0 < false_alarm < 1.0:
        raise ParameterError(f"false_alarm is a probability in (0, 1), got {false_alarm}")
    if rearrangements < 1.0 / false_alarm - 1.0:
        raise ParameterError(
            f"{rearrangements} rearrangements can never raise an alarm at {false_alarm}; take at "
            f"least {int(np.ceil(1.0 / false_alarm - 1.0))}"
        )


def _certificate(
    p: float, false_alarm: float, n: int, assumptions: tuple[Assumption, ...]
) -> Certificate:
    verdict = "people moved together" if p <= false_alarm else "no coordination is shown"
    return Certificate(
        name="p-value of a coordinated shift",
        value=p,
        direction="upper",
        kind="certificate",
        level=1.0 - false_alarm,
        n=n,
        assumptions=assumptions,
        reference="randomisation test; Phipson and Smyth (2010)",
        words=(
            f"{verdict} (p = {p:.3g}); where nobody coordinates, this audit raises an alarm with "
            f"probability at most {false_alarm:g}"
        ),
    )
