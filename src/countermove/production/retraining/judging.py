"""Champion and challenger before the same people, under every answer these may give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.production.gates.base import Case, Gate, Judged, check_gates
from countermove.production.registry import Registry
from countermove.production.retraining.deciding import judged_before
from countermove.production.retraining.forecast import forecast, foretell
from countermove.recourse.pare import PromiseTerms, missed_after_response, reach_of
from countermove.response import NoResponse, Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

NOBODY = "none"
"""The response of people who stay where they are: every rule is judged under it too."""


@dataclass(frozen=True)
class People:
    """How people are assumed to answer.

    Attributes
    ----------
    responses
        The plausible ones, by name.
    stated
        Names of those the rules are trained for.
    trained
        The response training uses: a stated one, or several made robust.
    """

    responses: Mapping[str, Response]
    stated: Sequence[str]
    trained: Response


def put_to(score: Score, X: Any, y: Any, responses: Mapping[str, Response]) -> Judged:
    """Return what a rule decides about people, and whether rightly, by response."""
    everyone = {NOBODY: NoResponse(), **responses}
    approved = {name: response.decisions_after(score, X) for name, response in everyone.items()}
    right = {name: decided == (y > 0) for name, decided in approved.items()}
    return Judged(approved, right)


def without_recourse(
    model: PublishedModel, X: Any, response: Response, terms: PromiseTerms
) -> tuple[int, int]:
    """Return how many people have no way under a model's promise, and how many were asked."""
    bare, slope = model.without_threshold(), model.probability_slope
    reach = reach_of(bare, response.actions, terms.method, terms.largest_action)
    answering = members_of(response) if terms.after_response else (NoResponse(),)
    missed = [
        missed_after_response(
            bare.score, X, member, np.array([model.threshold]), reach=reach, slope=slope
        ).sum()
        for member in answering
    ]
    return int(max(missed)), len(X)


def make_case(
    challenger: PublishedModel,
    certificate: Mapping[str, Any],
    champion: PublishedModel | None,
    champion_certificate: Mapping[str, Any] | None,
    holdout: pd.DataFrame,
    schema: Schema,
    people: People,
    recourse: PromiseTerms,
    failure_probability: float,
    looks: int = 0,
) -> Case:
    """Collect what the gates look at.

    Parameters
    ----------
    challenger, champion
        Rules with their thresholds folded in, in the same units; no champion at a cold start.
    certificate, champion_certificate
        Their promises of recourse, as JSON.
    holdout
        Standardised rows.
    schema, people, recourse
        What the columns mean, how people answer, and the terms of the promise.
    failure_probability
        Of each bound on the error.
    looks
        How many challengers this hold-out has judged before.
    """
    held = rows_of(holdout, schema)
    before = None
    if champion is not None:
        before = put_to(champion.rule, held.X, held.y, people.responses)
    after = put_to(challenger.rule, held.X, held.y, people.responses)
    return Case(
        challenger=after,
        champion=before,
        stated=list(people.stated),
        groups=held.groups,
        certificate=certificate,
        champion_certificate=champion_certificate,
        without_recourse=without_recourse(challenger, held.X, people.trained, recourse),
        bounds=foretell(after, people.stated, failure_probability),
        looks=looks,
    )


def judgement(case: Case) -> dict[str, Any]:
    """Return a case as JSON: accuracies of both rules under every response, and the rest."""
    rules = {"challenger": case.challenger, "champion": case.champion}
    shown = {name: rule for name, rule in rules.items() if rule is not None}
    missed, asked = case.without_recourse
    return {
        "people": len(case.groups),
        "stated": list(case.stated),
        "accuracy": {name: rule.accuracies() for name, rule in shown.items()},
        "approved": {
            name: {response: float(mask.mean()) for response, mask in rule.approved.items()}
            for name, rule in shown.items()
        },
        "without_recourse": {"missed": missed, "people": asked},
        "looks": case.looks,
    }


def weigh(
    registry: Registry,
    challenger: PublishedModel,
    calibration: Mapping[str, Any],
    holdout: pd.DataFrame,
    schema: Schema,
    people: People,
    failure_probability: float,
    gates: Sequence[Gate],
) -> dict[str, Any]:
    """Put a challenger and the champion to the hold-out, and the case to the gates.

    Returns
    -------
    dict
        ``judgement``, ``forecast`` and ``gates``, JSON-ready.
    """
    champion = registry.champion()
    case = make_case(
        challenger,
        calibration["certificate"],
        None if champion is None else champion.model,
        None if champion is None else champion.facts["certificate"],
        holdout,
        schema,
        people,
        PromiseTerms(**calibration["terms"]),
        failure_probability,
        judged_before(registry.decisions()),
    )
    found = [gate.to_json() for gate in check_gates(gates, case)]
    return {"judgement": judgement(case), "forecast": forecast(case), "gates": found}
