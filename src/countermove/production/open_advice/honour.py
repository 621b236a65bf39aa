"""Whoever has done what was advised is approved until the advice expires.

Fulfilled means: every advised column has come, in the advised direction, to the advised value, and
the version that gave the advice approves the person as they are now. So other columns may have
changed, as long as that rule would not refuse for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.partitions import Partitions
from countermove.data.schema import ROW_ID, Schema
from countermove.data.standardise import Standardiser
from countermove.production.open_advice.register import AdviceRegister, Advised, AdvisedMove
from countermove.production.registry import Registry
from countermove.recourse.advise import CODES
from countermove.recourse.recommend import FOUND, NOT_NEEDED
from countermove.recourse.words import CHANGE
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel, model_digest

HONOURED = "honoured"
"""Column of decisions: the version whose advice was followed, where that is why of an approval."""
REFUSED_ONLY = ("reasons", "alternative_1", "alternative_2")
"""Columns of advice, where it has them, that are missing for whoever is approved."""
SMALLEST = 1e-9
"""A relative change below this is rounding and was not advised."""


@dataclass(frozen=True)
class GivenAdvice:
    """One piece of open advice: the version and day it comes from, and what it asks for."""

    version: str
    day: str
    advised: Advised

    def reached(self, columns: Mapping[str, float]) -> bool:
        """Return whether every advised column has reached its value."""
        return all(
            column in columns and move.reached(columns[column])
            for column, move in self.advised.items()
        )


@dataclass(frozen=True)
class Honoured:
    """The open advice of the people of a batch, and the versions that gave it."""

    people: Mapping[str, tuple[GivenAdvice, ...]] = field(default_factory=dict)
    models: Mapping[str, PublishedModel] = field(default_factory=dict)

    @classmethod
    def of(cls, register: AdviceRegister, registry: Registry, admitted: Partitions) -> Honoured:
        """Return what is open for the people of admitted parts."""
        if not register.open():
            return cls()
        found = register.of_people(_ids(admitted))
        people = {
            row_id: tuple(
                GivenAdvice(batch.version, batch.given_at[:10], batch.people[person])
                for batch, person in own
            )
            for row_id, own in found.items()
        }
        versions = {given.version for own in people.values() for given in own}
        known = set(registry.versions())
        models = {name: registry.load(name).model for name in sorted(versions & known)}
        return cls(people, models)

    def fulfilled(self, row_id: str, x: Floats, names: tuple[str, ...]) -> GivenAdvice | None:
        """Return the advice that a person, in original units, has followed; None without one."""
        columns = dict(zip(names, x.tolist(), strict=True))
        for given in self.people.get(row_id, ()):
            model = self.models.get(given.version)
            if model is None or not given.reached(columns):
                continue
            if values(model.rule, model.standardiser.transform(x[None]))[0] >= 0.0:
                return given
        return None

    def applied(
        self, table: pd.DataFrame, X: Floats, names: tuple[str, ...], words: str
    ) -> pd.DataFrame:
        """Return decisions about people (``X`` in original units), who followed advice approved."""
        asks = table[ROW_ID].isin(list(self.people)) & (table["decision"] < 0)
        judged = {
            row: self.fulfilled(str(table[ROW_ID].iloc[row]), X[row], names)
            for row in np.flatnonzero(asks.to_numpy()).tolist()
        }
        kept = {row: given for row, given in judged.items() if given is not None}
        table = table.assign(**{HONOURED: pd.Series([None] * len(table), dtype="str")})
        said = [words.format(version=g.version, day=g.day) for g in kept.values()]
        table = approved_instead(table, list(kept), said)
        if kept:
            table.loc[list(kept), HONOURED] = [given.version for given in kept.values()]
        return table

    def describe(self) -> dict[str, Any]:
        """Return what decisions depend on, JSON-ready."""
        people = {
            row_id: [[given.version, given.day, dict(given.advised)] for given in own]
            for row_id, own in sorted(self.people.items())
        }
        return {"people": people, "models": {k: model_digest(m) for k, m in self.models.items()}}


def approved_instead(table: pd.DataFrame, rows: list[int], words: list[str]) -> pd.DataFrame:
    """Return decisions in which refused people, at some places, are approved; in new words."""
    said: dict[str, Any] = {
        "decision": 1,
        "status": NOT_NEEDED,
        "probability_after": table["probability"].iloc[rows].to_numpy(),
        "cost": 0.0,
        "survival": np.nan,
        "lasting": False,
        "uncertain_weight": False,
        "words": words,
    }
    said |= {name: 0.0 for name in table.columns if name.startswith(CHANGE)}
    said |= {name: None for name in table.columns if name in REFUSED_ONLY}
    said |= {name: "" for name in table.columns if name == "supply"}
    for name, values_ in said.items() if rows else ():
        table.loc[rows, name] = values_
    if CODES in table:
        chosen = set(rows)
        codes = [[] if row in chosen else own for row, own in enumerate(table[CODES])]
        table[CODES] = pd.Series(codes, table.index, dtype=object)
    return table


def advised_people(
    scored: Partitions, admitted: Partitions, schema: Schema, units: Standardiser
) -> dict[str, Advised]:
    """Return what a scored batch was advised, by id: columns, directions and values."""
    changes = [c.name for c in schema.model_features() if c.change != "immutable"]
    before = pd.concat([part[[ROW_ID, *changes]] for part in admitted], ignore_index=True)
    before = before.set_index(ROW_ID)
    if units.fill is not None:  # whoever lacks a cell was advised from what stands in
        before = before.fillna(pd.Series(units.fill, units.names))
    found: dict[str, dict[str, AdvisedMove]] = {}
    for part in scored:
        given = part[part["status"] == FOUND]
        ids, start = given[ROW_ID].astype(str).to_numpy(), before.loc[given[ROW_ID]]
        for name in changes:
            change, at = given[f"{CHANGE}{name}"].to_numpy(np.float64), start[name].to_numpy()
            moved = np.abs(change) > SMALLEST * (1.0 + np.abs(at))
            ways, ends = np.sign(change), at + change
            for row in np.flatnonzero(moved).tolist():
                move = AdvisedMove(float(ways[row]), float(ends[row]))
                found.setdefault(ids[row], {})[name] = move
    return dict(found)


def _ids(admitted: Partitions) -> Iterator[str]:
    for part in admitted:
        yield from part[ROW_ID].astype(str)
