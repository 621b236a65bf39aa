r"""Two ways in which the paper's people answer a rule, in closed form.

Target shift (`Replicator`, `Transition`): a class grows with how the rule rewards it, P(X | Y)
is kept and only :math:`p = P(Y = +1)` becomes :math:`p(h)`. Covariate shift
(`UniformResponse`): a uniform feature, a threshold and a budget to reach it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.errors import DataError, ParameterError
from countermove.transfer.formulas import Value
from countermove.transfer.sample import Labels, Pair, Sample

ACCURACY = ((1.0, 0.0), (0.0, 1.0))
"""The fitness of Section 5.3: being judged rightly."""


@dataclass(frozen=True)
class Replicator:
    r"""Fitness :math:`f_y = \sum_{\hat y} P(\hat y \mid y)\, U_{y \hat y}` of the two classes.

    Parameters
    ----------
    utility
        ``utility[y][decision]``: rows are the label (−1, then +1), columns the decision
        (−1, then +1). The paper writes both orders; this is its Eq. 22.
    """

    utility: tuple[tuple[float, float], tuple[float, float]] = ACCURACY

    def __post_init__(self) -> None:
        table = np.asarray(self.utility, np.float64)
        if table.shape != (2, 2) or not np.isfinite(table).all() or (table < 0.0).any():
            raise ParameterError(
                "utility must be 2 by 2, finite and not negative (rows: label -1, +1; columns: "
                f"decision -1, +1), got {self.utility!r}"
            )

    def fitness(self, true_positive: Value, false_positive: Value) -> tuple[Value, Value]:
        """Return the fitness of label −1 and of label +1."""
        (refused_bad, accepted_bad), (refused_good, accepted_good) = self.utility
        bad = refused_bad * (1.0 - false_positive) + accepted_bad * false_positive
        good = refused_good * (1.0 - true_positive) + accepted_good * true_positive
        return bad, good

    def share(self, favourable: Value, true_positive: Value, false_positive: Value) -> Value:
        r"""Return :math:`p(h) = p f_+ / (p f_+ + (1 - p) f_-)`.

        Parameters
        ----------
        favourable
            :math:`p`, strictly between 0 and 1.
        true_positive, false_positive
            Rates of the rule on the source.

        Raises
        ------
        ParameterError
            For probabilities outside their range, or a class whose fitness is 0: it would
            vanish, and no bound on target shift says anything about a class that is gone.
        """
        check_share(favourable)
        _check_rates(true_positive, false_positive)
        bad, good = self.fitness(true_positive, false_positive)
        for label, fitness, name, rate in (
            ("-1", bad, "false", false_positive),
            ("+1", good, "true", true_positive),
        ):
            gone = np.asarray(fitness) <= 0.0
            if gone.any():
                at = np.broadcast_to(np.asarray(rate, np.float64), gone.shape)[gone][0]
                raise ParameterError(
                    f"the fitness of label {label} is 0, so that class vanishes (at a {name} "
                    f"positive rate of {at:g}); give every class some utility, or bound the rule "
                    "away from refusing or accepting everybody"
                )
        return favourable * good / (favourable * good + (1.0 - favourable) * bad)


@dataclass(frozen=True)
class Transition:
    """Chances to have label +1 next, by label and decision (App. C), in [0, 1]."""

    # rows label -1, +1; columns decision -1, +1
    chances: tuple[tuple[float, float], tuple[float, float]]

    def __post_init__(self) -> None:
        table = np.asarray(self.chances, np.float64)
        if table.shape != (2, 2) or not np.all((table >= 0.0) & (table <= 1.0)):
            raise ParameterError(
                "chances must be 2 by 2 with values in [0, 1] (rows: label -1, +1; columns: "
                f"decision -1, +1), got {self.chances!r}"
            )

    def share(self, favourable: Value, true_positive: Value, false_positive: Value) -> Value:
        r""":math:`p(h) = \sum_{y, \hat y} P_S(y, \hat y)\, c_{y \hat y}`."""
        check_share(favourable)
        _check_rates(true_positive, false_positive)
        (refused_bad, accepted_bad), (refused_good, accepted_good) = self.chances
        bad = refused_bad * (1.0 - false_positive) + accepted_bad * false_positive
        good = refused_good * (1.0 - true_positive) + accepted_good * true_positive
        return favourable * good + (1.0 - favourable) * bad


TargetShift = Replicator | Transition


def shifted_pair(source: Sample, shift: TargetShift, threshold: float = 0.0) -> Pair:
    """Return people before and after a target shift, as weights on the same rows.

    A row of label y counts p(h)(y)/p(y) times, which keeps P(X | Y) exactly. The labels
    neither stay with people nor follow their features: bounds of Section 5 apply, those of
    Section 4 do not, hence ``kept``.
    """
    share = source.share(source.favourable)
    after = shift.share(
        share, source.true_positive_rate(threshold), source.false_positive_rate(threshold)
    )
    grown = np.where(source.favourable, after / share, (1.0 - after) / (1.0 - share))
    weight = grown if source.weight is None else grown * source.weight
    induced = Sample(source.score, source.label, source.features, weight)
    return Pair(source, induced, "kept", paired=True)


def check_share(share: Value) -> None:
    """Refuse a share of label +1 that leaves a class empty."""
    values = np.asarray(share, np.float64)
    if not np.all((values > 0.0) & (values < 1.0)):
        raise ParameterError(
            f"the share of label +1 must lie strictly between 0 and 1, got {share!r}"
        )


def _check_rates(true_positive: Value, false_positive: Value) -> None:
    for name, rate in (("true", true_positive), ("false", false_positive)):
        values = np.asarray(rate, np.float64)
        if not np.all((values >= 0.0) & (values <= 1.0)):
            raise ParameterError(f"the {name} positive rate must lie in [0, 1], got {rate!r}")


ChanceAt = Callable[[Floats], Floats]
"""The chance of label +1 at a feature, shape (n,) to shape (n,)."""


@dataclass(frozen=True)
class UniformResponse:
    r"""How people with features uniform on [0, 1] answer the rule :math:`x \ge \tau`.

    People in :math:`[\tau - B, \tau)` succeed with probability :math:`1 - (\tau - x)/B` and
    then land uniformly on :math:`[\tau, x + B]` (Setups 1 to 4 in the one reading under which
    Lemma A.3 holds). The law of a mover's label is that of the new place.
    Lemma A.3 does not say what happens where :math:`[\tau, x + B]` reaches beyond 1, and its
    weights then sum to less than 1: here people land uniformly on :math:`[\tau, 1]`.

    Parameters
    ----------
    threshold
        :math:`\tau`, in [0, 1).
    budget
        :math:`B`, in (0, 1].
    """

    threshold: float
    budget: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.threshold < 1.0:
            raise ParameterError(
                f"threshold must lie in [0, 1), where people are, got {self.threshold!r}"
            )
        if not 0.0 < self.budget <= 1.0:
            raise ParameterError(f"budget must lie in (0, 1], got {self.budget!r}")

    def weights(self, x: Floats) -> Floats:
        r"""Return the density of the people after response at x, shape (n,); the source's is 1.

        .. math:: w(x) = \begin{cases}
            1 & x < \tau - B \text{ or } x \ge \tau + B \\
            (\tau - x)/B & \tau - B \le x < \tau \\
            1 + (\tau - x + B)/B & \tau \le x < \tau + B
            \end{cases}

        for :math:`B \le \tau \le 1 - B`.
        """
        x = _on_unit_interval(x)
        tau, budget = self.threshold, self.budget
        # Who can land at x started between x - B and tau, and at each such start z the chance
        # of success over the length of the landing interval is 1/B ...
        earliest = np.maximum(np.maximum(x - budget, 0.0), tau - budget)
        arrivals = np.maximum(min(tau, 1.0 - budget) - earliest, 0.0) / budget
        arrivals = arrivals + self._arrivals_of_the_crowded()
        stay = np.where(x >= tau - budget, (tau - x) / budget, 1.0)
        weights: Floats = np.where(x < tau, stay, 1.0 + arrivals)
        return weights

    def _arrivals_of_the_crowded(self) -> float:
        """Return the density of those whose landing interval ends at 1 rather than at z + B."""
        tau, budget = self.threshold, self.budget
        first = max(1.0 - budget, tau - budget, 0.0)
        if first >= tau:
            return 0.0
        # ... and for these the success (z + B - tau)/B is spread over 1 - tau.
        return (budget**2 - (first + budget - tau) ** 2) / (2.0 * budget * (1.0 - tau))

    def printed_weights(self, x: Floats) -> Floats:
        """Return Lemma A.3's weights as printed, whatever the edges, shape (n,)."""
        x = _on_unit_interval(x)
        below = (x >= self.threshold - self.budget) & (x < self.threshold)
        above = (x >= self.threshold) & (x < self.threshold + self.budget)
        distance = self.threshold - x
        return np.where(
            below,
            distance / self.budget,
            np.where(above, 2.0 + distance / self.budget, 1.0),
        )

    def mean_and_variance(self, *, printed: bool = False) -> tuple[float, float]:
        r"""Return :math:`E_S[w]` and :math:`\mathrm{Var}_S[w]`, exactly.

        With :math:`B \le \tau \le 1 - B` they are 1 and :math:`2B/3`. Simpson's rule is exact
        here: between its kinks the weight is linear.
        """
        weights = self.printed_weights if printed else self.weights
        ends = np.unique(np.clip(self._kinks(), 0.0, 1.0))
        left, right = ends[:-1], ends[1:]
        inward = 1e-12 * (right - left)  # the weight jumps at tau
        values = np.stack(
            [weights(left + inward), weights((left + right) / 2), weights(right - inward)]
        )
        simpson = np.array([1.0, 4.0, 1.0]) / 6.0
        mean = float((right - left) @ (simpson @ values))
        square = float((right - left) @ (simpson @ values**2))
        return mean, square - mean**2

    def _kinks(self) -> Floats:
        tau, budget = self.threshold, self.budget
        return np.array([0.0, 1.0, tau - budget, tau, tau + budget, budget, 1.0 - budget])

    def respond(self, x: Floats, rng: np.random.Generator) -> Floats:
        """Return where people end up, shape (n,)."""
        x = _on_unit_interval(x)
        tau, budget = self.threshold, self.budget
        gap = tau - x
        succeeds = (gap > 0) & (gap <= budget) & (rng.random(len(x)) < 1.0 - gap / budget)
        end = np.minimum(x + budget, 1.0)
        landed = np.minimum(tau + rng.random(len(x)) * (end - tau), 1.0)
        return np.where(succeeds, landed, x)

    def pair(
        self,
        x: Floats,
        chances: ChanceAt,
        rng: np.random.Generator,
        labels: Labels = "follow",
        zero: float | None = None,
    ) -> Pair:
        """Return draws before and after response.

        Parameters
        ----------
        x
            Features before, in [0, 1], shape (n,).
        chances
            P(Y = +1 | x).
        labels
            ``follow``: movers take the chances of the new place; ``kept``: they do not.
        zero
            The score is x minus this; None: minus the threshold, so that 0 is where it
            accepts. Two rules are compared on one score.
        """
        x = np.asarray(x, np.float64)
        after = self.respond(x, rng)
        luck = rng.random(len(x))  # one luck per person: whoever stays keeps the label
        before = _labels(luck, chances(x))
        then = before if labels == "kept" else _labels(luck, chances(after))
        zero = self.threshold if zero is None else zero
        source = Sample(x - zero, before, x[:, None])
        induced = Sample(after - zero, then, after[:, None])
        return Pair(source, induced, labels, paired=True)


def _labels(luck: Floats, chances: Floats) -> Floats:
    if np.any((chances < 0.0) | (chances > 1.0)):
        rows = np.flatnonzero((chances < 0.0) | (chances > 1.0))
        raise DataError("chances of the label must lie in [0, 1]", rows=rows)
    return np.where(luck < chances, 1.0, -1.0)


def _on_unit_interval(x: Floats) -> Floats:
    x = np.asarray(x, np.float64)
    rows = np.flatnonzero(~((x >= 0.0) & (x <= 1.0)))
    if rows.size:
        raise DataError(f"features must lie in [0, 1]; {rows.size} row(s) do not", rows=rows)
    return x
