"""The error after deployment, predicted before it.

For every rule: the error on the people it was made from, the predicted error on those it
will meet, every bound as a certificate, and the worst case over plausible responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.certificates import Assumption, Certificate
from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.errors import NotEnoughRowsError, ParameterError, UnknownNameError, nearest
from countermove.response import Response
from countermove.response.response_set import members_of
from countermove.scores.storage import PublishedModel
from countermove.transfer._verdict import verdict
from countermove.transfer.bounds import (
    ANSWERS,
    Setting,
    all_bounds,
    choose,
    theorem_3_1,
    theorem_3_2,
    theorem_3_3,
)
from countermove.transfer.estimates import share_range
from countermove.transfer.holdout import direct_bounds
from countermove.transfer.induced import Chances, Deployments, calibration, fit_chances, support
from countermove.transfer.optimal import difference
from countermove.transfer.sample import Labels

LabelledRows = tuple[Floats, Floats]


@dataclass(frozen=True)
class TransferTerms:
    """How the report is made.

    Parameters
    ----------
    failure_probability
        Chance that a certificate is wrong, each on its own.
    labels
        What moving may do to a label: ``kept``, ``follow`` or both.
    bins
        At most so many score bins for importance weights and total variation. Fewer give
        smaller bounds; the rule's threshold is always an edge.
    thresholds
        How many thresholds compete for the best rule after deployment.
    tolerated_outside
        Share of people beyond the source's support up to which weights are used.
    """

    failure_probability: float = 0.05
    labels: tuple[Labels, ...] = ("kept", "follow")
    bins: int = 6
    thresholds: int = 20
    tolerated_outside: float = 0.01


@dataclass(frozen=True)
class TransferReport:
    """The verdict, facts per rule, and one entry per bound, rule, response, labels and form.

    Entries of ``bounds`` stand in the order of ``says``: ``something``, then ``nothing`` (an
    error of at most 1), then ``not applicable``.
    """

    verdict: dict[str, Any]
    models: dict[str, Any]
    bounds: list[dict[str, Any]]
    about: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description that begins with the verdict."""
        facts = {"models": self.models, "bounds": self.bounds}
        return {"verdict": self.verdict} | self.about | facts


def transfer_report(
    rules: Mapping[str, Any],
    chosen_on: LabelledRows,
    judged_on: LabelledRows,
    responses: Mapping[str, Response],
    stated: Sequence[str] | None = None,
    *,
    chances: Chances | None = None,
    terms: TransferTerms | None = None,
    seed: int = 0,
    windows: tuple[pd.DataFrame, pd.DataFrame] | None = None,
    clusters: NDArray[Any] | None = None,
) -> TransferReport:
    """Report what deploying each rule does to its error, with every bound.

    >>> import numpy as np
    >>> from countermove import StrategicClassifier, transfer_report
    >>> from countermove.response import BestResponse
    >>> from countermove.transfer import TransferTerms
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(X @ [1.0, 0.5] > 0.0, 1.0, -1.0)
    >>> rule = StrategicClassifier(response="none", standardise=False).fit(X, y)
    >>> halves = (X[:150], y[:150]), (X[150:], y[150:])
    >>> asked = {"best": BestResponse()}
    >>> terms = TransferTerms(labels=("kept",))
    >>> report = transfer_report({"blind": rule.score_}, *halves, asked, terms=terms)
    >>> list(report.models)
    ['blind']

    Parameters
    ----------
    rules
        Scores, or models that have one, by name.
    chosen_on
        Features (n, d) and labels ±1 of people on whom thresholds and bins are chosen.
    judged_on
        The same of people used for nothing else: everything reported is measured on them.
    responses
        The plausible responses, by name, over which the worst case is taken.
    stated
        Those for which all bounds are given; the first of them by default.
    chances
        Model of P(Y | X) made from other rows (`fit_chances`); needed for labels that follow.
    terms
        See `TransferTerms`.
    seed
        Of labels that follow.
    windows
        The months of both, where histories are known (`ActionSet.with_windows`).
    clusters
        Whose rows of ``judged_on`` belong together (a household): errors are then bounded with
        clusters as units, and theorems that count rows are withheld.
    """
    terms = TransferTerms() if terms is None else terms
    plain = _plain(responses)
    names = list(stated) if stated else [next(iter(plain))]
    for name in names:
        if name not in plain:
            raise UnknownNameError(f"no response is called {name!r}: {nearest(name, plain)}")
    if "follow" in terms.labels and chances is None:
        raise ParameterError("labels that follow need chances=fit_chances(X, y) of other rows")
    if not len(chosen_on[1]) or not len(judged_on[1]):
        raise NotEnoughRowsError("a transfer report needs people to choose on and others to judge")
    # One row of each cluster: the test counts rows.
    alone = slice(None) if clusters is None else np.unique(clusters, return_index=True)[1]
    model = (
        None if chances is None else calibration(chances, judged_on[0][alone], judged_on[1][alone])
    )
    models, bounds, judges, months = {}, [], {}, windows or (None, None)
    first = next(iter(rules.values()))
    choosing = Deployments(first, *chosen_on, chances, seed, "people chosen on", months[0])
    judging = Deployments(first, *judged_on, chances, seed, windows=months[1], clusters=clusters)
    for rule, score in rules.items():
        people = choosing.of_rule(score), judging.of_rule(score)
        judge = _Judge(rule, *people, plain, names, terms, model)
        models[rule], judges[rule] = judge.facts(), judge
        bounds += judge.bounds()
    about = {
        "responses": list(plain),
        "stated": names,
        "terms": asdict(terms) | {"labels": list(terms.labels)},
        "rows": {"chosen_on": len(chosen_on[1]), "judged_on": len(judged_on[1])},
        "label_model": None if model is None else asdict(model),
    }
    reading = terms.labels[0]
    settings = {rule: judge.stated_settings(reading) for rule, judge in judges.items()}
    said = verdict(settings, reading, terms.failure_probability)
    bounds.sort(key=lambda entry: SAYS.index(entry["says"]))
    return TransferReport(said, models, bounds, about)


@dataclass(frozen=True)
class _Judge:
    """One rule: people to choose on, people to judge on, and everything asked of them."""

    rule: str
    choosing: Deployments
    judging: Deployments
    responses: Mapping[str, Response]
    stated: Sequence[str]
    terms: TransferTerms
    label_model: Assumption | None
    made: dict[tuple[str, Labels], Setting] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        source = self.judging.source
        alpha = self.terms.failure_probability
        before = asdict(share_range(source, source.wrong(), alpha))
        return {"source": before} | {labels: self._after(labels) for labels in self.terms.labels}

    def bounds(self) -> list[dict[str, Any]]:
        found = []
        for labels in self.terms.labels:
            for name in self.stated:
                setting = self._setting(name, labels, self.terms.failure_probability)
                claims = [*direct_bounds(setting), *all_bounds(setting)]
                found += [self._entry(claim, name, labels) for claim in claims]
            found += [self._entry(c, "worst case", labels) for c in self._worst_case(labels)]
        return found

    def _entry(self, claim: Certificate, response: str, labels: Labels) -> dict[str, Any]:
        about = {"model": self.rule, "response": response, "labels": labels}
        return claim.to_json() | about | {"says": _says(claim)}

    def stated_settings(self, labels: Labels) -> dict[str, Setting]:
        """Return the people of every stated response, which share the failure probability."""
        part = self.terms.failure_probability / len(self.stated)
        return {name: self._setting(name, labels, part) for name in self.stated}

    def _setting(self, name: str, labels: Labels, failure_probability: float) -> Setting:
        if (name, labels) not in self.made:
            self.made[name, labels] = self._make_setting(name, labels)
        return replace(self.made[name, labels], failure_probability=failure_probability)

    def _make_setting(self, name: str, labels: Labels) -> Setting:
        response = self.responses[name]
        threshold = self.choosing.best(response, labels, self.terms.thresholds)
        own, best = (self.choosing.at(response, labels, at) for at in (0.0, threshold))
        return Setting(
            own=self.judging.at(response, labels),
            best=self.judging.at(response, labels, threshold),
            chosen=choose(own, best, threshold, self.terms.bins),
            failure_probability=self.terms.failure_probability,
            label_model=self.label_model if labels == "follow" else None,
            tolerated_outside=self.terms.tolerated_outside,
        )

    def _after(self, labels: Labels) -> dict[str, Any]:
        """Return predicted errors per response, and the best threshold under the stated ones."""
        alpha = self.terms.failure_probability
        predicted, best = {}, {}
        for name, response in self.responses.items():
            pair = self.judging.at(response, labels)
            found = share_range(pair.induced, pair.induced.wrong(), alpha)
            predicted[name] = asdict(found) | {"outside_support": asdict(support(pair))}
        for name in self.stated:
            setting = self._setting(name, labels, alpha)
            at = setting.chosen.best
            wrong = setting.own.induced.wrong(), setting.best.induced.wrong(at)
            lost = difference(*wrong, alpha, setting.clusters)
            best[name] = {"threshold": at, "loss": asdict(lost) | {"words": lost.words}}
        worst = max(predicted, key=lambda name: predicted[name]["value"])
        return {"predicted": predicted, "best_threshold": best, "worst_response": worst}

    def _worst_case(self, labels: Labels) -> list[Certificate]:
        """Return the bounds that hold whichever of the responses is the true one."""
        # Each response gets an equal part of the failure probability.
        part = self.terms.failure_probability / len(self.responses)
        claims: dict[tuple[str, str], list[Certificate]] = {}
        for name in self.responses:
            setting = self._setting(name, labels, part)
            for bound in (direct_bounds, theorem_3_1, theorem_3_2, theorem_3_3):
                for claim in bound(setting):
                    claims.setdefault((claim.name, claim.kind), []).append(claim)
        return [self._worst(several) for several in claims.values()]

    def _worst(self, claims: Sequence[Certificate]) -> Certificate:
        upper = claims[0].direction == "upper"
        pick = (max if upper else min)(claims, key=lambda claim: claim.value or 0.0)
        kinds = Assumption(f"people answer as one of these says: {', '.join(self.responses)}")
        certain = pick.kind == "certificate" and pick.value is not None
        return replace(
            pick,
            name=f"worst_case_{pick.name}",
            level=1.0 - self.terms.failure_probability if certain else None,
            assumptions=tuple(kinds if a == ANSWERS else a for a in pick.assumptions),
            reference=f"Section 3.3 with {pick.reference}",
            words=f"whichever response is true, {pick.words}".replace(
                f"with {100 * (pick.level or 0.0):g} % confidence",
                f"with {100 * (1.0 - self.terms.failure_probability):g} % confidence",
            ),
        )


SAYS = ("something", "nothing", "not applicable")
"""What a bound may say, in the order in which entries stand."""


def _says(claim: Certificate) -> str:
    if claim.value is None:
        return SAYS[2]
    empty = claim.value >= 1.0 if claim.direction == "upper" else claim.value <= 0.0
    return SAYS[int(empty)]


def _plain(responses: Mapping[str, Response]) -> dict[str, Response]:
    """Return the responses with robust ones replaced by their members."""
    found: dict[str, Response] = {}
    for name, response in responses.items():
        members = members_of(response)
        for place, member in enumerate(members):
            found[name if len(members) == 1 else f"{name}_{place + 1}_{member.name}"] = member
    if not found:
        raise ParameterError("a transfer report needs at least one plausible response")
    return found


RULES, ADOPTED = ("blind", "strategic"), ("as it is", "at the promised threshold")
"""What both rules of a run are called, and of a run on a model that exists already."""


def report_published(
    blind: PublishedModel,
    calibrated: PublishedModel,
    train: pd.DataFrame,
    validation: pd.DataFrame,
    test: pd.DataFrame,
    schema: Schema,
    responses: Mapping[str, Response],
    stated: Sequence[str],
    terms: TransferTerms,
    seed: int,
) -> dict[str, Any]:
    """Return the transfer report of a run, under the responses that answer to its rules."""
    names = ADOPTED if blind.about.get("adopted") else RULES
    rules = dict(zip(names, (blind, calibrated), strict=True))
    scores = [rule.score for rule in rules.values()]
    answering = {name: each for name, each in responses.items() if all(map(each.answers, scores))}
    # P(Y | X) is fitted on the training rows, thresholds and bins are chosen on the validation
    # rows, and everything reported is measured on the test rows.
    made, chosen, judged = (rows_of(frame, schema) for frame in (train, validation, test))
    chances = fit_chances(made.X, made.y) if "follow" in terms.labels else None
    report = transfer_report(
        rules,
        (chosen.X, chosen.y),
        (judged.X, judged.y),
        answering,
        stated,
        chances=chances,
        terms=terms,
        seed=seed,
        windows=(chosen.windows, judged.windows),
        clusters=judged.clusters,
    )
    written = report.to_json()
    return {"verdict": written.pop("verdict"), "dataset": schema.name} | written
