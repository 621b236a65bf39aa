"""A night of the policy that follows the world, between the registry, the batches and the gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Index, Mask
from countermove.data.rows import rows_of, standardised_table
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import NothingNewError
from countermove.learning.regularisers import Regulariser
from countermove.production.gates.base import Gate, GateResult
from countermove.production.gates.builtin import (
    FlipRate,
    Improvement,
    MinimumAccuracy,
    TransferBound,
)
from countermove.production.registry import Decision, Registry, StoredVersion
from countermove.production.retraining.batches import DAY, LABELLED, NEW, RULE, SEEN
from countermove.production.retraining.follower import Follower
from countermove.production.retraining.following import (
    DeployedRule,
    Memory,
    Night,
    SeenBatch,
)
from countermove.production.retraining.labelled_batch import BATCH
from countermove.production.retraining.policy import DriftActs, FollowingPolicy
from countermove.production.retraining.reach import LEAST_PEOPLE, ReachModel
from countermove.response import BestResponse, Population, Response
from countermove.scores import LinearScore, Score
from countermove.scores.covariance import RuleCovariance
from countermove.scores.storage import PublishedModel, schema_facts

POLICY, REACH, ALLOWANCE, MEMORY = "policy", "reach", "allowance", "memory"
"""Keys of facts: of a decision, of a version, of a version, of a decision's policy."""


@dataclass(frozen=True, eq=False)
class RecentPeople:
    """People with a new label, where they stood, and the challenger that did not see them.

    ``rules`` are empty where one rule is judged on all of them.
    """

    table: pd.DataFrame
    fold: NDArray[np.intp]
    rules: tuple[LinearScore, ...]

    def parts(self, challenger: Score) -> list[tuple[Score, Index]]:
        """Return the rules that judge, each with the rows it judges."""
        if not self.rules:
            return [(challenger, np.arange(len(self.table)))]
        return [(rule, np.flatnonzero(self.fold == f)) for f, rule in enumerate(self.rules)]


@dataclass(frozen=True, eq=False)
class Followed:
    """What the policy made of a night; without a ``night``, ``reason`` says why there is none."""

    night: Night | None = None
    reason: str = ""
    acts: DriftActs = field(default_factory=DriftActs)
    recent: RecentPeople | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as a decision records it, without what the next night has to know."""
        if self.night is None:
            return {"kind": "first_holdout", "reason": self.reason}
        return {"kind": "following", "acts": asdict(self.acts), **self.night.to_json()}

    def people(self, assumed: Response) -> Response:
        """Return the people the challenger is made for."""
        return assumed if self.night is None else as_estimated(assumed, self.night.people)

    def gates(self, gates: Sequence[Gate]) -> list[Gate]:
        """Return the gates that apply: evidence from new labels stands for the paired test.

        Without the paired test none is asked for.
        """
        if self.night is None:
            return list(gates)
        left_out: tuple[type[Gate], ...] = (Improvement,)
        shifted = self.night.proposal == "shift"
        if shifted:  # The same people are approved as before they moved otherwise.
            left_out = (Improvement, FlipRate, MinimumAccuracy, TransferBound)
        asked = shifted or any(isinstance(gate, Improvement) for gate in gates)
        kept = [gate for gate in gates if not isinstance(gate, left_out)]
        return [*kept, _PolicyGate(self.night)] if asked else kept


@dataclass(frozen=True, eq=False)
class _PolicyGate(Gate):
    """The evidence of the new labels, or of where people stand now."""

    night: Night
    name = "likelihood"

    def check(self, case: Any) -> GateResult:
        """Return what the night found."""
        reach, evidence = self.night.reach, self.night.evidence
        if self.night.proposal == "shift" and reach is not None:
            words = (
                f"people move {reach.people.reach:.2f} times as far as assumed ({reach.low:.2f} to "
                f"{reach.high:.2f}, {reach.level:.1%} interval): the threshold is shifted"
            )
            return GateResult("reach", True, reach.people.reach, None, words)
        if evidence is None:
            return self.not_applicable("no new label")
        said = (evidence.sufficient, evidence.value, evidence.limit, evidence.words)
        return GateResult(self.name, *said)


def movers_of(assumed: Response) -> tuple[BestResponse, ReachModel] | None:
    """Return who moves and how they differ; None for people whose reach has no closed form."""
    if isinstance(assumed, BestResponse):
        return assumed, ReachModel()
    if isinstance(assumed, Population) and len(assumed.kinds) == 1:
        kind = assumed.kinds[0]
        if isinstance(kind, BestResponse):
            return kind, ReachModel(1.0, 0.5 * assumed.log_sd, assumed.never)
    return None


def as_estimated(assumed: Response, people: ReachModel | Mapping[str, float] | None) -> Response:
    """Return the people assumed, moving as far as was estimated."""
    if people is None:
        return assumed
    known = people if isinstance(people, ReachModel) else ReachModel(**people)
    movers = movers_of(assumed)
    if movers is None:
        return assumed.with_price(known.reach**-2)
    if known == movers[1]:
        return assumed
    kind = movers[0] if known.reach == 1.0 else movers[0].with_price(known.reach**-2)
    if known.log_sd == 0.0 and known.never == 0.0:
        return kind
    return Population(kind, log_sd=2.0 * known.log_sd, never=known.never)


def why_not(
    champion: StoredVersion | None,
    assumed: Response,
    regulariser: Regulariser | None,
    tables: Sequence[pd.DataFrame],
    schema: Schema,
) -> str | None:
    """Return why the policy cannot follow here; None if it can."""
    if champion is None:
        return "there is no champion yet"
    if not isinstance(champion.model.rule, LinearScore):
        return f"the champion's score is of kind {champion.model.rule.kind}, not linear"
    if movers_of(assumed) is None:
        return f"people respond as {assumed.name}, not as one kind of best responders"
    if regulariser is not None:
        return "training weighs accuracy against another aim (serm.regulariser)"
    names = list(schema.feature_names)
    if any(table[names].isna().to_numpy().any() for table in tables if len(table)):
        return "cells are missing"
    return None


@dataclass(frozen=True, eq=False)
class NightRows:
    """The tables of a run.

    Attributes
    ----------
    base
        Rows that had no rule to respond to, standardised.
    rows, waiting
        People of the batches with a label and without one yet, typed.
    facts
        Of each batch.
    set_apart
        Rows for promises, not for fits.
    weights
        Ids of people approved by draw and what each counts, if the policy says so.
    """

    base: Sequence[pd.DataFrame]
    rows: pd.DataFrame
    waiting: pd.DataFrame
    facts: Mapping[str, Mapping[str, Any]]
    set_apart: pd.DataFrame
    weights: pd.DataFrame | None = None


@dataclass(frozen=True, eq=False)
class NightTerms:
    """What the tables mean, who moves, what is trained for, by which policy, and the seed."""

    schema: Schema
    standardiser: Standardiser
    assumed: Response
    regulariser: Regulariser | None
    policy: FollowingPolicy | None
    seed: int


def follow(registry: Registry, seen: NightRows, terms: NightTerms, acts: DriftActs) -> Followed:
    """Walk a night on the tables of a run; ``acts`` is what drift changes about it."""
    if terms.policy is None:
        return Followed(reason="retrain.policy says so")
    champion, schema = registry.champion(), terms.schema
    tables = [table for table in (seen.rows, seen.waiting) if len(table)]
    standard = [standardised_table(table, schema, terms.standardiser) for table in tables]
    known, needed = movers_of(terms.assumed), [*seen.base, *standard]
    reason = why_not(champion, terms.assumed, terms.regulariser, needed, schema)
    if reason is None and not tables:
        reason = "no batch is left: all were withdrawn"
    if reason is not None or champion is None or known is None:
        return Followed(reason=reason or "")
    every = pd.concat(standard, ignore_index=True)
    origin = pd.concat([origin_of(table) for table in tables], ignore_index=True)
    rules, apart = rules_of(registry, seen.facts, known[1]), set(seen.set_apart[ROW_ID])
    batches, places = seen_batches(every, origin, seen.facts, rules, apart, schema)
    memory = memory_of(registry.decisions(), champion.version)
    memory = still_shown(memory, seen.facts)
    batches, memory = corrected_looks(batches, memory, seen.facts)
    if terms.policy.propensities and seen.weights is not None:
        counts = dict(seen.weights.itertuples(index=False, name=None))
        batches = _weighted(batches, [every[ROW_ID].iloc[who] for who in places], counts)
    people = rows_of(pd.concat(list(seen.base), ignore_index=True), schema)
    follower = Follower(people.X, people.y, known[0], terms.policy, terms.seed)
    night = follower.night(_deployed(champion, known[1]), batches, memory, acts)
    if night.evidence is None and night.proposal == "none":
        raise NothingNewError(
            "nothing new to learn from: no new label has come, and people move as far as they did; "
            f"the champion {champion.version} stays"
        )
    return Followed(night, "", acts, _recent(night, every, places, schema))


def origin_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return with which batch people's first label came, and in which they stood first."""
    labelled = table[LABELLED] if LABELLED in table else table[BATCH]
    first = table[SEEN] if SEEN in table else table[BATCH]
    return pd.DataFrame({LABELLED: labelled.to_numpy(), SEEN: first.to_numpy()})


def _deployed(stored: StoredVersion, assumed: ReachModel) -> DeployedRule:
    """Return a stored version as people responded to it."""
    said = stored.facts.get(REACH)
    people = assumed if said is None else ReachModel(**said)
    rule = stored.model.rule
    assert isinstance(rule, LinearScore)
    return DeployedRule(stored.version, rule, people, stored.facts.get(ALLOWANCE))


def rules_of(
    registry: Registry, facts: Mapping[str, Mapping[str, Any]], assumed: ReachModel
) -> dict[str, DeployedRule | None]:
    """Return the rules that batches responded to; None for one that was not linear."""
    found: dict[str, DeployedRule | None] = {}
    for version in {batch[RULE] for batch in facts.values() if batch[RULE] is not None}:
        stored = registry.load(version)
        linear = isinstance(stored.model.rule, LinearScore)
        found[version] = _deployed(stored, assumed) if linear else None
    return found


def seen_batches(
    every: pd.DataFrame,
    origin: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    rules: Mapping[str, DeployedRule | None],
    set_apart: set[str],
    schema: Schema,
) -> tuple[list[SeenBatch], list[Index]]:
    """Return people by the batch they stood first in, in order of its day, and their rows."""
    y = every[LABEL].to_numpy(np.float64).copy()
    y[every[ROW_ID].isin(set_apart).to_numpy()] = np.nan
    X = np.array(every[list(schema.feature_names)].to_numpy(np.float64), order="C")
    new = {name: batch[NEW] for name, batch in facts.items()}
    fresh: Mask = origin[LABELLED].map(new).to_numpy(bool)
    found: list[SeenBatch] = []
    places: list[Index] = []
    for name in sorted(facts, key=lambda name: facts[name][DAY]):
        version = facts[name][RULE]
        who = np.flatnonzero((origin[SEEN] == name).to_numpy())
        # Whoever responded to a rule that is not linear cannot be set back.
        if len(who) and (version is None or rules[version] is not None):
            rule = None if version is None else rules[version]
            found.append(SeenBatch(name, X[who], y[who], facts[name][DAY], rule, fresh[who]))
            places.append(who)
    return found, places


def still_shown(memory: Memory, facts: Mapping[str, Mapping[str, Any]]) -> Memory:
    """Ask the full limit again where the batch that the last promotion rested on is withdrawn."""
    there = {batch[DAY] for batch in facts.values()}
    return memory if memory.promoted in there else replace(memory, promoted=None)


def corrected_looks(
    batches: Sequence[SeenBatch], memory: Memory, facts: Mapping[str, Mapping[str, Any]]
) -> tuple[list[SeenBatch], Memory]:
    """Leave out looks at what was withdrawn or corrected since, and look at the latter again.

    So everybody counts once, with the label known now. Where that leaves nothing to look at, the
    newest labels are looked at again.
    """
    days = {batch.day for batch in batches}
    looks = [look for look in memory.looks if look.day in days]
    new = [batch for batch in facts.values() if batch[NEW]]
    corrected = {name for batch in new for name in batch.get("corrected", {})}
    looked = {look.day for look in looks}
    again = {batch.name for batch in batches if batch.name in corrected and batch.day in looked}
    labelled = [batch for batch in batches if batch.labelled.any()]
    fresh = any((batch.fresh & batch.labelled).any() for batch in batches)
    if labelled and not again and not fresh and (corrected or not new):
        again = {labelled[-1].name}
    stale = {batch.day for batch in batches if batch.name in again}
    found = [
        replace(batch, fresh=batch.labelled) if batch.name in again else batch for batch in batches
    ]
    return found, replace(memory, looks=tuple(look for look in looks if look.day not in stale))


def _weighted(
    batches: Sequence[SeenBatch], ids: Sequence[pd.Series], weights: Mapping[str, float]
) -> list[SeenBatch]:
    """Let people approved by draw count for those who were not drawn."""
    return [
        replace(batch, weight=np.array([weights.get(row_id, 1.0) for row_id in people]))
        for batch, people in zip(batches, ids, strict=True)
    ]


def acts_of(drift: Mapping[str, Any]) -> DriftActs:
    """Return what a drift report changes about the night."""
    if drift.get("recommendation") is None:
        return DriftActs()
    against = drift.get("against_prediction") or {}
    untouched = [test for test in drift.get("untouched", ()) if test["alarm"]]
    return DriftActs(
        forget="labels" in against.get("alarms", ()),
        reweight=bool(untouched),
        people=drift["recommendation"] == "re-estimate costs",
    )


def memory_of(decisions: Sequence[Decision], champion: str) -> Memory:
    """Return what the last night left; looks count only as long as their champion decides."""
    for decision in reversed(decisions):
        said = decision.facts.get(POLICY, {}).get(MEMORY)
        if said is None:
            continue
        memory = Memory.from_json(said)
        if decision.champion_after == champion:
            return memory
        return Memory((), memory.days, memory.losses, memory.reaches, memory.opened)
    return Memory()


def _recent(
    night: Night, every: pd.DataFrame, places: Sequence[Index], schema: Schema
) -> RecentPeople | None:
    """Return the people with a new label where they stood; None for too few."""
    if night.evidence is None:
        return None
    names, parts, folds = list(schema.feature_names), [], []
    for who, stood, fold in zip(places, night.stood, night.folds, strict=True):
        new = fold >= 0
        table = every.iloc[who[new]].reset_index(drop=True)
        parts.append(table.assign(**dict(zip(names, stood[new].T, strict=True))))
        folds.append(fold[new])
    table = pd.concat(parts, ignore_index=True)
    if len(table) < LEAST_PEOPLE:
        return None
    rules = () if night.proposal == "shift" else night.held_out
    return RecentPeople(table, np.concatenate(folds), rules)


def published(
    followed: Followed,
    champion: PublishedModel,
    schema: Schema,
    assumed: Response,
    train: pd.DataFrame,
    seed: int,
) -> PublishedModel:
    """Return the challenger of a night as it is stored."""
    night = followed.night
    assert night is not None
    X = train[list(schema.feature_names)].to_numpy(np.float64)
    shifted = night.proposal == "shift"
    about = {
        "probability_slope": champion.probability_slope if shifted else 1.0,
        "response": followed.people(assumed).describe(),
        "regulariser": None,
        "training": {"policy": "following", "discount": night.discount, "trend": night.trend},
        "seed": seed,
        "rows": {"train": len(train)},
        "training_range": {"low": X.min(axis=0).tolist(), "high": X.max(axis=0).tolist()},
        "proposal": night.proposal,
    } | schema_facts(schema)
    spread = champion.covariance if shifted else None
    if night.covariance is not None and not shifted:
        spread = RuleCovariance(night.covariance, 0.0, len(train))
    units = champion.standardiser
    return PublishedModel(night.score, units, schema.digest(), about, covariance=spread)
