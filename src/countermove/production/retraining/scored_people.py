"""What `score` recorded about people whose labels have come since.

A challenger beside the champion is compared with it, and labels of people approved by draw show
what labels of the approved only cannot: how those fare whom the rule refuses.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from countermove.certificates.intervals import share_interval
from countermove.data.partitions import Partitions
from countermove.data.rows import rows_of
from countermove.data.schema import LABEL, ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import ModelFileError
from countermove.production.registry import Registry, StoredVersion
from countermove.production.retraining.batches import RULE, new_rows
from countermove.production.retraining.forecast import ON_BOUNDARY
from countermove.production.scoring.exploring import EXPLORED, PROPENSITY
from countermove.production.scoring.records import COMPARED, BatchFolder
from countermove.production.scoring.task import (
    CHALLENGER,
    CHALLENGER_DECISION,
    CHAMPION_DECISION,
    VERSION,
)
from countermove.scores.base import values
from countermove.transfer.optimal import difference

logger = logging.getLogger(__name__)
WEIGHT = "weight"
DECISION, CHANCE, BATCH = "decision", "probability", "scored_batch"
OPTIONAL = (CHAMPION_DECISION, CHALLENGER_DECISION, CHALLENGER, EXPLORED, PROPENSITY)
COLUMNS = [ROW_ID, DECISION, CHANCE, VERSION, *OPTIONAL, BATCH, "at"]
LEVEL = 0.05
"""Probability that an interval is wrong."""
FEW = 0.01
"""Labels of the approved only: no more than this share of them is of refused people."""


@dataclass(frozen=True)
class ScoredBatches:
    """Manifests of all scored batches, what they say about labelled people, and what is damaged."""

    manifests: list[dict[str, Any]]
    people: pd.DataFrame  # by id, of the last time they were scored
    left_out: list[str]  # a sentence each


def scored_batches(folder: Path, rows: pd.DataFrame) -> ScoredBatches:
    """Read what was recorded about labelled people; a damaged batch is left out and said so."""
    known = set(rows[ROW_ID]) if len(rows) else set()
    manifests, found, left_out = [], [pd.DataFrame(columns=COLUMNS)], []
    for path in sorted(folder.glob("*")) if folder.is_dir() else ():
        if path.name.startswith(".") or not path.is_dir():
            continue
        try:
            manifest = BatchFolder(folder, path.name).manifest()
            if manifest is not None and manifest.get("parts"):
                found += _recorded(path, manifest, known)
                manifests.append(manifest)
        except (ModelFileError, OSError, ValueError, KeyError, TypeError) as error:
            left_out.append(
                f"scored batch {path.name!r} is damaged and left out of the comparison: {error}"
            )
            logger.warning(left_out[-1])
    return ScoredBatches(manifests, _last_scored(found), left_out)


def _recorded(path: Path, manifest: Mapping[str, Any], known: set[str]) -> list[pd.DataFrame]:
    """Return what one scored batch says about labelled people."""
    import pyarrow.parquet as pq

    files = tuple(path / part["file"] for part in manifest["parts"])
    there = set(pq.read_schema(files[0]).names)
    wanted = [ROW_ID, DECISION, CHANCE, VERSION, *(c for c in OPTIONAL if c in there)]
    parts = [part[part[ROW_ID].isin(known)] for part in Partitions(files).columns(wanted)]
    about = {BATCH: manifest["batch"], "at": manifest["finished_at"]}
    return [part.assign(**about) for part in parts if len(part)]


def _last_scored(found: list[pd.DataFrame]) -> pd.DataFrame:
    if len(found) == 1:
        return found[0].set_index(ROW_ID)
    every = pd.concat(found[1:], ignore_index=True).reindex(columns=COLUMNS)
    return (
        every.sort_values("at", kind="stable")
        .drop_duplicates(ROW_ID, keep="last")
        .set_index(ROW_ID)
    )


def compare_scored(
    registry: Registry,
    folder: Path,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Compare the champion with challengers beside it; say what labels were of the refused.

    The second result has the ids of people approved by draw and the inverse of their propensity,
    where labels are of the approved only.
    """
    champion, scored = registry.champion(), scored_batches(folder, rows)
    labels = rows.set_index(ROW_ID)[LABEL] if len(rows) else pd.Series(dtype=np.float64)
    said: dict[str, Any] = {"challengers": [], "labels": None, "exploration": None}
    said["left_out"] = scored.left_out
    weights = pd.DataFrame({ROW_ID: pd.Series(dtype="str"), WEIGHT: pd.Series(dtype=np.float64)})
    if champion is None:
        return said, weights
    joined = scored.people.assign(label=labels.reindex(scored.people.index))
    said["challengers"] = _challengers(scored.manifests, champion.version, joined)
    said["labels"] = _labels_seen(champion, rows, facts, schema, standardiser, joined)
    drawn = joined[joined[EXPLORED].eq(True)]
    if len(drawn):
        said["exploration"] = _explored(drawn)
    if said["labels"] is not None and said["labels"]["approved_only"]:
        chances = drawn[PROPENSITY].astype(np.float64)
        weights = pd.DataFrame({ROW_ID: drawn.index, WEIGHT: 1.0 / chances.to_numpy()})
    return said, weights


def _challengers(
    manifests: Sequence[Mapping[str, Any]], champion: str, joined: pd.DataFrame
) -> list[dict[str, Any]]:
    """Return every challenger that was beside the champion: counts, agreement, differences."""
    counts: dict[str, Counter[str]] = {}
    batches: dict[str, list[str]] = {}
    for manifest in manifests:
        beside = manifest.get(CHALLENGER)
        if beside is None or manifest["version"] != champion:
            continue
        name = str(beside["version"])
        counts.setdefault(name, Counter()).update(manifest[COMPARED])
        batches.setdefault(name, []).append(manifest["batch"])
    return [
        {"champion": champion, CHALLENGER: name, "batches": batches[name]}
        | _agreement(counts[name])
        | {"labelled": _paired(joined[joined[BATCH].isin(batches[name])])}
        for name in sorted(counts)
    ]


def _agreement(counts: Mapping[str, int]) -> dict[str, Any]:
    four = ("both_approve", "both_refuse", "only_champion_approves", "only_challenger_approves")
    people, same = sum(counts[name] for name in four), counts[four[0]] + counts[four[1]]
    return {
        "people": people,
        **{name: counts[name] for name in four},
        "agreement": _share(same, people),
    }


def _paired(people: pd.DataFrame) -> dict[str, Any]:
    """Return by how much more often the challenger is right than the champion, same people."""
    n = len(people)
    if n < 2:
        return {"value": None, "low": None, "high": None, "n": n}
    good = people["label"].to_numpy(np.float64) > 0.0
    champion, challenger = (
        (people[column].to_numpy(np.float64) > 0.0) != good
        for column in (CHAMPION_DECISION, CHALLENGER_DECISION)
    )
    found = difference(champion, challenger, LEVEL)
    return {"value": found.value, "low": found.low, "high": found.high, "n": n}


def _share(count: int, n: int) -> dict[str, Any]:
    if not n:
        return {"value": None, "low": None, "high": None, "n": 0}
    low, high = share_interval(count, n, LEVEL)
    return {"value": count / n, "low": float(low), "high": float(high), "n": n}


def _labels_seen(
    champion: StoredVersion,
    rows: pd.DataFrame,
    facts: Mapping[str, Mapping[str, Any]],
    schema: Schema,
    standardiser: Standardiser,
    joined: pd.DataFrame,
) -> dict[str, Any] | None:
    """Count new labels, and those of refused people: by the record, or else by the champion."""
    responded = {name: batch for name, batch in facts.items() if batch[RULE] is not None}
    observed, _ = new_rows(rows, responded, schema, standardiser)
    if not len(observed):
        return None
    refused = values(champion.model.rule, rows_of(observed, schema).X) < -ON_BOUNDARY
    recorded = observed[ROW_ID].map(joined[DECISION]).to_numpy(np.float64)
    refused = np.where(np.isfinite(recorded), recorded < 0.0, refused)
    drawn = observed[ROW_ID].map(joined[EXPLORED].eq(True)).eq(True)
    n, count = len(observed), int(refused.sum())
    return {
        "people": n,
        "refused": count,
        EXPLORED: int(drawn.sum()),
        "approved_only": count <= FEW * n,
    }


def _explored(drawn: pd.DataFrame) -> dict[str, Any]:
    """Return how people approved by draw fared, against what was expected."""
    good = int((drawn["label"] > 0.0).sum())
    return {
        "favourable": _share(good, len(drawn)),
        "expected_favourable": float(drawn[CHANCE].mean()),
    }
