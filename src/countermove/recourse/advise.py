"""A stored rule applied to people: a decision for each, recourse for the refused, and its audit."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.rows import Rows, rows_of
from countermove.data.schema import Schema
from countermove.data.storage import settings_digest
from countermove.errors import CalibrationError, NotEnoughRowsError, ParameterError
from countermove.execution import PartTask
from countermove.people import ActionSet
from countermove.recourse._lacking import with_lacking
from countermove.recourse.audit import audit, audited_groups, verified_costs
from countermove.recourse.audit_shares import (
    causal_audit,
    lasting_audit,
    not_causal,
    reasons_audit,
    without_intervals,
)
from countermove.recourse.calibrate import clusters_facts
from countermove.recourse.lasting import refits_of_model
from countermove.recourse.pare import PromiseTerms, cost_certificate, cost_promise
from countermove.recourse.pare.inputs import check_level
from countermove.recourse.phrases import Phrases, phrases_of
from countermove.recourse.problem import ApprovalThreshold, probability_slope
from countermove.recourse.reasons import (
    ApprovedPeople,
    Reasons,
    approved_people,
    reason_array,
    reason_codes,
)
from countermove.recourse.recommend import Advice, recommend
from countermove.recourse.words import advice_table
from countermove.response import Response
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel, model_digest

if TYPE_CHECKING:
    import pyarrow as pa


logger = logging.getLogger(__name__)

DECIDED = ["row_id", "decision", "probability", "status"]
CODES = "reason_codes"
APPROVED = "approved_training_people"
"""Key of a model's facts: whom the refused are compared with."""


@dataclass(frozen=True)
class AdviceTerms:
    """How advice is chosen and said.

    Parameters
    ----------
    phrase_file
        The path of a file of phrases; None: those that come with the package.
    options
        Ways to look for; up to two beside the first are given in words.
    causal_tolerance
        How much more, as a share, advice may cost that leaves columns alone which the schema
        declares not to cause the outcome.
    digits
        Significant digits of amounts, see `recommend`.
    confidence
        The probability with which advice should outlast a refit, see `recommend`; None:
        advice ends on the threshold. Models without covariance and refits advise without.
    """

    phrase_file: str | None = None
    options: int = 1
    causal_tolerance: float = 0.05
    digits: int | None = None
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.options < 1:
            raise ParameterError(f"options is a whole number of at least 1, got {self.options!r}")
        if self.confidence is not None:
            check_level(self.confidence, "confidence")
        phrases_of(self.phrase_file)

    @property
    def phrases(self) -> Phrases:
        """The pieces of sentences."""
        return phrases_of(self.phrase_file)

    def fingerprint(self, schema: Schema) -> dict[str, Any]:
        """Return what words depend on: these terms, the phrases, and the schema's own words."""
        words = {key: schema.to_mapping().get(key) for key in ("features", "path")}
        return asdict(self) | {"phrases": self.phrases.digest, "schema": words}


def with_approved(model: PublishedModel, train: pd.DataFrame, schema: Schema) -> PublishedModel:
    """Return a model that knows the training people it approves; as it is if there are none."""
    people = rows_of(train, schema)
    bare = model.without_threshold()
    try:
        approved = approved_people(bare, people.X, people.ids.tolist(), model.threshold)
    except NotEnoughRowsError as error:
        logger.warning("no reasons will be given: %s", error)
        return model
    return replace(model, about=model.about | {APPROVED: approved.to_json()})


@dataclass(frozen=True)
class AuditedAdvice:
    """Decisions and advice for people, and what an auditor reads."""

    decisions: pd.DataFrame  # the columns DECIDED, one row per person
    advice: pd.DataFrame  # see `advice_table`
    audit: dict[str, Any]  # see `RecourseAudit`; `groups` by sensitive column

    def sheet(self) -> pd.DataFrame:
        """Return the advice for a spreadsheet: lists become text."""
        if CODES not in self.advice:
            return self.advice
        return self.advice.assign(**{CODES: [";".join(row) for row in self.advice[CODES]]})


def advise(
    model: PublishedModel,
    table: pd.DataFrame,
    real: pd.DataFrame,
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
    seed: int,
    said: AdviceTerms | None = None,
) -> AuditedAdvice:
    """Decide about standardised people, find recourse for the refused and audit it."""
    # `real` are the rows the rule was learned from: people after recourse are compared with them.
    people = rows_of(table, schema)
    said = AdviceTerms() if said is None else said
    advised = decide_and_advise(model, people, schema, response, terms, seed, said)
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
    judging = bare, people.X, advice, threshold, response.cost
    by_group = audited_groups(*judging, columns, dict(schema.references))
    groups = {name: [asdict(group) for group in found] for name, found in by_group.items()}
    about = reasons_audit(advised.reasons, schema) | causal_audit(advice, schema)
    for error in about.get("errors", ()):
        logger.error(error)
    lasting = lasting_audit(advice, said.confidence, refits_of_model(bare) is not None)
    facts = judged.to_json() | {"groups": groups, "lasting": lasting} | about
    clusters = clusters_facts(people, schema)
    if clusters is not None:
        facts = without_intervals(facts)
        reason = f"rows of one {clusters['column']!r} belong together: shares have no interval"
        clusters = clusters | {"words": reason}
    promised = _cost_promise(advised, people, response, terms)
    facts |= {"clusters": clusters, "cost_promise": promised}
    return AuditedAdvice(advised.table[DECIDED], advised.table, facts)


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
    reasons: Reasons | None = None  # None where the model does not know whom it approved


def decide(model: PublishedModel, X: Floats) -> tuple[Mask, Floats]:
    """Return who is approved where they stand, and the probability of each; no advice."""
    cut, scores = (
        ApprovalThreshold(model.threshold, model.probability_slope),
        values(model.score, X),
    )
    return cut.approved(scores), cut.probability(scores)


def decide_and_advise(
    model: PublishedModel,
    people: Rows,
    schema: Schema,
    response: Response,
    terms: PromiseTerms,
    seed: int,
    said: AdviceTerms | None = None,
) -> PeopleAdvice:
    """Decide about people where they stand, and find recourse for the refused; no audit."""
    said = AdviceTerms() if said is None else said
    bare, threshold = model.without_threshold(), model.threshold
    allowed = terms.allowed(response.actions, model.score.n_features)
    allowed = allowed.with_windows(people.X, people.windows)
    advice = recommend(
        bare,
        people.X,
        terms.method,
        threshold,
        allowed,
        response.cost,
        margin=min(terms.margin, 0.5 * (1.0 - threshold)),
        max_features=terms.max_features,
        ceiling=terms.ceiling,
        confidence=confidence_of(bare, said),
        digits=said.digits,
        options=said.options,
        not_causal=not_causal(schema),
        causal_tolerance=said.causal_tolerance,
        seed=seed,
    )
    reasons = None
    if APPROVED in model.about:
        approved = ApprovedPeople.from_json(model.about[APPROVED])
        reasons = reason_codes(bare, people.X, approved, schema, threshold)
    table = advice_table(
        advice,
        people.X,
        schema,
        model.standardiser,
        people.ids,
        model=bare,
        phrase_file=said.phrase_file,
        paths=() if allowed.possible is None else allowed.possible.path_states(people.X),
        named=None if reasons is None else reasons.named(people.X.shape[1]),
    )
    if reasons is not None:
        words = reason_array(
            reasons, advice, people.X, schema, model.standardiser, allowed, approved.mean,
            said.phrases,
        )  # fmt: skip
        table = _with_reasons(table, reasons, words)
    if any(feature.missing is not None for feature in schema.features):
        cut = ApprovalThreshold(threshold, probability_slope(bare))
        given = (schema, model.standardiser, cut, said.phrases)
        table = with_lacking(table, bare, people.X, *given)
    return PeopleAdvice(table, advice, bare, allowed, threshold, reasons)


def _with_reasons(table: pd.DataFrame, reasons: Reasons, words: pa.Array) -> pd.DataFrame:
    """Return advice that says why people were refused, before what they can do."""
    last = table.pop("words")
    said = pd.Series(words.to_pandas(), dtype="str")
    return table.assign(reasons=said, **{CODES: pd.Series(reasons.codes())}, words=last)


def arrow_advice(table: pd.DataFrame) -> pa.Table:
    """Return advice as an Arrow table of the same types whoever is in it."""
    import pyarrow as pa

    found = pa.Table.from_pandas(table, preserve_index=False)
    if CODES not in table:
        return found
    # Lists of nobody's reasons would have another type than those of the other parts.
    codes = found[CODES].cast(pa.list_(pa.string()))
    return found.set_column(found.column_names.index(CODES), CODES, codes)


def confidence_of(model: PublishedModel, said: AdviceTerms) -> float | None:
    """Return the confidence advice is given with: the terms', where the model can have one."""
    return None if refits_of_model(model) is None else said.confidence


class AdviceTask(PartTask):
    """Decide about the people of a part of a table and advise the refused."""

    def __init__(
        self,
        model: PublishedModel,
        schema: Schema,
        response: Response,
        terms: PromiseTerms,
        seed: int,
        said: AdviceTerms | None = None,
    ) -> None:
        self.model, self.schema, self.response = model, schema, response
        self.terms, self.seed = terms, seed
        self.said = AdviceTerms() if said is None else said
        self.columns = ("row_id", "label", *schema.feature_names, *schema.carried_windows)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return one row per person: id, decision, probability, status, action, words."""
        people = rows_of(rows.to_pandas(), self.schema)
        advised = decide_and_advise(
            self.model, people, self.schema, self.response, self.terms, self.seed, self.said
        )
        return arrow_advice(advised.table)

    def fingerprint(self) -> str:
        """Return a digest of the rule, the people and the terms."""
        settings = {
            "model": model_digest(self.model),
            "schema": self.schema.digest(),
            "response": self.response.describe(),
            "terms": asdict(self.terms),
            "said": self.said.fingerprint(self.schema),
            "seed": self.seed,
        }
        return settings_digest(settings)
