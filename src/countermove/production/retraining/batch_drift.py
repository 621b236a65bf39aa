"""Drift: whether the new batches are what the deployed rule lets us expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from countermove.data.rows import rows_of, standardised_table
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import BlockedError, NotEnoughRowsError
from countermove.production.drift import DriftTerms, drift_of_tables
from countermove.production.registry import Decision, Registry, StoredVersion
from countermove.production.retraining.batches import LABELLED, NEW, RULE, new_rows
from countermove.production.retraining.follower import Follower
from countermove.production.retraining.following import Memory
from countermove.production.retraining.nightly import (
    MEMORY,
    POLICY,
    movers_of,
    origin_of,
    rules_of,
    seen_batches,
)
from countermove.production.retraining.policy import FollowingPolicy
from countermove.production.retraining.reach import LEAST_PEOPLE
from countermove.response import NoResponse, Response
from countermove.response.response_set import members_of

INVESTIGATE = "investigate"


def drift_of_batches(
    registry: Registry,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    untrained: Sequence[pd.DataFrame],
    schema: Schema,
    standardiser: Standardiser,
    people: Callable[[StoredVersion], Response],
    assumed: Response,
    terms: DriftTerms,
    seed: int,
    stop: bool = False,
) -> dict[str, Any]:
    """Return the drift report of the new batches as JSON; ``reason`` says why there is none."""
    champion = registry.champion()
    observed, _ = new_rows(rows, facts, schema, standardiser)
    if champion is None or not len(observed):
        lacking = "deployed rule to compare with" if champion is None else "new labelled person"
        return {"recommendation": None, "reason": f"there is no {lacking}"}
    # People who were seen before they could respond are compared with the reference as it is.
    responded = any(batch["new"] and batch[RULE] is not None for batch in facts.values())
    response = members_of(people(champion))[0] if responded else NoResponse()
    # The reference: the people whose labels made the champion, set back to where they stood. For
    # the first champion, rows of the base that no rule was trained on.
    base = pd.concat(list(untrained), ignore_index=True)
    about = (registry, base, rows, facts, schema, standardiser, assumed)
    recent = people_at_promotion(*about) if responded else None
    reference = base if recent is None else recent
    try:
        found = drift_of_tables(reference, observed, schema, champion.model, response, terms, seed)
    except NotEnoughRowsError as error:
        return {"recommendation": None, "reason": str(error)}
    if stop and found.recommendation == INVESTIGATE:
        raise BlockedError(
            f"the new batches are not what the rule lets us expect: {found.words} Look into it; "
            "retrain.stop_on_investigate: false trains all the same"
        )
    return found.to_json()


def people_at_promotion(
    registry: Registry,
    untrained: pd.DataFrame,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
    assumed: Response,
) -> pd.DataFrame | None:
    """Return the people whose labels made the champion, where they stood; None: the base table's.

    The world that the champion was made for is theirs, so drift since then is drift from them.
    """
    known, promoted = movers_of(assumed), _promotion(registry)
    if known is None or promoted is None or not len(rows):
        return None
    names = [name for name, batch in promoted.facts["batches"].items() if batch[NEW]]
    theirs = rows[origin_of(rows)[LABELLED].isin(names).to_numpy()].reset_index(drop=True)
    if len(theirs) < LEAST_PEOPLE:
        return None
    every, origin = standardised_table(theirs, schema, standardiser), origin_of(theirs)
    rules = rules_of(registry, facts, known[1])
    batches, places = seen_batches(every, origin, facts, rules, set(), schema)
    base = rows_of(untrained, schema)
    follower = Follower(base.X, base.y, known[0], FollowingPolicy())
    memory = Memory.from_json(promoted.facts[POLICY][MEMORY])
    X = np.array(every[list(schema.feature_names)].to_numpy(np.float64), order="C")
    for batch, who in zip(batches, places, strict=True):
        X[who] = follower.where_they_stood(batch, memory)
    return every.assign(**dict(zip(schema.feature_names, X.T, strict=True)))


def _promotion(registry: Registry) -> Decision | None:
    """Return the decision that made the champion's rule; None if another policy made it."""
    pointer = registry.pointer()
    version = None if pointer is None else pointer.version
    for decision in reversed(registry.decisions()):
        policy = decision.facts.get(POLICY, {})
        if decision.champion_after != version or not decision.changes_champion:
            continue
        if policy.get("kind") != "following":
            return None
        if policy["proposal"] != "shift":
            return decision
        version = decision.champion_before  # The same rule at another threshold.
    return None
