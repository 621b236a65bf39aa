"""Exploration: a few refused people are approved by draw, so that their labels come in.

Labels of the approved only never say whom the rule refuses wrongly. Whoever is approved by draw is
stored with the probability of it, by which later runs may weight the label.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from countermove.data.parsing import texts
from countermove.data.partitions import Partitions
from countermove.data.schema import ROW_ID, Schema
from countermove.data.storage import canonical_digest
from countermove.execution import PartTask
from countermove.production.draws import ExplorationTerms, PersonDraws
from countermove.production.open_advice.honour import approved_instead

if TYPE_CHECKING:
    import pyarrow as pa

EXPLORED, PROPENSITY, EXPLORATION_DRAW = "explored", "propensity", "exploration_draw"


@dataclass(frozen=True)
class Exploration:
    """How refused people are approved by draw."""

    terms: ExplorationTerms
    draws: PersonDraws

    def planned(self, scored: Partitions) -> ExplorationPlan:
        """Return whom of a scored batch to approve: whose draw is below a limit."""
        refused = [
            part[ROW_ID][part["decision"] < 0] for part in scored.columns([ROW_ID, "decision"])
        ]
        draws = np.sort(self.draws.of(pd.concat(refused).astype(str)))
        share, most = self.terms.share, self.terms.most
        among = draws[draws < share]
        limit = share if len(among) <= most else float(among[most])
        chance = approval_chance(len(draws), share, most)
        return ExplorationPlan(self, len(draws), min(len(among), most), limit, chance)


@dataclass(frozen=True)
class ExplorationPlan:
    """Whom of a batch to approve by draw.

    ``limit``: whose draw is below it. ``propensity``: the probability of that, the same for every
    refused person of the batch.
    """

    exploration: Exploration
    refused: int
    approved: int
    limit: float
    propensity: float

    def facts(self) -> dict[str, Any]:
        """Return the terms, the counts and the propensity, JSON-ready."""
        said = {"refused": self.refused, "approved": self.approved, PROPENSITY: self.propensity}
        return asdict(self.exploration.terms) | said


def approval_chance(refused: int, share: float, most: int) -> float:
    r"""Return everybody's probability to be approved by draw.

    :math:`\mathbb E \min(K, m) / n` with :math:`K \sim \mathrm{Bin}(n, \text{share})`: of more than
    ``most`` people whose draw is below the share, those with the smallest draws are approved.
    """
    from scipy.stats import binom

    if not refused:
        return 0.0
    at_least = binom.sf(np.arange(min(most, refused)), refused, share)
    return float(at_least.sum() / refused)


class ExploreTask(PartTask):
    """Approve those refused people of a scored part whom the draw chooses."""

    def __init__(self, plan: ExplorationPlan, words: str) -> None:
        self.plan, self.words = plan, words
        self.columns = None

    def __call__(self, rows: pa.Table, first_row: int) -> pa.Table:
        """Return the part with the draw, who was approved by it, and everybody's propensity."""
        import pyarrow as pa

        table = rows.to_pandas()
        refused = (table["decision"] < 0).to_numpy(np.bool_)
        draws = np.full(len(table), np.nan)
        draws[refused] = self.plan.exploration.draws.of(table[ROW_ID][refused].astype(str))
        chosen = refused & (draws < self.plan.limit)
        places = np.flatnonzero(chosen).tolist()
        table = approved_instead(table, places, [self.words] * len(places))
        found = pa.Table.from_pandas(table, schema=rows.schema, preserve_index=False)
        said = {
            EXPLORED: chosen,
            PROPENSITY: np.where(refused, self.plan.propensity, 1.0),
            EXPLORATION_DRAW: draws,
        }
        for name, column in said.items():
            found = found.append_column(name, pa.array(column))
        return found.replace_schema_metadata(None)

    def fingerprint(self) -> str:
        """Return a digest of the plan and of the key's name."""
        draws = self.plan.exploration.draws.fingerprint()
        return canonical_digest({**self.plan.facts(), "draws": draws, "words": self.words})


def exploration_price(scored: Partitions, thresholds: dict[str, float]) -> dict[str, float | None]:
    """Return what exploration is expected to cost, by the probabilities of the rules.

    ``expected_favourable`` of those approved by draw, against the ``threshold`` the rule asks for;
    ``price_points``: by how many points the favourable share of all approved people falls.
    """
    columns = ["decision", "probability", "version", EXPLORED]
    people = pd.concat(list(scored.columns(columns)), ignore_index=True)
    drawn, ruled = people[people[EXPLORED]], people[~people[EXPLORED] & (people["decision"] > 0)]
    asked = drawn["version"].map(thresholds)
    both = pd.concat([drawn["probability"], ruled["probability"]])
    before, after = _mean(ruled["probability"]), _mean(both)
    lost = None if before is None or after is None else 100.0 * (before - after)
    return {
        "expected_favourable": _mean(drawn["probability"]),
        "threshold": _mean(asked),
        "expected_favourable_by_rule": before,
        "price_points": lost,
    }


def explored_by_group(
    scored: Partitions, applicants: Partitions, schema: Schema
) -> dict[str, dict[str, dict[str, int]]]:
    """Count who was refused and who approved by draw in each group that the file names."""
    columns = [ROW_ID, EXPLORED, PROPENSITY]
    people = pd.concat(list(scored.columns(columns)), ignore_index=True)
    people = people[people[PROPENSITY] < 1.0]
    drawn = set(people[ROW_ID][people[EXPLORED]].astype(str))
    refused, counts = set(people[ROW_ID].astype(str)), Counter[tuple[str, str, str]]()
    for _, part in applicants.raw():
        frame = part.frame
        named = [name for name in schema.sensitive if name in frame and schema.id in frame]
        ids = texts(frame[schema.id]) if named else pd.Series(dtype="str")
        for name in named:
            for row_id, group in zip(ids, frame[name].astype(str), strict=True):
                if row_id in refused:
                    counts[name, group, "refused"] += 1
                    counts[name, group, "approved_by_draw"] += row_id in drawn
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (name, group, kind), count in sorted(counts.items()):
        found.setdefault(name, {}).setdefault(group, {})[kind] = count
    return found


def _mean(values: pd.Series) -> float | None:
    return float(values.mean()) if len(values) else None
