"""The published way to look for h_S and h_T, kept to show what it finds where nothing is.

Every threshold is judged on a fresh draw and the least of the errors is reported: of a
hundred noisy numbers the least is too low (winner's curse). The bounds are as coded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats, Mask
from countermove.transfer import formulas
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.weights import cell_weights, score_edges


@dataclass(frozen=True, eq=False)
class DrawnScores:
    """Scores and labels (True: +1), shape (n,) each; features where they are needed."""

    score: Floats
    good: Mask
    features: Floats | None = None

    def error(self, threshold: float) -> float:
        """Return the share judged wrongly by accepting above a threshold."""
        return float(np.mean((self.score > threshold) != self.good))

    def accepted(self, threshold: float) -> float:
        """Return the share accepted."""
        return float(np.mean(self.score > threshold))


Deploy = Callable[[float], DrawnScores]
"""A fresh draw of the people that a threshold induces."""


@dataclass(frozen=True, eq=False)
class PublishedSearch:
    """What the published procedure reports, for the thresholds taken for h_S and h_T."""

    source: DrawnScores
    own: float
    best: float
    after_own: DrawnScores
    after_best: DrawnScores  # not the draw it was chosen on
    loss: float  # the published Diff
    loss_again: float  # the same two thresholds on fresh draws
    larger: float  # the larger error of h_S before and after


def published_search(
    source: DrawnScores, deploy: Deploy, choose: Deploy | None = None, candidates: int = 100
) -> PublishedSearch:
    """Search as published: the least of ``candidates`` errors, each on its own draw."""
    # ``choose`` draws the people that candidates are compared on where the released code draws
    # them differently from those it then evaluates on.
    low, high = float(source.score.min()), float(source.score.max())
    thresholds = low + np.arange(candidates) * (high - low) / candidates
    own = float(thresholds[int(np.argmin([source.error(t) for t in thresholds]))])
    noisy = [(choose or deploy)(float(t)).error(float(t)) for t in thresholds]
    best = float(thresholds[int(np.argmin(noisy))])
    after_own, after_best = deploy(own), deploy(best)
    error = after_own.error(own)
    return PublishedSearch(
        source=source,
        own=own,
        best=best,
        after_own=after_own,
        after_best=after_best,
        loss=error - min(noisy),
        loss_again=deploy(own).error(own) - after_best.error(best),
        larger=max(source.error(own), error),
    )


def coded_upper_target(search: PublishedSearch) -> float:
    """Return Theorem 5.1 as coded: the share accepted stands for p(h)."""
    source, own, best = search.source, search.own, search.best
    apart = abs(search.after_own.accepted(own) - search.after_best.accepted(best))
    rates = [
        abs(float(np.mean(source.score[of] > own)) - float(np.mean(source.score[of] > best)))
        for of in (source.good, ~source.good)
    ]
    return apart + (1.0 + float(source.good.mean())) * sum(rates)


def coded_lower_target(search: PublishedSearch) -> float:
    """Return Theorem 5.2 as coded: precision and false discovery rate for TPR and FPR."""
    accepted = search.source.score > search.own
    precision = float(search.source.good[accepted].mean()) if accepted.any() else 0.0
    apart = abs(float(search.source.good.mean()) - search.after_own.accepted(search.own))
    return 0.5 * apart * (1.0 - abs(precision - (1.0 - precision)))


def coded_upper_covariate(search: PublishedSearch, bins: int = 20) -> float:
    """Return Theorem 4.2 with the variance of the weights as coded; infinite at an empty bin."""
    # The unweighted variance over bins of source count over induced count, all features in one
    # histogram whose edges differ before and after.

    def spread(after: DrawnScores) -> float:
        counts = [
            np.histogram(np.asarray(part.features).ravel(), bins=bins)[0].astype(np.float64)
            for part in (search.source, after)
        ]
        if np.any(counts[1] == 0.0):
            return np.inf
        return float(np.std(counts[0] / counts[1]))

    spreads = spread(search.after_own) + spread(search.after_best)
    return float(np.sqrt(search.source.error(search.best)) * spreads)


def coded_lower_covariate(search: PublishedSearch) -> float:
    """Return Theorem 4.6 as coded, for h_S; it may be negative."""
    labels = abs(float(search.source.good.mean()) - float(search.after_own.good.mean()))
    accepted = abs(search.source.accepted(search.own) - search.after_own.accepted(search.own))
    return 0.5 * (labels - accepted)


def cell_bounds(
    pairs: tuple[Pair, Pair], thresholds: tuple[float, float]
) -> dict[str, float | None]:
    """Return Theorem 4.2 on cells of score and label, or nothing where people leave them."""
    spreads = [
        cell_weights(pair, _edges(pair.source, t)).variance
        for pair, t in zip(pairs, thresholds, strict=True)
    ]
    own, best = spreads
    if own is None or best is None:
        return {"upper": None, "upper_tighter": None}
    errors = [pairs[0].source.error(t) for t in thresholds]
    return {
        "upper": float(formulas.theorem_4_2(errors[1], own, best)),
        "upper_tighter": float(formulas.theorem_4_2_tighter(errors[0], errors[1], own, best)),
    }


def _edges(source: Sample, threshold: float) -> Floats:
    """Return bins with the threshold among them; one bin where everybody is decided alike."""
    above = source.accepted(threshold)
    if above.all() or not above.any():
        return np.array([threshold])
    return score_edges(source, threshold=threshold)
