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
from countermove.production.scoring.exploring import EXPLORED, PROPENSITY, Exploration
from countermove.recourse.advise import (
    AdviceTerms,
    arrow_advice,
    decide,
    decide_and_advise,
)
from countermove.recourse.pare import PromiseTerms
from countermove.response import Response
from countermove.scores.storage import PublishedModel, model_digest

if TYPE_CHECKING:
    import pyarrow as pa


VERSION = "version"
CERTIFICATE = "certificate"
OUTSIDE = "outside_training_range"
CHALLENGER = "challenger"
CHAMPION_DECISION, CHALLENGER_DECISION = "champion_decision", "challenger_decision"
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


PROMISED = ("largest_action", "margin", "ceiling", "max_features", "max_steps")
"""Terms of the promise that advice obeys."""


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
        # What people may be asked for, and by which margin, is what the version was calibrated
        # with. Its promise was made for the actions it was trained with: with others there is none.
        known: dict[str, Any] = stored.facts.get("terms", {})
        asked = {key: known[key] for key in PROMISED if key in known}
        own = replace(terms, method=method, **asked)
        holds = same_actions(stored.model, response)
        promised = leading_certificate(stored.facts) if holds else None
        claims = tuple(stored.facts.get("certificates", ()))
        said = AdviceTerms() if said is None else said
        return cls(stored.version, stored.model, promised, claims, response, own, seed, said)

    def describe(self, schema: Schema) -> dict[str, Any]:
        """Return what its decisions and advice depend on, JSON-ready."""
        return {
            "version": self.version,
            "model": model_digest(self.model),
            "certificate": self.certificate,
            "schema": schema.digest(),
            "response": _plain(self.response.describe()),
            "terms": _plain(asdict(self.terms)),
            "said": _plain(self.said.fingerprint(schema)),
            "seed": self.seed,
        }


def same_actions(model: PublishedModel, response: Response) -> bool:
    """Return whether people may do now what they could when the model was trained."""
    trained = model.about.get("response", {}).get("actions")
    present = response.describe().get("actions")
    return trained is None or _plain(trained) == _plain(present)


def _plain(said: Any) -> str:
    return json.dumps(said, sort_keys=True, default=str)


class ScoreTask(PartTask):
    """Decide about admitted applicants and advise the refused."""

    def __init__(
        self,
        rule: ScoringRule,
        schema: Schema,
        honoured: Honoured | None = None,
        challenger: StoredVersion | None = None,
        exploration: Exploration | None = None,
    ) -> None:
        self.rule, self.schema, self.challenger = rule, schema, challenger
        self.exploration = exploration
        self.honoured = Honoured() if honoured is None else honoured
        self.columns = (ROW_ID, *schema.feature_names, *schema.carried_windows)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return decision and advice for each person, in original units and in words."""
        import pyarrow as pa

        rule, names = self.rule, self.schema.feature_names
        given, ids = matrix_of(rows, names), rows[ROW_ID].to_numpy(zero_copy_only=False)
        carried = rows.select(list(self.schema.carried_windows)).to_pandas()
        X, n = rule.model.standardiser.transform(given), len(rows)
        people = Rows(ids, X, np.full(n, np.nan), pd.DataFrame(), windows_of(carried, self.schema))
        terms = (self.schema, rule.response, rule.terms, rule.seed, rule.said)
        table = decide_and_advise(rule.model, people, *terms).table
        said = {
            VERSION: pa.repeat(rule.version, n),
            CERTIFICATE: pa.array([rule.certificate] * n, pa.string()),
            OUTSIDE: pa.array(outside_training_range(rule.model, X)),
        } | self._shadow(given, table)
        table = self.honoured.applied(table, given, names, rule.said.phrases["followed"])
        if self.exploration is not None:
            table = self.exploration.applied(table, rule.said.phrases["approved"])
            drawn = (EXPLORED, PROPENSITY)
            said |= {name: pa.array(table.pop(name).to_numpy()) for name in drawn}
        found = arrow_advice(table)
        for name, column in said.items():
            found = found.append_column(name, column)
        return found.replace_schema_metadata(None)

    def _shadow(self, given: Floats, table: pd.DataFrame) -> dict[str, pa.Array]:
        """Return what the champion and the challenger beside it say about everybody."""
        import pyarrow as pa

        if self.challenger is None:
            return {}
        model = self.challenger.model
        approved, probability = decide(model, model.standardiser.transform(given))
        return {
            CHALLENGER: pa.repeat(self.challenger.version, len(table)),
            # A copy: whoever followed advice or is drawn is approved in the table later.
            CHAMPION_DECISION: pa.array(table["decision"].to_numpy(np.int64, copy=True)),
            "champion_probability": pa.array(table["probability"].to_numpy(np.float64)),
            CHALLENGER_DECISION: pa.array(np.where(approved, 1, -1).astype(np.int64)),
            "challenger_probability": pa.array(probability),
        }

    def fingerprint(self) -> str:
        """Return a digest of the version, the people, the terms and the release."""
        said = self.rule.describe(self.schema) | {"release": version("countermove")}
        if self.honoured.people:
            said["honoured"] = _plain(self.honoured.describe())
        if self.challenger is not None:
            said[CHALLENGER] = [self.challenger.version, self.challenger.sha256]
        if self.exploration is not None:
            said["exploration"] = self.exploration.describe()
        return canonical_digest(said)


def outside_training_range(model: PublishedModel, X: Floats) -> NDArray[np.object_]:
    """Return who has a value beyond all training values, shape (n,); None where not known."""
    known = model.about.get(RANGE)
    if known is None:
        return np.full(len(X), None, dtype=object)
    low, high = np.array(known["low"]) - ROUNDING, np.array(known["high"]) + ROUNDING
    return ((low > X) | (high < X)).any(axis=1).astype(object)
