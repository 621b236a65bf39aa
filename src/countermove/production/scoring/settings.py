"""What decisions about a batch of applicants depend on, and which rules decide."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.errors import ParameterError
from countermove.production.open_advice import AdviceRegister, Honoured
from countermove.production.registry import Registry, StoredVersion
from countermove.production.registry.records import sequence_of
from countermove.production.scoring.exploring import Exploration, ExplorationTerms
from countermove.production.scoring.task import ScoreTask, ScoringRule, same_actions
from countermove.recourse.advise import AdviceTerms
from countermove.recourse.lasting import NONE_KEPT, refits_of_model
from countermove.recourse.pare import PromiseTerms
from countermove.response import Response

logger = logging.getLogger(__name__)
NEWEST = "newest"
"""Stands for the newest version that was kept since the champion was promoted."""


@dataclass(frozen=True)
class ScoringSettings:
    """What decisions about applicants depend on, beside the champion itself.

    Parameters
    ----------
    registry
        Holds the champion.
    schema
        What the columns mean.
    people
        From a stored version to the people it was made for: what they can do, at what cost.
    terms
        How recourse is searched for, where the champion does not say.
    method
        Of the search.
    seed
        Decides every draw.
    said
        How advice is chosen and said; the defaults unless given.
    open_advice_days
        How long advice is honoured: whoever follows it is approved, also by a later champion.
        None: no register is kept.
    challenger
        A version whose decisions are recorded beside the champion's; None: there is none.
    exploration
        Whether refused people are approved by draw; None: nobody is.
    """

    registry: Registry
    schema: Schema
    people: Callable[[StoredVersion], Response]
    terms: PromiseTerms
    method: str
    seed: int
    said: AdviceTerms | None = None
    open_advice_days: int | None = None
    challenger: str | None = None
    exploration: ExplorationTerms | None = None

    @property
    def register(self) -> AdviceRegister | None:
        """Where open advice is kept; None if it is not, or people have no ids to know them by."""
        keeps = self.open_advice_days is not None and self.schema.id is not None
        return AdviceRegister(self.registry) if keeps else None

    def task(
        self, champion: StoredVersion, challenger: StoredVersion | None, admitted: Partitions
    ) -> ScoreTask:
        """Return the work on admitted rows, with the advice that is open for their people."""
        register, honoured = self.register, None
        if register is not None:
            honoured = Honoured.of(register, self.registry, admitted)
        rule, explored = self.rule_of(champion), self.explored()
        return ScoreTask(rule, self.schema, honoured, challenger, explored)

    def explored(self) -> Exploration | None:
        """Return how refused people are approved by draw; None: nobody is."""
        if self.exploration is None:
            return None
        return self.exploration.keyed(self.schema.id is not None)

    def challenger_of(self, champion: StoredVersion, begun: str = "") -> StoredVersion | None:
        """Return the version beside a champion: that of a batch already begun, or the settings'."""
        if self.challenger is None:
            return None
        version: str | None = self.challenger
        if version == NEWEST:
            version = begun or self._newest_kept(champion.version)
        if version is None:
            logger.warning(
                "score.challenger: no version was kept since %s became the champion; it decides "
                "alone", champion.version,
            )  # fmt: skip
            return None
        if version == champion.version:
            raise ParameterError(
                f"score.challenger {version} is the champion itself: name another version, "
                f"or {NEWEST} for the newest that was kept"
            )
        return self.registry.load(version)

    def _newest_kept(self, champion: str) -> str | None:
        """Return the newest version that its gates refused since the champion was promoted."""
        pointer, known = self.registry.pointer(), set(self.registry.versions())
        since = sequence_of(champion if pointer is None else pointer.decided_by)
        for decision in reversed(self.registry.decisions()):
            if decision.sequence < since:
                break
            if decision.outcome == "kept" and decision.version in known - {champion}:
                return decision.version
        return None

    def rule_of(self, stored: StoredVersion) -> ScoringRule:
        """Return a stored version with its people and terms."""
        response = self.people(stored)
        if not same_actions(stored.model, response):
            logger.warning(
                "allowed actions differ from those version %s was trained with: its promise is "
                "not made to them (no certificate); retrain, or restore serm.actions",
                stored.version,
            )
        rule = ScoringRule.of(stored, response, self.terms, self.method, self.seed, self.said)
        if rule.said.confidence is not None and refits_of_model(stored.model) is None:
            logger.warning(
                "version %s knows nothing of its next fit, so advice has no margin against a "
                "refit (recourse.confidence). %s",
                stored.version, NONE_KEPT,
            )  # fmt: skip
        return rule
