"""Decide about and advise the people of one part of a batch, by one version of the rule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.data.rows import Rows, windows_of
from countermove.data.schema import ROW_ID, Schema
from countermove.data.storage import canonical_digest
from countermove.execution import PartTask, matrix_of
from countermove.production.open_advice import Honoured
from countermove.production.registry import StoredVersion
from countermove.recourse.advise import AdviceTerms, arrow_advice, decide_and_advise
from countermove.recourse.pare import PromiseTerms
from countermove.response import Response
from countermove.scores.storage import PublishedModel

if TYPE_CHECKING:
    import pyarrow as pa


VERSION = "version"
CERTIFICATE = "certificate"
OUTSIDE = "outside_training_range"
RANGE = "training_range"
"""Key of a model's facts: the least and the largest value of each training column."""
ROUNDING = 1e-9
DIGITS = 16
"""Hexadecimal digits of a name: 64 bits, enough to tell every certificate ever made apart."""


def certificate_id(certificate: Mapping[str, Any]) -> str:
    """Return a certificate's name: the beginning of the SHA-256 of its canonical JSON."""
    return canonical_digest(certificate)[:DIGITS]


def leading_certificate(facts: Mapping[str, Any]) -> str | None:
    """Return the name of the promise that a version's threshold was chosen by; None without one."""
    led: Mapping[str, Any] | None = facts.get("certificate")
    claims: Sequence[Mapping[str, Any]] = facts.get("certificates", ()) if led is None else [led]
    return next((certificate_id(claim) for claim in claims if claim.get("applicable")), None)


@dataclass(frozen=True)
class ScoringRule:
    """One version of the rule, and what its decisions and advice depend on."""

    version: str
    model: PublishedModel
    certificate: str | None  # name of the promise people are given
    claims: tuple[dict[str, Any], ...]  # every certificate of the version, as JSON
    response: Response  # its cost prices the actions, its actions are those advice may use
    terms: PromiseTerms  # how recourse is searched for
    seed: int
    said: AdviceTerms = field(default_factory=AdviceTerms)  # how it is chosen and said

    @classmethod
    def of(
        cls,
        stored: StoredVersion,
        response: Response,
        terms: PromiseTerms,
        method: str,
        seed: int,
        said: AdviceTerms | None = None,
    ) -> ScoringRule:
        """Return the rule of a stored version."""
        # How far people may be asked to go, and by which margin, is what the version was calibrated
        # with. Its promise was made for the actions it was trained with: with others there is none.
        known: dict[str, Any] = stored.facts.get("terms", {})
        asked = {key: known[key] for key in ("largest_action", "margin") if key in known}
        own = replace(terms, method=method, **asked)
        holds = same_actions(stored.model, response)
        promised = leading_certificate(stored.facts) if holds else None
        claims = tuple(stored.facts.get("certificates", ()))
        said = AdviceTerms() if said is None else said
        return cls(stored.version, stored.model, promised, claims, response, own, seed, said)


def same_actions(model: PublishedModel, response: Response) -> bool:
    """Return whether people may do now what they could when the model was trained."""
    trained = model.about.get("response", {}).get("actions")
    present = response.describe().get("actions")
    return trained is None or _plain(trained) == _plain(present)


def _plain(said: Any) -> str:
    return json.dumps(said, sort_keys=True, default=str)


class ScoreTask(PartTask):
    """Decide about admitted applicants and advise the refused."""

    def __init__(self, rule: ScoringRule, schema: Schema, honoured: Honoured | None = None) -> None:
        self.rule, self.schema = rule, schema
        self.honoured = Honoured() if honoured is None else honoured
        self.columns = (ROW_ID, *schema.feature_names, *schema.carried_windows)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return decision and advice for each person, in original units and in words."""
        import pyarrow as pa

        rule, n = self.rule, len(rows)
        given = matrix_of(rows, self.schema.feature_names)
        X = rule.model.standardiser.transform(given)
        ids = rows[ROW_ID].to_numpy(zero_copy_only=False)
        windows = windows_of(
            rows.select(list(self.schema.carried_windows)).to_pandas(), self.schema
        )
        people = Rows(ids, X, np.full(n, np.nan), pd.DataFrame(), windows)
        advised = decide_and_advise(
            rule.model, people, self.schema, rule.response, rule.terms, rule.seed, rule.said
        )
        decided = self.honoured.applied(
            advised.table, given, self.schema.feature_names, rule.said.phrases["followed"]
        )
        table = arrow_advice(decided)
        said = {
            VERSION: pa.repeat(rule.version, n),
            CERTIFICATE: pa.repeat(pa.scalar(rule.certificate, pa.string()), n),
            OUTSIDE: pa.array(outside_training_range(rule.model, X)),
        }
        for name, column in said.items():
            table = table.append_column(name, column)
        return table.replace_schema_metadata(None)

    def fingerprint(self) -> str:
        """Return a digest of the version, the people, the terms and the release."""
        from countermove.scores.storage import model_digest

        rule = self.rule
        said = {
            "version": rule.version,
            "model": model_digest(rule.model),
            "certificate": rule.certificate,
            "schema": self.schema.digest(),
            "response": _plain(rule.response.describe()),
            "terms": _plain(asdict(rule.terms)),
            "said": _plain(rule.said.fingerprint(self.schema)),
            "seed": rule.seed,
            "release": version("countermove"),
        }
        if self.honoured.people:
            said["honoured"] = _plain(self.honoured.describe())
        return canonical_digest(said)


def outside_training_range(model: PublishedModel, X: Floats) -> NDArray[np.object_]:
    """Return who has a value beyond all training values, shape (n,); None where not known."""
    known = model.about.get(RANGE)
    if known is None:
        return np.full(len(X), None, dtype=object)
    low, high = np.array(known["low"]) - ROUNDING, np.array(known["high"]) + ROUNDING
    return ((low > X) | (high < X)).any(axis=1).astype(object)
