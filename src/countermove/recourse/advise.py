"""A stored rule applied to people: a decision for each, recourse for the refused, and its audit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.storage import settings_digest
from countermove.errors import CalibrationError
from countermove.execution import PartTask
from countermove.people import ActionSet
from countermove.recourse.audit import audit, audited_groups, verified_costs
from countermove.recourse.calibrate import clusters_facts
from countermove.recourse.pare import PromiseTerms, cost_certificate, cost_promise
from countermove.recourse.recommend import Advice, recommend
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
    more = {
        "groups": groups,
        "clusters": clusters_facts(people, schema),
        "cost_promise": _cost_promise(advised, people, response, terms),
    }
    return AuditedAdvice(advised.table[DECIDED], advised.table, judged.to_json() | more)


def _cost_promise(
    advised: PeopleAdvice, people: Rows, response: Response, terms: PromiseTerms
) -> dict[str, Any] | None:
    """Return the certificate of what recourse costs the refused, as JSON; None if not asked for."""
    # People advised here are those nothing was chosen on, the threshold included. Their advice is
    # verified on the rule before it counts.
    if terms.cost_share is None:
        return None
    given = (advised.bare, people.X, advised.advice, advised.threshold, response.cost)
    refused, paid = verified_costs(*given)
    level = (terms.cost_share, terms.failure_probability)
    try:
        promised = cost_promise(paid, refused, *level, people.ids, people.clusters)
    except CalibrationError as refusal:
        reason = str(refusal)
        return cost_certificate(None, int(refused.sum()), *level, reason=reason).to_json()
    return promised.certificate.to_json()


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
    advice = recommend(
        bare,
        people.X,
        terms.method,
        threshold,
        allowed,
        response.cost,
        margin=min(terms.margin, 0.5 * (1.0 - threshold)),
        ceiling=terms.ceiling,
        seed=seed,
    )
    table = advice_table(advice, people.X, schema, model.standardiser, people.ids)
    return PeopleAdvice(table, advice, bare, allowed, threshold)


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
