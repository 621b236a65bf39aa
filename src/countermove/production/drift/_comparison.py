r"""One table against another: every column, all of them together, and labels given the score.

All alarms of one comparison share one level: the joint test has its part, the columns theirs
(Holm among them), the labels theirs. Chances add up, so no independence is needed. Beside it: what
no response to the rule can change (where that differs, other people came, however strongly they
responded), and what no drift explains: missing values, columns that froze or left their range.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.people.costs import KINDS
from countermove.production.drift._samples import LEAST, DriftSamples, ScoredSample, answers
from countermove.production.drift.terms import DriftTerms
from countermove.production.drift.two_samples import (
    LabelTest,
    feature_map,
    kolmogorov_test,
    label_test,
    permutation_test,
    snapped,
    spread_of,
)
from countermove.randomness import generator
from countermove.response import Response
from countermove.scores import Score

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


FACTORS = (0.25, 1.0, 4.0)
"""Costs under which directions are collected: bounds turn people who go further."""
NOTHING = 1e-6
"""Directions shorter than this part of the longest are rounding."""
PEOPLE = 4_000
"""Whose moves show the directions."""


@dataclass(frozen=True, eq=False)
class Unaffected:
    """Coordinates no response changes: their weights on the features (d, k), and their names."""

    basis: Floats
    names: tuple[str, ...]


def untouched(samples: DriftSamples, score: Score, names: tuple[str, ...], seed: int) -> Unaffected:
    """Return what stays however much a move costs."""
    rng = generator(seed, "untouched")
    who = np.arange(min(len(samples.reference.X), PEOPLE))
    X = samples.reference.X[who]
    people = [scaled(samples.response.of_rows(who), factor) for factor in FACTORS]
    moves = np.vstack([answers(kind, score, X, rng) - X for kind in people])
    size = np.abs(moves).max(axis=0)
    moving = np.flatnonzero(size > NOTHING * max(float(size.max()), 1e-300))
    basis, called = np.eye(len(names)), list(names)
    if moving.size:
        within = moves[:, moving]
        squares, directions = np.linalg.eigh(within.T @ within)
        used = directions[:, squares > NOTHING**2 * squares[-1]]
        basis[np.ix_(moving, moving)] -= used @ used.T
    for j in moving:
        called[j] = f"{names[j]} (answers taken out)"
    left = np.flatnonzero(np.linalg.norm(basis, axis=0) > NOTHING)
    return Unaffected(basis[:, left], tuple(called[j] for j in left))


def unaffected_tests(
    samples: DriftSamples, score: Score, names: tuple[str, ...], terms: DriftTerms, seed: int
) -> tuple[ColumnTest, ...]:
    """Test whether what no response can change is as it was; none where responses change all.

    Any alarm has probability at most half of ``terms.level`` if the same kind of people came,
    however strongly they responded along the directions that multiples of our cost lead to.
    """
    stays = untouched(samples, score, names, seed)
    if not stays.names:
        return ()
    pooled = np.concatenate([samples.reference.X, samples.observed.X]) @ stays.basis
    n = len(samples.reference.X)
    return column_tests(pooled, n, stays.names, terms.resolution, 0.5 * terms.level)


def scaled(response: Response, factor: float) -> Response:
    """Return people for whom everything costs ``factor`` times as much; code in a cost stays."""
    if response.cost.kind not in KINDS:
        return response
    return response.with_cost(response.cost.times(factor))


def approved_before_tests(
    samples: DriftSamples, accounts: Sequence[ScoredSample], names: Sequence[str], terms: DriftTerms
) -> tuple[ColumnTest, ...]:
    """Test whether people beyond the reach of all responses are as before.

    Any alarm has probability at most half of ``terms.level`` if the same kind of people came
    and responding by one of the accounts, or at other costs but stopping no further beyond. None
    where fewer than 50 people of either table stand there.
    """
    before, seen = samples.reference, samples.observed
    step = terms.resolution * float(spread_of(before.score[:, None])[0])
    furthest = 0.0
    for account in accounts:
        moved = np.abs(account.score - before.score) > step
        furthest = max(furthest, float(account.score[moved].max(initial=0.0)))
    old, new = (sample.X[sample.score > furthest + step] for sample in (before, seen))
    if min(len(old), len(new)) < LEAST:
        return ()
    called = [f"{name} (people approved before)" for name in names]
    pooled = np.concatenate([old, new])
    return column_tests(pooled, len(old), called, terms.resolution, 0.5 * terms.level)


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
