"""Drift: whether the new batches are what the deployed rule lets us expect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import BlockedError, NotEnoughRowsError
from countermove.production.drift import DriftTerms, drift_of_tables
from countermove.production.registry import Registry, StoredVersion
from countermove.production.retraining.batches import RULE, new_rows
from countermove.production.retraining.nightly import people_at_promotion
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
        return {"recommendation": None, "reason": "there is no deployed rule to compare with"}
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
