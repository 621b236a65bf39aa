r"""What a rule loses by not knowing how people respond, and the rule that loses least.

Before anybody knows, people are one of a plausible set. The regret of a rule under a member is what
the best rule for that member would add,

.. math:: R_m(f) = \max_g V_m(g) - V_m(f),

with :math:`V_m` the mean payoff of the decisions once such people have responded. Payoffs are
linear in mixtures of people and the best of them is convex, so never-movers and spreads of prices
between the members add nothing to the largest regret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.certificates.betting import clustered_interval
from countermove.data.rows import Rows, rows_of
from countermove.errors import ParameterError
from countermove.learning.intercept import (
    Kinds,
    accepted_at,
    kinds_accepted_from,
    moving_mean,
    shift_intercept,
)
from countermove.learning.selection import Choice, first_by_hash
from countermove.learning.simple_rules import (
    Rules,
    class_means,
    immutables_rule,
    logistic_regression,
    reach_charge,
)
from countermove.response import AscentResponse, BestResponse, NoResponse, Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.training._labels import counted

if TYPE_CHECKING:
    import pandas as pd

    from countermove.data.schema import Schema
    from countermove.scores.storage import PublishedModel

PRICES = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
"""Factors on the stated cost at which people plausibly move, beside nobody moving at all."""
PENALTIES = 10.0 ** np.arange(-1.5, 1.1, 0.5)
"""The λ of the penalties on what moves, one direction each."""
CHOOSERS = 5_000
"""People on whom rules are chosen, the first by their hashes."""
SHIFTS, NEIGHBOURS = 160, 3
"""Shifts of the intercept tried per direction, and over how many on either side values are
averaged: the best of a mean is steadier on new people than the best of its noise."""
KEPT = "least_regret"
"""What the rule of least regret is called among those of a choice."""
Estimate = dict[str, Any]


@dataclass(frozen=True)
class Payoff:
    """What decisions are worth; refusing somebody unfavourable is worth 0.

    Parameters
    ----------
    favourable
        Of approving somebody whose outcome is favourable.
    unfavourable
        Of approving somebody whose outcome is not; negative.
    refused
        Of refusing somebody whose outcome would be favourable; less than ``favourable``.

    Notes
    -----
    The defaults are accuracy, less the constant share of unfavourable outcomes.
    """

    favourable: float = 1.0
    unfavourable: float = -1.0
    refused: float = 0.0

    def __post_init__(self) -> None:
        if self.favourable <= self.refused:
            raise ParameterError(
                f"refusing somebody favourable is worth {self.refused:g} and approving them "
                f"{self.favourable:g}, so that refusing everybody is always best; expected "
                "favourable > refused"
            )
        if self.unfavourable >= 0.0:
            raise ParameterError(
                f"approving somebody unfavourable is worth {self.unfavourable:g} and refusing them "
                "0, so that approving everybody is always best; expected unfavourable < 0"
            )

    def of(self, approved: Floats | Mask, y: Floats) -> Floats:
        """Return what each person's decision is worth, shape (n,)."""
        kept: Floats = np.where(y > 0.0, self.refused, 0.0)
        gained = np.where(y > 0.0, self.favourable, self.unfavourable) - kept
        return kept + approved * gained

    def curve(self, thresholds: Floats, y: Floats, shifts: Floats) -> Floats:
        """Return the mean payoff at every shift of people approved from their thresholds on.

        Everybody counts by the size of their label, as in training.
        """
        favourable = y > 0.0
        good = accepted_at(thresholds[favourable], y[favourable], shifts)
        bad = accepted_at(thresholds[~favourable], -y[~favourable], shifts)
        refused = y[favourable].sum() - good
        total = self.favourable * good + self.unfavourable * bad + self.refused * refused
        return np.asarray(total / counted(y))

    @property
    def range(self) -> float:
        """By how much two decisions about one person can differ at most."""
        return max(self.favourable - self.refused, -self.unfavourable)


@dataclass(frozen=True)
class PlausiblePeople:
    """Who people may be, by name, and on whose word.

    Attributes
    ----------
    state
        ``"unknown"``: anything plausible; ``"assumed"``: somebody signs for one response;
        ``"estimated"``: the corners of a confidence set.
    members
        The responses; the first is named as the rest of a report names it.
    beyond
        Prices just outside the set: whether its edge decides.
    assumed_by
        Who signs, where people are assumed.
    """

    state: str
    members: Mapping[str, Response]
    beyond: Mapping[str, Response]
    assumed_by: str | None = None

    @classmethod
    def unknown(cls, stated: Response, prices: tuple[float, ...] = PRICES) -> PlausiblePeople:
        """Return people of whom no more is known than what they may change at which cost."""
        mover = stated
        if not isinstance(stated, BestResponse | AscentResponse):
            mover = BestResponse(stated.cost, stated.actions)
        members: dict[str, Response] = {"nobody moves": NoResponse(None, stated.actions)}
        members |= {_at(price): mover.with_price(price) for price in sorted(prices)}
        ends = (0.5 * min(prices), 2.0 * max(prices))
        return cls("unknown", members, {_at(price): mover.with_price(price) for price in ends})

    @classmethod
    def assumed(cls, stated: Response, by: str) -> PlausiblePeople:
        """Return people for whose response somebody signs."""
        return cls("assumed", _named(stated, stated.name), {}, by)

    @classmethod
    def estimated(cls, stated: Response) -> PlausiblePeople:
        """Return the corners of the confidence set of people."""
        if stated.confidence is None:
            raise ParameterError(
                "serm.people.known is estimated, but serm.confidence_set is not set; expected the "
                "settings that kedro run --pipeline=estimate_people writes"
            )
        corners = stated.confidence.populations
        members = {f"corner {k + 1}": people for k, people in enumerate(corners)}
        return cls("estimated", _named(stated, "as estimated") | members, {})

    def to_json(self) -> dict[str, Any]:
        """Return who they are, JSON-ready."""
        return {
            "state": self.state,
            "assumed_by": self.assumed_by,
            "set": list(self.members),
            "beyond": list(self.beyond),
        }


def _named(stated: Response, name: str) -> dict[str, Response]:
    """Return the models of people that a response is made of, by name."""
    members = members_of(stated)
    if len(members) == 1:
        return {name: stated}
    return {f"{name} {k + 1}": member for k, member in enumerate(members)}


def _at(price: float) -> str:
    return f"{price:g} times the price"


@dataclass(frozen=True)
class LeastRegret:
    """The rule of least regret, and each member's own best rule, on the rows that chose them.

    Attributes
    ----------
    direction
        Name of the direction that the rule shifts.
    rule
        The rule at its threshold.
    regret
        By member, what knowing that people are these would add.
    best
        By member, the best rule for these people.
    """

    direction: str
    rule: Score
    regret: Mapping[str, float]
    best: Mapping[str, Score]


@dataclass(frozen=True)
class RegretSelection:
    """Publishes the rule of least regret: ``selection=`` of a classifier.

    Parameters
    ----------
    payoff
        What decisions are worth.
    prices
        Factors on the stated cost that people may plausibly pay.
    """

    payoff: Payoff = Payoff()
    prices: tuple[float, ...] = PRICES

    def settle(
        self, choice: Choice, stated: Response, X: Floats, y: Floats, n_train: int
    ) -> Choice:
        """Return the choice with the rule of least regret kept, over all rules compared before."""
        people = PlausiblePeople.unknown(stated, self.prices).members
        compared = {name: rule for name, rule in choice.scores.items() if name != "majority"}
        candidates = directions(X[:n_train], y[:n_train], people) | compared
        chosen = least_regret(candidates, people, X, y, self.payoff)
        return replace(
            choice,
            kept=KEPT,
            scores={**choice.scores, KEPT: chosen.rule},
            direction=chosen.direction,
            regret=chosen.regret,
        )


def directions(X: Floats, y: Floats, people: Mapping[str, Response]) -> Rules:
    """Return directions that may regret little: each gives up accuracy now for less response."""
    blind = logistic_regression(X, y)
    rules: Rules = {"logistic": blind, "class_means": class_means(X, y)}
    members = tuple(people.values())
    alone = immutables_rule(members, X, y)
    if alone is not None:
        rules["immutables"] = alone
    charge, rule = reach_charge(members, None, X.shape[1]), blind
    for penalty in PENALTIES:
        rule = logistic_regression(X, y, rule, replace(charge, factor=float(penalty)))
        rules[f"penalty {penalty:.2g}"] = rule
    return rules


def least_regret(
    rules: Rules, people: Mapping[str, Response], X: Floats, y: Floats, payoff: Payoff
) -> LeastRegret:
    """Return the rule of least regret among all shifts of some directions.

    Parameters
    ----------
    rules
        The directions by name; their own intercepts do not matter.
    people
        The plausible responses by name.
    X, y
        Rows, standardised, shape (n, d), and labels ±1.
    payoff
        What decisions are worth.
    """
    chosen = first_by_hash(X, y, CHOOSERS)
    X, y = X[chosen], y[chosen]
    grids: dict[str, Floats] = {}
    curves: dict[str, Floats] = {}
    for name, rule in rules.items():
        kinds = [kinds_accepted_from(rule, p.of_rows(chosen), X, y) for p in people.values()]
        edges = np.concatenate([thresholds for each in kinds for _, thresholds in each])
        grids[name] = np.quantile(edges, np.linspace(0.0, 1.0, SHIFTS))
        values = np.stack([_curve(each, y, grids[name], payoff) for each in kinds])
        curves[name] = moving_mean(values, NEIGHBOURS)
    best = np.max([curve.max(axis=1) for curve in curves.values()], axis=0)
    worst = {name: (best[:, None] - curve).max(axis=0) for name, curve in curves.items()}
    direction = min(worst, key=lambda name: float(worst[name].min()))
    place = int(worst[direction].argmin())
    regret = best - curves[direction][:, place]

    def best_for(k: int) -> Score:
        name = max(curves, key=lambda one: float(curves[one][k].max()))
        return shift_intercept(rules[name], float(grids[name][curves[name][k].argmax()]))

    return LeastRegret(
        direction,
        shift_intercept(rules[direction], float(grids[direction][place])),
        dict(zip(people, regret.tolist(), strict=True)),
        {name: best_for(k) for k, name in enumerate(people)},
    )


def _curve(kinds: Kinds, y: Floats, shifts: Floats, payoff: Payoff) -> Floats:
    curves = [share * payoff.curve(thresholds, y, shifts) for share, thresholds in kinds]
    return np.asarray(np.sum(curves, axis=0))


def regret_report(
    rules: Mapping[str, Score],
    people: PlausiblePeople,
    train: Rows,
    test: Rows,
    payoff: Payoff,
    failure_probability: float = 0.05,
) -> dict[str, Any]:
    """Return the regret of rules on new people, and of the rule that regrets least.

    Parameters
    ----------
    rules
        The rules that may be published, by name, at their thresholds.
    people
        The plausible set.
    train
        Rows that the best rule of each member, and the rule of least regret, are chosen on.
    test
        Rows that nothing was chosen on.
    payoff
        What decisions are worth.
    failure_probability
        Chance that an end of an interval fails, times two.

    Returns
    -------
    dict
        JSON-ready: ``payoff``, ``direction`` (of the rule of least regret), ``n`` and ``rules``: by
        rule ``regret`` and ``gain`` (over the better of approving and refusing everybody) by
        member, each an estimate, ``worst`` (the member of largest regret), ``largest_regret`` (its
        value, and the upper end of the largest), ``least_gain`` (its value, and the lower end of
        the least), and ``beyond``: the regret at prices just outside the set.

    Notes
    -----
    The upper end of the largest regret fails no more often than that of the member whose regret is
    largest, so that it needs no correction for the number of members; likewise the least gain.
    """
    known = {**people.members, **people.beyond}
    learning = {name: one.with_windows(train.X, train.windows) for name, one in known.items()}
    inside = {name: learning[name] for name in people.members}
    candidates = directions(train.X, train.y, people.members) | dict(rules)
    chosen = least_regret(candidates, inside, train.X, train.y, payoff)
    best = dict(chosen.best)
    if people.beyond:
        outside = {name: learning[name] for name in people.beyond}
        best |= least_regret(candidates, outside, train.X, train.y, payoff).best
    everybody, nobody = (payoff.of(np.full(len(train.y), all_), train.y) for all_ in (1.0, 0.0))
    alike = float(everybody.mean() > nobody.mean())
    floor = payoff.of(np.full(len(test.y), alike), test.y)
    answering = {name: one.with_windows(test.X, test.windows) for name, one in known.items()}
    judged = _Judged(test, payoff, failure_probability)
    attainable = {name: judged.values(best[name], one) for name, one in answering.items()}
    judgements = {
        name: judged.rule(rule, answering, attainable, floor)
        for name, rule in {**rules, KEPT: chosen.rule}.items()
    }
    return {
        "payoff": asdict(payoff),
        "direction": chosen.direction,
        "n": len(test.y),
        "rules": {name: _largest(each, list(people.members)) for name, each in judgements.items()},
    }


def published_regret(
    blind: PublishedModel,
    calibrated: PublishedModel,
    train: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    people: PlausiblePeople,
    payoff: Payoff,
) -> dict[str, Any]:
    """Return `regret_report` of stored rules on standardised tables, with who people may be."""
    rules = {"blind": blind.rule, "strategic": calibrated.rule}
    report = regret_report(rules, people, rows_of(train, schema), rows_of(test, schema), payoff)
    return {"people": people.to_json()} | report


@dataclass(frozen=True)
class _Judged:
    """New people, and what decisions about them are worth."""

    rows: Rows
    payoff: Payoff
    failure_probability: float

    def values(self, rule: Score, people: Response) -> Floats:
        """Return what each decision is worth once such people have responded."""
        X, y = self.rows.X, self.rows.y
        kinds = kinds_accepted_from(rule, people, X, y)
        approved = np.sum([share * (thresholds <= 0.0) for share, thresholds in kinds], axis=0)
        return self.payoff.of(approved, y)

    def rule(
        self,
        rule: Score,
        people: Mapping[str, Response],
        attainable: Mapping[str, Floats],
        floor: Floats,
    ) -> dict[str, dict[str, Estimate]]:
        """Return regret against what each member's best rule attains, and gain over the floor."""
        regret, gain = {}, {}
        for name, response in people.items():
            values = self.values(rule, response)
            regret[name] = self.mean(attainable[name] - values)
            gain[name] = self.mean(values - floor)
        return {"regret": regret, "gain": gain}

    def mean(self, differences: Floats) -> Estimate:
        """Return the mean of paired differences, with an interval that holds at every n."""
        most, n = self.payoff.range, len(self.rows.y)
        units: NDArray[Any] = np.arange(n) if self.rows.clusters is None else self.rows.clusters
        shares = 0.5 + 0.5 * differences / most
        low, high = clustered_interval(shares, units, self.failure_probability)
        ends = (most * (2.0 * end - 1.0) for end in (low, high))
        value = float(differences.mean())
        return dict(zip(("value", "low", "high", "n"), (value, *ends, n), strict=True))


def _largest(judged: dict[str, dict[str, Estimate]], members: list[str]) -> dict[str, Any]:
    regret, gain = judged["regret"], judged["gain"]
    worst = max(members, key=lambda name: float(regret[name]["value"]))
    least = min(members, key=lambda name: float(gain[name]["value"]))
    return {
        "regret": {name: regret[name] for name in members},
        "gain": {name: gain[name] for name in members},
        "worst": worst,
        "largest_regret": {
            "value": regret[worst]["value"],
            "high": max(regret[name]["high"] for name in members),
        },
        "least": least,
        "least_gain": {
            "value": gain[least]["value"],
            "low": min(gain[name]["low"] for name in members),
        },
        "beyond": {name: regret[name] for name in regret if name not in members},
    }
