"""A stored rule applied to people: a decision for each, recourse for the refused, and its audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.storage import settings_digest
from countermove.execution import PartTask
from countermove.people import ActionSet
from countermove.recourse._audit_groups import share
from countermove.recourse.audit import audit, audited_groups
from countermove.recourse.lasting import NONE_KEPT
from countermove.recourse.pare import PromiseTerms
from countermove.recourse.recommend import FOUND, Advice, recommend
from countermove.recourse.words import advice_table
from countermove.response import Response
from countermove.scores.storage import PublishedModel, model_digest

if TYPE_CHECKING:
    import pyarrow as pa


DECIDED = ["row_id", "decision", "probability", "status"]


@dataclass(frozen=True)
class AuditedAdvice:
    """Decisions and advice for people, and what an auditor reads."""

    decisions: pd.DataFrame  # the columns DECIDED, one row per person
    advice: pd.DataFrame  # see `advice_table`
    audit: dict[str, Any]  # see `RecourseAudit`; `groups` by sensitive column


def advise(
    model: PublishedModel,
    table: pd.DataFrame,
    real: pd.DataFrame,
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
    seed: int,
) -> AuditedAdvice:
    """Decide about standardised people, find recourse for the refused and audit it."""
    # `real` are the rows the rule was learned from: people after recourse are compared with them.
    people = rows_of(table, schema)
    advised = decide_and_advise(model, people, schema, response, terms, seed)
    bare, allowed, threshold = advised.bare, advised.allowed, advised.threshold
    advice = advised.advice
    judged = audit(
        bare,
        people.X,
        people.y,
        advice,
        threshold=threshold,
        actions=allowed,
        cost=response.cost,
        real=rows_of(real, schema).X,
        features=schema.feature_names,
        seed=seed,
    )
    columns = {str(name): column.to_numpy(dtype=object) for name, column in people.groups.items()}
    by_group = audited_groups(bare, people.X, advice, threshold, response.cost, columns)
    groups = {name: [asdict(group) for group in found] for name, found in by_group.items()}
    found = judged.to_json() | {
        "groups": groups,
        "lasting": _lasting(advised, people.X, response, terms, seed),
    }
    return AuditedAdvice(advised.table[DECIDED], advised.table, found)


def _lasting(
    advised: PeopleAdvice, X: Floats, response: Response, terms: PromiseTerms, seed: int
) -> dict[str, Any]:
    """Return how much advice outlasts a refit, and what that costs beside the plain optimum."""
    advice, confidence = advised.advice, confidence_of(advised.bare, terms)
    given = advice.status == FOUND
    facts: dict[str, Any] = {
        "confidence": terms.confidence,
        "reason": None if advised.bare.covariance is not None else NONE_KEPT,
        "advised": int(given.sum()),
        "lasting": None,
        "median_survival": None,
        "median_survival_without": None,
        "median_cost_ratio": None,
        "uncertain_weight": None,
    }
    if advised.bare.covariance is None or not given.any():
        return facts
    facts |= {
        "median_survival": float(np.median(advice.survival[given])),
        "uncertain_weight": asdict(share(advice.uncertain_weight[given])),
    }
    if confidence is None:
        return facts
    rule = (advised.bare, advised.threshold, advised.allowed.of_rows(np.flatnonzero(given)))
    plain = _recommended(*rule, X[given], response, replace(terms, confidence=None), seed)
    lasts = advice.lasting[given]
    ratio = advice.cost[given][lasts] / plain.cost[lasts]
    return facts | {
        "lasting": asdict(share(lasts)),
        "median_survival_without": float(np.nanmedian(plain.survival)),
        "median_cost_ratio": float(np.median(ratio)) if ratio.size else None,
    }


@dataclass(frozen=True)
class PeopleAdvice:
    """Advice for some people, as a table and as arrays, and what it was found with."""

    table: pd.DataFrame
    advice: Advice
    bare: PublishedModel  # the rule without its threshold
    allowed: ActionSet
    threshold: float


def decide_and_advise(
    model: PublishedModel,
    people: Rows,
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
    seed: int,
) -> PeopleAdvice:
    """Decide about people where they stand, and find recourse for the refused; no audit."""
    bare, threshold = model.without_threshold(), model.threshold
    allowed = response.actions.narrowed(terms.largest_action, model.score.n_features)
    advice = _recommended(bare, threshold, allowed, people.X, response, terms, seed)
    table = advice_table(advice, people.X, schema, model.standardiser, people.ids)
    return PeopleAdvice(table, advice, bare, allowed, threshold)


def _recommended(
    bare: PublishedModel,
    threshold: float,
    allowed: ActionSet,
    X: Floats,
    response: Response,
    terms: PromiseTerms,
    seed: int,
) -> Advice:
    """Return the advice of a rule on these terms."""
    return recommend(
        bare,
        X,
        terms.method,
        threshold,
        allowed,
        response.cost,
        margin=min(terms.margin, 0.5 * (1.0 - threshold)),
        ceiling=terms.ceiling,
        confidence=confidence_of(bare, terms),
        seed=seed,
    )


def confidence_of(model: PublishedModel, terms: PromiseTerms) -> float | None:
    """Return the confidence advice is given with: the terms', where the model can have one."""
    return None if model.covariance is None else terms.confidence


class AdviceTask(PartTask):
    """Decide about the people of a part of a table and advise the refused."""

    def __init__(
        self,
        model: PublishedModel,
        schema: Schema,
        response: Response,
        terms: PromiseTerms,
        seed: int,
    ) -> None:
        self.model, self.schema, self.response = model, schema, response
        self.terms, self.seed = terms, seed
        self.columns = ("row_id", "label", *schema.feature_names)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return one row per person: id, decision, probability, status, action, words."""
        import pyarrow as pa

        people = rows_of(rows.to_pandas(), self.schema)
        advised = decide_and_advise(
            self.model, people, self.schema, self.response, self.terms, self.seed
        )
        return pa.Table.from_pandas(advised.table, preserve_index=False)

    def fingerprint(self) -> str:
        """Return a digest of the rule, the people and the terms."""
        settings = {
            "model": model_digest(self.model),
            "schema": self.schema.digest(),
            "response": self.response.describe(),
            "terms": asdict(self.terms),
            "seed": self.seed,
        }
        return settings_digest(settings)
