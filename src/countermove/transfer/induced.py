"""The people a rule will meet once it is deployed: D(h), for any rule, response and threshold."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from countermove._types import Floats, Index
from countermove.certificates import Assumption
from countermove.errors import DataError, NotEnoughRowsError, ParameterError, shown
from countermove.randomness import generator
from countermove.response import Response, named_response
from countermove.response.base import checked_rows
from countermove.response.response_set import redrawn
from countermove.scores import Score
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model
from countermove.transfer.sample import Labels, Pair, Sample

if TYPE_CHECKING:
    import pandas as pd

Chances = Callable[[Floats], Any]
"""From features (n, d) to the probabilities of label +1, (n,)."""

GROUPS = 10
JUDGED = "people who are judged"
"""Whose types are drawn; people chosen on have types of their own."""


def fit_chances(X: Floats, y: Floats) -> Chances:
    """Fit a logistic regression of the label; use other rows than those it will judge."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(y)) < 2:
        raise NotEnoughRowsError("a model of P(Y | X) needs rows of both labels, got one")
    fitted = LogisticRegression(max_iter=1000).fit(X, y > 0.0)
    weight, bias = fitted.coef_[0], float(fitted.intercept_[0])

    def chances(rows: Floats) -> Floats:
        result: Floats = expit(rows @ weight + bias)
        return result

    return chances


def chances_at(chances: Chances, X: Floats) -> Floats:
    """Return the probabilities after checking that they are some."""
    found = np.asarray(chances(X), dtype=np.float64)
    if found.shape != (len(X),):
        raise DataError(f"chances gave shape {found.shape}; expected one per person, ({len(X)},)")
    rows = np.flatnonzero(~((found >= 0.0) & (found <= 1.0)))
    if rows.size:
        listed = shown(f"{row} ({found[row]:g})" for row in rows)
        raise DataError(f"chances must lie in [0, 1], not so in rows {listed}", rows=rows)
    return found


def calibration(chances: Chances, X: Floats, y: Floats, level: float = 0.01) -> Assumption:
    """Test whether the model's chances are those of the rows (Hosmer and Lemeshow, ten groups).

    The test sees chances that are wrong on average within tenths of the people *before* they
    move. It cannot see errors that cancel within a tenth, chances where nobody stood, or
    whether moving changes a label at all; so it refutes, and never supports.
    """
    from scipy.stats import chi2

    p, total, weight = chances_at(chances, X), 0.0, 0.0
    groups = np.array_split(np.argsort(p, kind="stable"), min(GROUPS, len(p)))
    for group in groups:
        spread = max(float(np.sum(p[group] * (1.0 - p[group]))), 1e-12)
        total += (float(np.sum(y[group] > 0)) - float(p[group].sum())) ** 2 / spread
        weight += len(group) ** 2 / spread
    value = float(chi2.sf(total, len(groups)))
    seen = math.sqrt(_detected(len(groups), level) / weight)
    measured = f"calibration of {len(p):,} people before they move: p = {value:.3g}"
    blind = (
        f"smallest error of all chances detectable with 80 % power: {min(seen, 1.0):.3f}; "
        "not seen: errors that cancel within a tenth of the people, chances where nobody stood "
        "before, and whether a move changes the label at all"
    )
    refuted = value < level
    return Assumption(
        "the model of P(Y | X) gives the true chances",
        supported=False if refuted else None,
        evidence=measured if refuted else f"not refuted ({measured}); {blind}",
    )


def _detected(groups: int, level: float) -> float:
    """Return the noncentrality that a chi-squared test at this level finds with 80 % power."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    edge = float(chi2.isf(level, groups))
    return float(brentq(lambda shift: ncx2.sf(edge, groups, shift) - 0.8, 1e-6, 1e3))


def followed_labels(before: Floats, after: Floats, y: Floats, seed: int) -> Floats:
    """Draw the labels of people whose chances have changed, with common random numbers."""
    # Everybody has a luck u consistent with their label: below P(+1 | x) iff it is +1. The new
    # label is +1 iff u is below the new chance: who stays keeps the label, a better chance never
    # costs it.
    return _followed(_luck(len(y), seed), before, after, y)


def _luck(n: int, seed: int) -> Floats:
    return generator(seed, "labels that follow").random(n)


def _followed(luck: Floats, before: Floats, after: Floats, y: Floats) -> Floats:
    u = np.where(y > 0.0, luck * before, before + luck * (1.0 - before))
    moved = np.where(u < after, 1.0, -1.0)
    return np.where(after == before, y, moved)


def expected_chances(before: Floats, after: Floats, y: Floats) -> Floats:
    """Return the probability of label +1 after the move, given the label before."""
    kept = np.minimum(1.0, np.divide(after, before, out=np.ones_like(after), where=before > 0.0))
    rest = 1.0 - before
    won = np.divide(after - before, rest, out=np.zeros_like(after), where=rest > 0.0)
    return np.where(y > 0.0, kept, np.maximum(0.0, won))


def induce(
    rule: Any,
    X: Any,
    y: Any,
    response: Response | str,
    labels: Labels = "kept",
    *,
    chances: Chances | None = None,
    expected: bool = False,
    threshold: float = 0.0,
    seed: int = 0,
) -> Pair:
    r"""Return people before and after a rule is deployed, both scored by it.

    >>> import numpy as np
    >>> from countermove import StrategicClassifier
    >>> from countermove.transfer import induce
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> rule = StrategicClassifier(response="none").fit(X, X[:, 0] > 0.0)
    >>> pair = induce(rule, X, np.sign(X[:, 0]), "best")
    >>> pair.paired
    True

    Parameters
    ----------
    rule
        A score, or a model that has one (a published model, a fitted classifier).
    X
        People before they move, shape (n, d), as the rule reads them: in the units a
        classifier was fitted in, standardised for scores and stored models.
    y
        Labels in {-1, +1}, +1 favourable, shape (n,).
    response
        How people answer the rule, or its name; of a population one type per row is drawn.
    labels
        ``kept``: moving does not change a label. ``follow``: P(Y | X) is kept.
    chances
        For ``follow``: the probability of label +1 at given features, fitted on other rows
        (`fit_chances` does that).
    expected
        For ``follow``: instead of drawing each label, return every person twice, once per
        label, weighted by its probability. Less noise, but not draws: no finite-sample bound.
    threshold
        People answer the rule "score at least this". Scores are returned as they are, so
        the deployed rule decides at ``threshold``, not at 0.
    seed
        Of drawn labels and types; equal seeds give all rules and thresholds the same luck.
    """
    deployed = score_of(rule)
    rows, given = checked_rows(X, deployed), np.asarray(y, dtype=np.float64)
    source = Sample(values(deployed, rows), given, rows)
    answer = named_response(response) if isinstance(response, str) else response
    answer = redrawn(answer, seed, JUDGED)
    x_new, scores = answered_as_given(rule, rows, answer, threshold)
    if labels != "follow":
        return Pair(source, Sample(scores, given, x_new), labels, paired=True)
    if chances is None:
        raise ParameterError(
            "labels='follow' needs a model of P(Y | X); pass chances=fit_chances(X, y) made "
            "from other rows, or your own function of the features"
        )
    before, after = chances_at(chances, rows), chances_at(chances, x_new)
    if expected:
        doubled = _both_labels(scores, x_new, expected_chances(before, after, given))
        return Pair(source, doubled, labels, paired=False)
    new = followed_labels(before, after, given, seed)
    return Pair(source, Sample(scores, new, x_new), labels, paired=True)


def _answers(
    score: Score, deployed: Score, X: Floats, response: Response, threshold: float
) -> tuple[Floats, Floats]:
    """Return where people move to once the rule at a threshold is deployed, and their scores."""
    x_new: Floats = response.respond(deployed, X).x_new
    scores = values(score, x_new)
    # Whom the deployed rule accepts has a score of at least the threshold, rounding aside.
    below = np.minimum(scores, np.nextafter(threshold, -np.inf))
    accepted = values(deployed, x_new) >= 0.0
    return x_new, np.where(accepted, np.maximum(scores, threshold), below)


def answered_as_given(
    rule: Any, X: Floats, response: Response, threshold: float = 0.0
) -> tuple[Floats, Floats]:
    """Return where people, in the units a model reads, move to from a threshold, and scores."""
    inside, units = standardised_model(rule)
    score, rows = score_of(inside), units.rows(X)
    deployed = at(score, threshold)
    moved, scores = _answers(score, deployed, rows, units.response(response), threshold)
    return units.moved_as_given(X, rows, moved, deployed), scores


def _both_labels(scores: Floats, x_new: Floats, p: Floats) -> Sample:
    """Return every person once per label, weighted by its probability."""
    return Sample(
        np.tile(scores, 2),
        np.repeat([1.0, -1.0], len(p)),
        np.tile(x_new, (2, 1)),
        np.concatenate([p, 1.0 - p]),
    )


def at(score: Score, threshold: float) -> Score:
    """Return the score whose favourable decision starts at a threshold of the given one."""
    import torch

    if not np.isfinite(threshold):
        raise ParameterError(f"a threshold that people answer must be finite, got {threshold!r}")
    if threshold == 0.0:
        return score
    shifted = copy.deepcopy(score)
    with torch.no_grad():
        shifted.bias.sub_(threshold)
    return shifted


@dataclass(frozen=True)
class Support:
    """Shares of the induced people who stand where no source people stood."""

    score: float  # beyond the range of the source's scores
    features: float | None  # beyond the range of at least one feature; None without features

    @property
    def largest(self) -> float:
        """The larger share."""
        return max(self.score, self.features or 0.0)

    @property
    def words(self) -> str:
        """The shares as a phrase."""
        parts = f"{self.score:.2%} of the induced people beyond the source's scores"
        return parts + ("" if self.features is None else f", {self.features:.2%} beyond a feature")


def support(pair: Pair) -> Support:
    """Return how many induced people left the support of the source."""
    source, induced = pair.source, pair.induced
    beyond = (induced.score < source.score.min()) | (induced.score > source.score.max())
    if source.features is None or induced.features is None:
        return Support(induced.share(beyond), None)
    low, high = source.features.min(axis=0), source.features.max(axis=0)
    away = ((induced.features < low) | (induced.features > high)).any(axis=1)
    return Support(induced.share(beyond), induced.share(away))


STAGES = (slice(0, None, 8), slice(4, None, 8), slice(2, None, 4), slice(1, None, 2))
"""The people on whom thresholds compete: an eighth of them first, the rest in three stages."""
FEW = 1_000
"""People among whom every threshold is tried on all."""
CERTAIN = 3.0
"""Standard errors by which a threshold errs more than the best one before it is given up."""


class Deployments:
    """The people before and after every deployment of a rule; answers are computed once."""

    def __init__(
        self,
        rule: Any,
        X: Floats,
        y: Floats,
        chances: Chances | None = None,
        seed: int = 0,
        stage: str = JUDGED,
        windows: pd.DataFrame | None = None,
        clusters: NDArray[Any] | None = None,
    ) -> None:
        self._rule, self._chances, self._seed, self._windows = rule, chances, seed, windows
        score = score_of(rule)
        self._X = checked_rows(X, score)
        self._stage = stage
        self.source = Sample(values(score, self._X), y, self._X, clusters=clusters)
        everybody = np.arange(len(self._X))
        # Nobody competes among the people who judge: they answer all at once.
        staged = stage != JUDGED and len(everybody) > FEW
        self._rows = [everybody[part] for part in STAGES] if staged else [everybody]
        self._people: dict[tuple[int, int], Response] = {}
        self._answers: dict[tuple[int, float, int], tuple[Floats, Floats]] = {}
        self._luck = _luck(len(everybody), seed)
        self._before = None if chances is None else chances_at(chances, self._X)

    def of_rule(self, rule: Any) -> Deployments:
        """Return the deployments of another rule among the same people."""
        other = copy.copy(self)
        other._rule, other._answers = rule, {}
        scores = values(score_of(rule), self._X)
        other.source = replace(self.source, score=scores)
        return other

    def at(self, response: Response, labels: Labels, threshold: float = 0.0) -> Pair:
        """Return the people before and after the rule "score at least this" is deployed."""
        x_new, scores = np.empty_like(self._X), np.empty(len(self._X))
        for part, rows in enumerate(self._rows):
            x_new[rows], scores[rows] = self._answered(response, threshold, part)
        judged = replace(self._judged(scores, x_new, labels), clusters=self.source.clusters)
        return Pair(self.source, judged, labels, paired=True)

    def thresholds(self, count: int) -> list[float]:
        """Return 0 and evenly spaced quantiles of the scores before people move."""
        shares = np.linspace(0.0, 1.0, count + 2)[1:-1]
        return [0.0, *np.quantile(self.source.score, shares).tolist()]

    def best(self, response: Response, labels: Labels, count: int) -> float:
        """Return which of `thresholds` errs least on the people it induces.

        Every threshold is tried on some people, and on more only if it does not surely err more
        than the best so far (a race, Maron and Moore 1994). The least error of many is too low:
        judge the rule on other people.
        """
        left = np.array(self.thresholds(count))
        wrong = np.zeros((len(left), 0), bool)
        for part, rows in enumerate(self._rows):
            answers = [self._answered(response, float(t), part) for t in left]
            found = [self._judged(scores, x_new, labels, rows) for x_new, scores in answers]
            more = [sample.wrong(float(t)) for sample, t in zip(found, left, strict=True)]
            wrong = np.hstack([wrong, more])
            apart = wrong - wrong[wrong.sum(axis=1).argmin()].astype(np.float64)
            noise = apart.std(axis=1) / np.sqrt(wrong.shape[1])
            kept = apart.mean(axis=1) <= CERTAIN * noise
            left, wrong = left[kept], wrong[kept]
        return float(left[wrong.sum(axis=1).argmin()])

    def _answered(self, response: Response, threshold: float, part: int) -> tuple[Floats, Floats]:
        """Return where some people move to, and their scores there."""
        key, rows = (id(response), threshold, part), self._rows[part]
        if (id(response), part) not in self._people:
            people = redrawn(response, self._seed, self._stage)
            if self._windows is not None:
                people = people.with_windows(self._X, self._windows)
            for place, some in enumerate(self._rows):
                whole = len(some) == len(self._X)
                self._people[id(response), place] = people if whole else people.of_rows(some)
        if key not in self._answers:
            people = self._people[id(response), part]
            self._answers[key] = answered_as_given(self._rule, self._X[rows], people, threshold)
        return self._answers[key]

    def _judged(
        self, scores: Floats, x_new: Floats, labels: Labels, rows: Index | slice = slice(None)
    ) -> Sample:
        """Return people who have moved, with the labels they then have."""
        label = self.source.label[rows]
        if labels != "follow":
            return Sample(scores, label, x_new)
        if self._chances is None or self._before is None:
            raise ParameterError("labels that follow need chances, a model of P(Y | X)")
        after = chances_at(self._chances, x_new)
        label = _followed(self._luck[rows], self._before[rows], after, label)
        return Sample(scores, label, x_new)
