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
from countermove.production.draws import PersonDraws
from countermove.production.open_advice import Honoured
from countermove.production.registry import StoredVersion
from countermove.recourse.advise import (
    CODES,
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
CHAMPION_DECISION, CHALLENGER_DECISION = "champion_decision", "challenger_decision"
CHALLENGER, CANARY_DRAW = "challenger", "canary_draw"
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


@dataclass(frozen=True)
class Beside:
    """The challenger of a batch: it decides for a drawn share of the people, or for nobody."""

    rule: ScoringRule
    share: float | None = None
    draws: PersonDraws | None = None

    def describe(self, schema: Schema) -> dict[str, Any]:
        """Return what decisions depend on, JSON-ready."""
        draws = None if self.draws is None else self.draws.fingerprint()
        return self.rule.describe(schema) | {"share": self.share, "draws": draws}


@dataclass(frozen=True)
class _Applicants:
    """People of a part, in original units."""

    ids: NDArray[np.str_]
    given: Floats
    windows: Any


class ScoreTask(PartTask):
    """Decide about admitted applicants and advise the refused."""

    def __init__(
        self,
        rule: ScoringRule,
        schema: Schema,
        honoured: Honoured | None = None,
        beside: Beside | None = None,
    ) -> None:
        self.rule, self.schema, self.beside = rule, schema, beside
        self.honoured = Honoured() if honoured is None else honoured
        self.columns = (ROW_ID, *schema.feature_names, *schema.carried_windows)

    @property
    def rules(self) -> tuple[ScoringRule, ...]:
        """The rules that decide: the champion, and a challenger with a share."""
        beside = self.beside
        return (self.rule,) if beside is None or beside.draws is None else (self.rule, beside.rule)

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return decision and advice for each person, in original units and in words."""
        import pyarrow as pa

        windows = rows.select(list(self.schema.carried_windows)).to_pandas()
        people = _Applicants(
            rows[ROW_ID].to_numpy(zero_copy_only=False),
            matrix_of(rows, self.schema.feature_names),
            windows_of(windows, self.schema),
        )
        table, n = self._advised(self.rule, people), len(rows)
        theirs, compared = np.zeros(n, dtype=np.bool_), dict[str, pa.Array]()
        if self.beside is not None:
            theirs, compared = self._compared(self.beside, people, table)
        if len(self.rules) > 1:
            table = _chosen(table, self._advised(self.rules[1], people), theirs)
        followed = self.rule.said.phrases["followed"]
        table = self.honoured.applied(table, people.given, self.schema.feature_names, followed)
        found = arrow_advice(table)
        for name, column in (self._decided_by(people, theirs) | compared).items():
            found = found.append_column(name, column)
        return found.replace_schema_metadata(None)

    def _advised(self, rule: ScoringRule, people: _Applicants) -> pd.DataFrame:
        """Return what a rule decides and advises."""
        X = rule.model.standardiser.transform(people.given)
        rows = Rows(people.ids, X, np.full(len(X), np.nan), pd.DataFrame(), people.windows)
        given = (rule.model, rows, self.schema, rule.response, rule.terms, rule.seed, rule.said)
        return decide_and_advise(*given).table

    def _compared(
        self, beside: Beside, people: _Applicants, table: pd.DataFrame
    ) -> tuple[NDArray[np.bool_], dict[str, pa.Array]]:
        """Return for whom the challenger decides, and what both rules say about everybody."""
        import pyarrow as pa

        model, theirs = beside.rule.model, np.zeros(len(people.ids), dtype=np.bool_)
        approved, probability = decide(model, model.standardiser.transform(people.given))
        said = {
            CHAMPION_DECISION: table["decision"].to_numpy(np.int64),
            "champion_probability": table["probability"].to_numpy(np.float64),
            CHALLENGER_DECISION: np.where(approved, 1, -1).astype(np.int64),
            "challenger_probability": probability,
        }
        if beside.draws is not None and beside.share is not None:
            said[CANARY_DRAW] = beside.draws.of(map(str, people.ids))
            theirs = said[CANARY_DRAW] < beside.share
        version = {CHALLENGER: pa.repeat(beside.rule.version, len(people.ids))}
        return theirs, version | {name: pa.array(column) for name, column in said.items()}

    def _decided_by(self, people: _Applicants, theirs: NDArray[np.bool_]) -> dict[str, pa.Array]:
        """Return everybody's version and certificate, and who is unlike all it was trained on."""
        import pyarrow as pa

        names = np.full(len(theirs), self.rule.version, dtype=object)
        promises = np.full(len(theirs), self.rule.certificate, dtype=object)
        outside = self._outside(self.rule, people)
        if theirs.any():
            other = self.rules[1]
            names[theirs], promises[theirs] = other.version, other.certificate
            outside[theirs] = self._outside(other, people)[theirs]
        return {
            VERSION: pa.array(names, pa.string()),
            CERTIFICATE: pa.array(promises, pa.string()),
            OUTSIDE: pa.array(outside),
        }

    def _outside(self, rule: ScoringRule, people: _Applicants) -> NDArray[np.object_]:
        return outside_training_range(rule.model, rule.model.standardiser.transform(people.given))

    def fingerprint(self) -> str:
        """Return a digest of the version, the people, the terms and the release."""
        said = self.rule.describe(self.schema) | {"release": version("countermove")}
        if self.honoured.people:
            said["honoured"] = _plain(self.honoured.describe())
        if self.beside is not None:
            said["beside"] = self.beside.describe(self.schema)
        return canonical_digest(said)


def _chosen(own: pd.DataFrame, other: pd.DataFrame, theirs: NDArray[np.bool_]) -> pd.DataFrame:
    """Return the advice of the rule that decided; a version without reasons gives none."""
    found = pd.concat([own[~theirs], other[theirs]]).sort_index()
    if CODES in found:
        lists = [codes if isinstance(codes, list) else [] for codes in found[CODES]]
        found[CODES] = pd.Series(lists, found.index, dtype=object)
    return found


def outside_training_range(model: PublishedModel, X: Floats) -> NDArray[np.object_]:
    """Return who has a value beyond all training values, shape (n,); None where not known."""
    known = model.about.get(RANGE)
    if known is None:
        return np.full(len(X), None, dtype=object)
    low, high = np.array(known["low"]) - ROUNDING, np.array(known["high"]) + ROUNDING
    return ((low > X) | (high < X)).any(axis=1).astype(object)
