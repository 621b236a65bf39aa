"""Why people were refused: what counts against each of them, compared with the approved.

One definition for every model, so that reasons mean the same whatever was trained, and the
reasons are those of the decision itself: what cannot be changed is among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats, Index, Mask
from countermove.data.missing import fill_columns
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.people import ActionSet
from countermove.recourse._steps import display_name, present_values
from countermove.recourse.phrases import Phrases, chosen, filled, listed, spread
from countermove.recourse.problem import ApprovalThreshold, checked_people, probability_slope
from countermove.recourse.recommend import PROVEN_NONE, Advice
from countermove.scores import Score
from countermove.scores.base import score_of, values
from countermove.training.units import standardised_model

if TYPE_CHECKING:
    import pyarrow as pa


SAMPLE = 100
"""Approved people that a score which is not affine is compared with; the error of their mean is a
tenth of their spread."""
MOST = 4
"""Reasons given at most."""
ROUNDING = 1e-9
"""A loss of score below this share of all losses is rounding."""


@dataclass(frozen=True, eq=False)
class ApprovedPeople:
    """Whom refused people are compared with: approved training people, standardised units.

    Parameters
    ----------
    count
        How many there are.
    mean
        Their mean, shape (d,).
    sample
        At most 100 of them, in the order of a hash of their ids, shape (m, d); none for an
        affine score, which needs the mean alone.
    """

    count: int
    mean: Floats
    sample: Floats

    def to_json(self) -> dict[str, Any]:
        """Return what is stored with a model."""
        rounded = [[float(f"{value:.6g}") for value in row] for row in self.sample.tolist()]
        return {"count": self.count, "mean": self.mean.tolist(), "sample": rounded}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ApprovedPeople:
        """Return what :meth:`to_json` wrote."""
        mean = np.asarray(said["mean"], np.float64)
        sample = np.asarray(said["sample"], np.float64).reshape(-1, len(mean))
        return cls(int(said["count"]), mean, sample)


@dataclass(frozen=True, eq=False)
class Reasons:
    """What counts against each refused person, most first.

    Parameters
    ----------
    columns
        Features, a one-hot feature or group as one, in the schema's order.
    places
        The model columns of each.
    contribution
        Score by which each feature sets a person apart from the approved, shape (n, k);
        negative counts against them. Zero for the approved.
    order
        Positions in ``columns``, the greatest loss first, shape (n, 4); -1 where there is none.
    """

    columns: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    contribution: Floats
    order: NDArray[np.intp]

    def codes(self) -> list[list[str]]:
        """Return each person's reasons as columns, most important first."""
        return [[self.columns[k] for k in row if k >= 0] for row in self.order.tolist()]

    def named(self, n_features: int) -> Mask:
        """Return which model columns are among each person's reasons, shape (n, d)."""
        mask: Mask = np.zeros((len(self.order), n_features), bool)
        for k, places in enumerate(self.places):
            mask[np.ix_((self.order == k).any(axis=1), places)] = True
        return mask

    def counts(self) -> dict[str, int]:
        """Return for how many people each feature is a reason, most first."""
        found = {c: int((self.order == k).any(axis=1).sum()) for k, c in enumerate(self.columns)}
        ranked = sorted(found.items(), key=lambda item: -item[1])
        return {column: count for column, count in ranked if count}

    def sensitive(self, schema: Schema) -> dict[str, int]:
        """Return the declared sensitive columns among the reasons, and for how many people."""
        return {c: count for c, count in self.counts().items() if c in schema.sensitive}


def approved_people(
    model: Any, X: Any, ids: Sequence[str] | None = None, threshold: float = 0.5
) -> ApprovedPeople:
    """Return the people whom a rule approves, to compare the refused with.

    Parameters
    ----------
    model
        A score, a fitted classifier or a stored model (without its threshold).
    X
        Training people, shape (n, d), as the model reads them.
    ids
        Their ids, which decide who is in the sample; their positions by default.
    threshold
        The probability that is approved.

    Raises
    ------
    NotEnoughRowsError
        If nobody is approved.
    """
    model, units = standardised_model(model)
    score = score_of(model)
    rows = units.rows(checked_people(X, score))
    cut = ApprovalThreshold(threshold, probability_slope(model))
    approved = np.flatnonzero(cut.approved(values(score, rows)))
    if not approved.size:
        raise NotEnoughRowsError(
            f"none of {len(rows)} people is approved at the threshold {threshold:.4g}; reasons "
            "compare the refused with approved people"
        )
    if _weights(score) is not None:
        sample = np.empty((0, rows.shape[1]))
    else:
        words = np.array([str(i) for i in (range(len(rows)) if ids is None else ids)], object)
        order = np.argsort(pd.util.hash_array(words, categorize=False)[approved], kind="stable")
        sample = rows[approved[order[:SAMPLE]]]
    return ApprovedPeople(len(approved), rows[approved].mean(axis=0), sample)


def reason_codes(
    model: Any, X: Any, approved: ApprovedPeople, schema: Schema, threshold: float = 0.5
) -> Reasons:
    r"""Return what counts against each refused person, at most four features each.

    The contribution of feature :math:`j` is what the score of a person loses by it against
    the approved people :math:`a`,

    .. math:: \frac1m\sum_a \bigl[s(x) - s(x_{-j}, a_j)\bigr],

    which is :math:`w_j(x_j - \bar a_j)` for an affine score. One-hot columns count together.
    Features with a negative contribution are reasons, whether people can change them or not.

    Parameters
    ----------
    model
        A score, a fitted classifier or a stored model (without its threshold).
    X
        People, shape (n, d), as the model reads them.
    approved
        Whom to compare with, see `approved_people`.
    schema
        What the columns mean.
    threshold
        The probability that is approved.
    """
    model, units = standardised_model(model)
    score = score_of(model)
    rows = units.rows(checked_people(X, score))
    if len(approved.mean) != rows.shape[1]:
        raise DataError(
            f"people have {rows.shape[1]} features, the approved ones {len(approved.mean)}"
        )
    columns, places = _features(schema)
    cut = ApprovalThreshold(threshold, probability_slope(model))
    now = values(score, rows)
    refused = np.flatnonzero(~cut.approved(now))
    contribution = np.zeros((len(rows), len(columns)))
    contribution[refused] = _contributions(score, rows[refused], now[refused], approved, places)
    return Reasons(columns, places, contribution, _ranked(contribution))


def _features(schema: Schema) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Return the features that count as one, each with its model columns."""
    found: dict[str, list[int]] = {}
    for j, column in enumerate(schema.model_features()):
        found.setdefault(column.group or column.source, []).append(j)
    return tuple(found), tuple(map(tuple, found.values()))


def _weights(score: Score) -> Floats | None:
    """Return the weights of a score that is affine in every feature, else None."""
    slope = score.slope()
    if slope is None or list(score.fixed):
        return None
    weights: Floats = slope.detach().numpy().astype(np.float64)
    return weights


def _contributions(
    score: Score,
    rows: Floats,
    now: Floats,
    approved: ApprovedPeople,
    places: tuple[tuple[int, ...], ...],
) -> Floats:
    """Return what each feature adds to the score of people against the approved, shape (n, k)."""
    weights = _weights(score)
    if weights is not None:
        each = weights * (rows - approved.mean)
        return np.column_stack([each[:, own].sum(axis=1) for own in map(list, places)])
    if not len(approved.sample):
        raise ParameterError("this score is not affine: reasons need a sample of approved people")
    found = np.empty((len(rows), len(places)))
    for k, own in enumerate(map(list, places)):
        total, replaced = np.zeros(len(rows)), rows.copy()
        held, counts = np.unique(approved.sample[:, own], axis=0, return_counts=True)
        for value, count in zip(held, counts, strict=True):
            replaced[:, own] = value
            total += count * values(score, replaced)
        found[:, k] = now - total / len(approved.sample)
    return found


def _ranked(contribution: Floats) -> NDArray[np.intp]:
    """Return the features that count against each person, the greatest loss first."""
    lost = np.maximum(-contribution, 0.0)
    least = ROUNDING * lost.sum(axis=1, keepdims=True)
    order = np.argsort(-lost, axis=1, kind="stable")[:, :MOST]
    counts = np.take_along_axis(lost, order, axis=1) > least
    return np.where(counts, order, -1)


ROOM = 1e-9
"""Less room than this, in standardised units, is none."""
WHYS = (
    "reason", "cannot_change", "cannot_rise", "cannot_fall", "not_enough", "others_cheaper",
    "not_needed",
)  # fmt: skip
"""Keys of the phrases: plain for what the advice changes, else why it does not."""


def reason_array(
    reasons: Reasons,
    advice: Advice,
    X: Floats,
    schema: Schema,
    standardiser: Standardiser,
    allowed: ActionSet,
    mean: Floats,
    phrases: Phrases,
) -> pa.Array:
    """Return the reasons of each person as a sentence, null for those who have none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n, before = len(X), standardiser.inverse(X)
    low, high = allowed.box(X)
    movable = allowed.movable_among(X.shape[1])
    lacking = {each.feature.name: each.lacking(before) for each in fill_columns(schema)}
    indicators = {each.indicator for each in fill_columns(schema)}
    place = np.full(reasons.order.shape, -1, np.int64)
    said, count = [pa.array([], pa.string())], 0
    for k, name in enumerate(reasons.columns):
        holds = reasons.order == k
        who = np.flatnonzero(holds.any(axis=1))
        if not who.size:
            continue
        own = [j for j in reasons.places[k] if j not in indicators]
        toward = np.sign(mean[own[0]] - X[who, own[0]]) if len(own) == 1 else np.zeros(len(who))
        room = np.where(toward > 0.0, high[who, own[0]], -low[who, own[0]])
        why = _why(advice, who, own, bool(movable[own].any()), toward, room)
        phrase = _phrase(schema, before[who], name, why, phrases)
        if name in lacking and lacking[name][who].any():
            absent = phrases["reason_missing"].replace("{name}", _shown_name(schema, name, phrases))
            phrase = pc.if_else(pa.array(lacking[name][who]), absent, phrase)
        said.append(phrase)
        numbers = np.full(n, -1)
        numbers[who] = count + np.arange(len(who))
        place = np.where(holds, numbers[:, None], place)
        count += len(who)
    phrase = pa.concat_arrays(said)
    some: Mask = np.asarray((place >= 0).any(axis=1))  # Arrow's join leaves out a row of nulls
    ranks = [phrase.take(pa.array(rank, mask=rank < 0)) for rank in place[some].T]
    return spread(filled(phrases["reasons"], {"reasons": listed(ranks, phrases["between"])}), some)


def _phrase(schema: Schema, before: Floats, name: str, why: Floats, phrases: Phrases) -> pa.Array:
    """Return what counts against people: name, value and why it stays, if it does."""
    import pyarrow.compute as pc

    value = present_values(schema, before, name, phrases)
    fields = {"name": _shown_name(schema, name, phrases), "value": value}
    plain = filled(phrases["reason"], fields)
    stays = chosen([phrases[key] for key in WHYS], why)
    left = filled(phrases["reason_not_moved"], {**fields, "why": stays})
    return pc.if_else(why == 0.0, plain, left)


def _shown_name(schema: Schema, name: str, phrases: Phrases) -> str:
    own = [feature for feature in schema.features if feature.name == name]
    return (display_name(own[0], phrases) if own else "") or name


def _why(
    advice: Advice, who: Index, own: list[int], movable: bool, toward: Floats, room: Floats
) -> Floats:
    """Return why a reason is not in the advice, a position in ``WHYS``; 0 where it is."""
    status, action = advice.status[who], advice.action[who][:, own]
    given: Mask = np.asarray(np.isfinite(action).all(axis=1))
    moved = given & (action != 0.0).any(axis=1)
    stuck = (toward != 0.0) & (room <= ROOM)
    conditions = [
        moved,
        np.full(len(who), not movable),
        stuck & (toward > 0.0),
        stuck,
        status == PROVEN_NONE,
        given & advice.proven_cheapest[who],
        given,
    ]
    return np.select(conditions, [0, 1, 2, 3, 4, 5, 6], 0).astype(np.float64)
