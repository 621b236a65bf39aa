"""Advice as people read it: original units, one sentence each, one row each.

Everybody's phrase about a feature is put together by string kernels, each distinct value
spelled once, so the words of a million people cost little more than the advice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.data.relations import PathStates
from countermove.data.schema import ROW_ID, ModelFeature, Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError
from countermove.recourse._further import further_keeps
from countermove.recourse._steps import AdvisedChanges, horizons, step_phrases
from countermove.recourse.phrases import (
    Phrases,
    capitalised,
    joined,
    phrases_of,
    value_words,
    whole,
)
from countermove.recourse.recommend import (
    BEYOND_REACH,
    FOUND,
    NOT_FOUND,
    NOT_NEEDED,
    PROVEN_NONE,
    STATUSES,
    Advice,
)
from countermove.scores.base import score_of

if TYPE_CHECKING:
    import pyarrow as pa


NOTHING = 1e-9
"""A change below this, in standardised units, is rounding."""
PLAIN = {NOT_NEEDED: "approved", PROVEN_NONE: "proven_none", NOT_FOUND: "not_found"}
"""Sentences for those without an action."""


@dataclass(frozen=True)
class Telling:
    """What sentences are made of beside the advice: the columns, their units, rule and phrases."""

    schema: Schema
    standardiser: Standardiser
    model: Any = None
    phrase_file: str | None = None
    paths: Sequence[PathStates] = ()

    def array(self, advice: Advice, X: Floats, named: Mask | None = None) -> pa.Array:
        """Return one sentence per person, in original units, as an Arrow array of text."""
        # `named` says which columns are among the reasons: what time does about them is said to
        # those without an action.
        import pyarrow as pa

        phrases = phrases_of(self.phrase_file)
        beyond = advice.status == BEYOND_REACH
        found = beyond | (advice.status == FOUND)
        moves = self.moves(advice, X, found)
        text = step_phrases(moves, phrases)
        if advice.effect is not None:
            effect = self.standardiser.action_to_original(advice.effect[found])
            text = joined(text, _following(moves, effect, self.standardiser.scale, phrases))
        expensive = pa.array(beyond[found].astype(np.int8))
        start = pa.array(["", phrases["too_expensive"]]).take(expensive)
        rests = pa.array(advice.uncertain_weight[found].astype(np.int8))
        doubt = pa.array(["", phrases["uncertain"]]).take(rests)
        said = joined(start, capitalised(text), ".", doubt)
        known = [phrases[PLAIN[status]] if status in PLAIN else "" for status in STATUSES]
        known.append(phrases["none_within"])
        place = np.select([advice.status == status for status in STATUSES], range(len(STATUSES)))
        bound = advice.cost_bound
        within = (advice.status == PROVEN_NONE) & (bound > 0.0) & np.isfinite(bound)
        place[within] = len(STATUSES)
        place[found] = len(known) + np.arange(len(said))
        whole_text = pa.concat_arrays([pa.array(known, pa.string()), said]).take(pa.array(place))
        concerned = np.zeros(X.shape, bool)
        concerned[found] = moves.moved
        if named is not None:
            lost = np.isin(advice.status, (PROVEN_NONE, NOT_FOUND))
            concerned[lost] = named[lost]
        return horizons(whole_text, concerned, self.schema, phrases)

    def moves(self, advice: Advice, X: Floats, found: Mask) -> AdvisedChanges:
        """Return what those with an action change, in original units."""
        units = self.standardiser
        before = units.inverse(X[found])
        action = units.action_to_original(advice.action[found])
        kept = None
        if self.model is not None:
            kept = np.zeros(before.shape, bool)
            slope = _slope(self.model)
            if slope is not None and advice.effect is None:
                kept = further_keeps(self.schema, slope, whole(before + action), action)
        states = tuple(PathStates(p.path, p.columns, p.states[found]) for p in self.paths)
        moved = np.asarray(np.abs(action) > NOTHING * units.scale)
        return AdvisedChanges(self.schema, before, action, moved, kept, states)


def _slope(model: Any) -> Floats | None:
    """Return the weights of an affine score, NaN where it is not affine; None for other scores."""
    score = score_of(model)
    slope = score.slope()
    if slope is None:
        return None
    weights: Floats = slope.detach().numpy().astype(np.float64)
    weights[list(score.fixed)] = np.nan
    return weights


def _following(moves: AdvisedChanges, effect: Floats, scale: Floats, phrases: Phrases) -> pa.Array:
    """Return what else comes about, by the consequences of an action; empty for most."""
    import pyarrow as pa

    columns, before = moves.schema.model_features(), moves.before
    said = [""] * len(before)
    follows = effect - moves.action
    for i, moved in enumerate(np.abs(follows) > NOTHING * scale):
        if moved.any():
            brought = ", ".join(
                phrases["follow"].format(
                    name=moves.name(columns[j], phrases),
                    before=_value(moves, columns[j], before[i, j], phrases),
                    after=_value(moves, columns[j], before[i, j] + effect[i, j], phrases),
                )
                for j in np.flatnonzero(moved).tolist()
            )
            said[i] = phrases["follows"].replace("{changes}", brought)
    return pa.array(said, pa.string())


def _value(moves: AdvisedChanges, column: ModelFeature, value: float, phrases: Phrases) -> str:
    if column.group is None:
        return value_words(moves.feature(column), value, phrases)
    return phrases.number(f"{value:.4g}")


CHANGE = "change:"
"""Prefix of the columns that hold a feature's change in original units."""


def sentences(
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    *,
    model: Any = None,
    phrase_file: str | None = None,
    paths: Sequence[PathStates] = (),
) -> list[str]:
    """Return one sentence per person, in original units.

    Parameters
    ----------
    advice
        What `recommend` returned for these people.
    X
        The people, shape (n, d), standardised units.
    schema
        What the columns mean, and how people are told of them.
    standardiser
        The units of ``X``.
    model
        The rule the advice is for: amounts then read "at least" or "at most" where going
        further is proven to keep approval, "exactly" where not. Without it neither is said.
    phrase_file
        The path of a file of phrases; None: those that come with the package.
    paths
        Where these people's histories can lead, original units (`countermove.data.path_states`):
        a state of a path is then said as the time until it.
    """
    words: list[str] = (
        Telling(schema, standardiser, model, phrase_file, paths).array(advice, X).to_pylist()
    )
    return words


def advice_table(
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    ids: Sequence[str] | NDArray[np.str_] | None = None,
    *,
    model: Any = None,
    phrase_file: str | None = None,
    paths: Sequence[PathStates] = (),
    named: Mask | None = None,
) -> pd.DataFrame:
    """Return one row per person, ready for parquet or CSV.

    Columns: ``row_id``, ``decision`` (+1 or -1, as they stand), ``probability``,
    ``status``, ``probability_after``, ``cost``, ``survival``, ``lasting`` and
    ``uncertain_weight`` (see `Advice`), one ``change:<column>`` in original units for every
    column the schema lets people change (missing where no action is known), ``alternative_1``
    and ``alternative_2`` where the advice has some (other ways in words, missing where there is
    none within the ceiling), and ``words``.

    Parameters
    ----------
    advice, X, schema, standardiser, model, phrase_file, paths
        As in `sentences`.
    ids
        Row ids, shape (n,); ``r0, r1, …`` by default.
    named
        Which columns are among a person's reasons, shape (n, d): those without an action are
        told what time does about them.
    """
    names = [f"r{i}" for i in range(len(X))] if ids is None else [str(name) for name in ids]
    if len(names) != len(advice.status):
        raise DataError(f"{len(names)} ids for the advice of {len(advice.status)} people")
    rounding = np.abs(advice.action) <= NOTHING
    action = standardiser.action_to_original(np.where(rounding, 0.0, advice.action))
    changes = {}
    for j, column in enumerate(schema.model_features()):
        if column.change == "immutable":
            continue
        changes[f"{CHANGE}{column.name}"] = _whole(action[:, j], column)
    telling = Telling(schema, standardiser, model, phrase_file, paths)
    others = {
        f"alternative_{k + 1}": pd.Series(
            telling.array(way, X).to_pandas().where(way.status == FOUND, None), dtype="str"
        )
        for k, way in enumerate(advice.alternatives[:2])
    }
    words = telling.array(advice, X, named)
    return pd.DataFrame(
        {
            ROW_ID: names,
            "decision": np.where(advice.status == NOT_NEEDED, 1, -1),
            "probability": advice.probability_before,
            "status": advice.status.astype(object),
            "probability_after": advice.probability_after,
            "cost": advice.cost,
            "survival": advice.survival,
            "lasting": advice.lasting,
            "uncertain_weight": advice.uncertain_weight,
            **changes,
            **others,
            "words": pd.Series(words.to_pandas(), dtype="str"),
        }
    )


def _whole(values: Floats, column: ModelFeature) -> Floats:
    """Return whole changes without the rounding error of the standardisation."""
    return values if column.kind == "numeric" else whole(values)
