r"""Target shift: who the rule rewards grows in number, and looks as before.

A class's share grows with its fitness relative to the average (replicator dynamics), or
people change class with chances that depend on the decision. Either way
P(X | Y) is kept and only :math:`p = P(Y = +1)` becomes :math:`p(h)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.transfer.sample import Pair, Sample

Value = float | Floats

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
    r"""Chances to have label +1 next, by label and decision (App. C).

    Parameters
    ----------
    chances
        ``chances[y][decision]``, rows label (−1, +1), columns decision (−1, +1), in [0, 1].
    """

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
