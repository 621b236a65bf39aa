"""The hold-out: frozen by the first run; every champion and challenger is evaluated on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Mask
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import CLUSTER_PREFIX, WINDOW_PREFIX, Schema
from countermove.data.sources import table_hash
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest
from countermove.errors import BlockedError
from countermove.learning.intercept import shift_intercept
from countermove.production.gates.base import Case, Gate, HoldoutDecisions, check_gates
from countermove.production.registry import Registry
from countermove.production.retraining.forecast import error_bounds, forecast
from countermove.production.retraining.nightly import Followed, RecentPeople
from countermove.production.retraining.promotion import challengers_evaluated
from countermove.recourse.pare import PromiseTerms, missed_after_response
from countermove.response import NoResponse, Response
from countermove.response.response_set import members_of
from countermove.scores import Score
from countermove.scores.storage import PublishedModel

PINNED = "holdout.json"
NOBODY = "none"
"""The response of people who stay where they are: every rule is evaluated under it too."""


def pin_holdout(
    registry: Registry, holdout: pd.DataFrame, standardiser: Standardiser
) -> dict[str, Any]:
    """Freeze the rows and the units of the hold-out at the first run; later, refuse others."""
    # Whose rows belong together, people's months and usual ranges are no part of what models are
    # evaluated on.
    beside = (CLUSTER_PREFIX, WINDOW_PREFIX)
    judged = holdout[[name for name in holdout if not str(name).startswith(beside)]]
    facts: dict[str, Any] = {
        "rows": len(holdout),
        "table_sha256": table_hash(judged),
        "units_sha256": canonical_digest(replace(standardiser, ranges=None).to_json()),
    }
    # As long as no challenger was evaluated on it, a run that failed has frozen nothing.
    if not registry.store.exists(PINNED) or not registry.versions():
        registry.write(PINNED, facts)
        return facts
    pinned = registry.read(PINNED)
    if pinned != facts:
        raise BlockedError(
            f"the hold-out has changed: {facts['rows']} rows (SHA-256 "
            f"{facts['table_sha256'][:12]}…) in place of the {pinned.get('rows')} that were frozen "
            f"({str(pinned.get('table_sha256'))[:12]}…), or other units. The base table, seed or "
            "ingest parameters are not those of the first run: restore them and bring new rows as "
            "batches, or start another registry (needed once where the base table has rows with "
            "equal features: they used to share a split)"
        )
    return facts


@dataclass(frozen=True)
class Judging:
    """What every challenger of a dataset is judged by.

    Attributes
    ----------
    schema
        What the columns mean.
    responses, stated, trained
        How people may respond, the names of the responses that are stated, and the one that rules
        are trained with.
    gates
        All of them have to pass.
    failure_probability
        Of each bound on the error.
    """

    schema: Schema
    responses: Mapping[str, Response]
    stated: Sequence[str]
    trained: Response
    gates: Sequence[Gate]
    failure_probability: float

    def after(self, followed: Followed) -> Judging:
        """Return the same for the people and by the gates that a night found."""
        responses = {name: followed.people(each) for name, each in self.responses.items()}
        trained, gates = followed.people(self.trained), followed.gates(self.gates)
        return replace(self, responses=responses, trained=trained, gates=gates)

    def known_responses(self, rows: Rows) -> dict[str, Response]:
        """Return the responses of people whose histories may be known."""
        return {
            name: response.with_windows(rows.X, rows.windows)
            for name, response in self.responses.items()
        }


def holdout_decisions(
    score: Score, X: Any, y: Any, responses: Mapping[str, Response]
) -> HoldoutDecisions:
    """Return what a rule decides about people, and whether rightly, by response it can have."""
    known = {name: each for name, each in responses.items() if each.answers(score)}
    everyone = {NOBODY: NoResponse(), **known}
    approved = {name: response.decisions_after(score, X) for name, response in everyone.items()}
    right = {name: decided == (y > 0) for name, decided in approved.items()}
    return HoldoutDecisions(approved, right)


def without_recourse(
    model: PublishedModel, people: Rows, response: Response, terms: PromiseTerms
) -> tuple[int, int]:
    """Return how many people have no recourse under a model's promise, and how many there are."""
    bare, slope = model.without_threshold(), model.probability_slope
    reach = terms.reach(bare, response)
    X, moving = people.X, response.with_windows(people.X, people.windows)
    members = members_of(moving) if terms.after_response else (NoResponse(),)
    missed = [
        missed_after_response(
            bare.score, X, member, np.array([model.threshold]), reach=reach, slope=slope
        ).sum()
        for member in members
    ]
    return int(max(missed)), len(X)


def evaluate_challenger(
    registry: Registry,
    challenger: PublishedModel,
    calibration: Mapping[str, Any],
    holdout: pd.DataFrame,
    judging: Judging,
    open_advice: Mapping[str, int] | None,
    followed: Followed,
) -> dict[str, Any]:
    """Evaluate challenger and champion on recent people or the hold-out; JSON-ready."""
    champion, recent, asked = registry.champion(), followed.recent, judging.after(followed)
    held = rows_of(holdout if recent is None else recent.table, judging.schema)
    known = asked.known_responses(held)
    before = None
    if champion is not None:
        before = holdout_decisions(champion.model.rule, held.X, held.y, known)
    if recent is None:
        after = holdout_decisions(challenger.rule, held.X, held.y, known)
    else:
        after = _recent_decisions(challenger, recent, held, known)
    terms = PromiseTerms(**calibration["terms"])
    case = Case(
        challenger=after,
        champion=before,
        stated=list(judging.stated),
        groups=held.groups,
        certificate=calibration["certificate"],
        champion_certificate=None if champion is None else champion.facts["certificate"],
        without_recourse=without_recourse(challenger, held, asked.trained, terms),
        bounds=error_bounds(after, judging.stated, judging.failure_probability),
        looks=challengers_evaluated(registry.decisions()),
        open_advice=open_advice,
    )
    found = [gate.to_json() for gate in check_gates(asked.gates, case)]
    return {"judgement": _summary(case), "forecast": forecast(case), "gates": found}


def _recent_decisions(
    challenger: PublishedModel, recent: RecentPeople, held: Rows, responses: Mapping[str, Response]
) -> HoldoutDecisions:
    """Return decisions on people, each by a challenger that was fitted without them."""
    # The promise may have moved the challenger's threshold: those without a fold move with it.
    moved = float((challenger.rule.bias - challenger.score.bias).detach())
    approved: dict[str, Mask] = {}
    for rule, rows in recent.parts(challenger.rule):
        judging = rule if rule is challenger.rule else shift_intercept(rule, moved)
        theirs = {name: response.of_rows(rows) for name, response in responses.items()}
        decided = holdout_decisions(judging, held.X[rows], held.y[rows], theirs)
        for name, mask in decided.approved.items():
            approved.setdefault(name, np.zeros(len(held.y), dtype=np.bool_))[rows] = mask
    right = {name: mask == (held.y > 0) for name, mask in approved.items()}
    return HoldoutDecisions(approved, right)


def _summary(case: Case) -> dict[str, Any]:
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
        "open_advice": None if case.open_advice is None else dict(case.open_advice),
    }
