"""What people do about each column, in words: verbs, amounts, time, and what time does alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countermove._types import Floats, Mask
from countermove.data.missing import FillColumns, fill_columns
from countermove.data.relations import HistoryPath, PathStates
from countermove.data.schema import Feature, ModelFeature, Schema
from countermove.data.wording import VALUE
from countermove.recourse.phrases import (
    WHOLE,
    Phrases,
    chosen,
    filled,
    joined,
    listed,
    outward,
    spelled,
    spread,
    whole,
)

if TYPE_CHECKING:
    import pyarrow as pa

UNSAID, PROVEN, EXACT = 0, 1, 2
"""What an amount is: not said, a proven bound, or exact."""


@dataclass(frozen=True)
class AdvisedChanges:
    """What n people with an action change, in original units."""

    schema: Schema
    before: Floats
    action: Floats
    moved: Mask  # which columns change, (n, d)
    kept: Mask | None  # where going further is proven to keep approval; None: nothing is said
    states: tuple[PathStates, ...]  # where histories can lead, for the paths it is known of

    def feature(self, column: ModelFeature) -> Feature:
        """Return what the schema says of a model column."""
        return self.schema.feature(column.source)

    def name(self, column: ModelFeature, phrases: Phrases) -> str:
        """Return the display name of a model column's feature, the column's own without one."""
        return display_name(self.feature(column), phrases) or column.name


def display_name(feature: Feature, phrases: Phrases) -> str:
    """Return what a feature is called for people; empty where the schema has no name."""
    return "" if feature.wording is None else feature.wording.name


def step_phrases(moves: AdvisedChanges, phrases: Phrases) -> pa.Array:
    """Return everybody's steps, joined."""
    import pyarrow as pa

    # Whoever does nothing has a phrase too: Arrow's join leaves out a row of nulls.
    still: Mask = np.asarray(~moves.moved.any(axis=1))
    steps = [spread(pa.array([phrases["stay"]] * int(still.sum()), pa.string()), still)]
    spoken = np.zeros(moves.moved.shape, bool)
    for path in moves.schema.paths:
        steps += _time(moves, path, phrases, spoken)
    for each in fill_columns(moves.schema):
        steps += _supplied(moves, each, phrases, spoken)
    for j, column in enumerate(moves.schema.model_features()):
        for sign in (1.0, -1.0) if column.group is None else (1.0,):
            who = moves.moved[:, j] & (moves.action[:, j] * sign > 0.0) & ~spoken[:, j]
            if who.any():
                said = _switched if column.group is not None else _changed
                steps.append(spread(said(moves, j, sign, who, phrases), who))
    return listed(steps, phrases["between"])


def _time(
    moves: AdvisedChanges, path: HistoryPath, phrases: Phrases, spoken: Mask
) -> list[pa.Array]:
    """Return how long people wait whose action is a state of the path; mark its columns."""
    names = moves.schema.feature_names
    columns = [names.index(name) for name in path.columns]
    after = whole(moves.before + moves.action)[:, columns]
    steps, sure = _steps_until(moves, path, columns, after)
    who = (steps > 0) & moves.moved[:, columns].any(axis=1)
    if not who.any():
        return []
    spoken[np.ix_(np.flatnonzero(who), np.array(columns))] = True
    most = int(steps.max())
    spans = [phrases.steps_of_time(path.step, count) for count in range(most + 1)]
    if not sure:
        spans = [phrases["at_most"].replace(VALUE, span) for span in spans]
    called = ", ".join(display_name(moves.schema.feature(n), phrases) or n for n in path.columns)
    verb = path.verb or phrases["wait"].replace("{name}", called)
    return [spread(filled(verb, {"value": chosen(spans, steps[who])}), who)]


def _steps_until(
    moves: AdvisedChanges, path: HistoryPath, columns: list[int], after: Floats
) -> tuple[Floats, bool]:
    """Return after how many steps everybody's history is as advised, 0 where it never is."""
    # Without the window of a person only the end is known: after as many steps as it has entries.
    known = next((s.states for s in moves.states if s.path.name == path.name), None)
    sure = known is not None or not path.from_raw
    if known is None:
        known = path.known_states(moves.schema, moves.before)
    equal: Mask = np.all(np.abs(known - after[:, None, :]) < WHOLE, axis=2)
    first = np.where(equal.any(axis=1), equal.argmax(axis=1), 0)
    return (first if sure else first * len(path.window)).astype(np.float64), sure


def _supplied(
    moves: AdvisedChanges, each: FillColumns, phrases: Phrases, spoken: Mask
) -> list[pa.Array]:
    """Return what people supply who lack a cell, and what it has to be; mark its columns."""
    feature, own = each.feature, list(each.columns)
    who = moves.moved[:, each.indicator]
    if not who.any():
        return []
    spoken[np.ix_(np.flatnonzero(who), np.array([*own, each.indicator]))] = True
    name = display_name(feature, phrases) or feature.name
    moved: Mask = who & moves.moved[:, own].any(axis=1)
    falls: Mask = moved & (moves.action[:, own[0]] < 0.0)
    categorical = feature.kind in ("onehot", "binary")
    found = []
    for part, sign in ((who & ~moved, 0.0), (moved & ~falls, 1.0), (falls, -1.0)):
        if not part.any():
            continue
        here = moves.before[part]
        fields = {"name": name, "before": present_values(moves.schema, here, feature.name, phrases)}
        if sign and categorical:
            there = here + moves.action[part]
            fields["after"] = present_values(moves.schema, there, feature.name, phrases)
        elif sign:
            fields["after"] = _amount(moves, own[0], sign, part, phrases)
        key = "supply_level" if feature.own_level else "supply_to" if sign else "supply_step"
        found.append(spread(filled(phrases[key], fields), part))
    return found


def _changed(moves: AdvisedChanges, j: int, sign: float, who: Mask, phrases: Phrases) -> pa.Array:
    """Return the phrases of people who raise (or lower) a feature."""
    column = moves.schema.model_features()[j]
    feature, before = moves.feature(column), moves.before[who, j]
    verb = _verb(feature, sign, phrases)
    if verb and VALUE not in verb:
        return chosen([verb], np.zeros(len(before)))
    end = _amount(moves, j, sign, who, phrases)
    if not verb:
        start = spelled(feature, before, phrases, unit=False)
        name = moves.name(column, phrases)
        key = "raise" if sign > 0.0 else "lower"
        return filled(phrases[key], {"name": name, "before": start, "after": end})
    if moves.kept is not None:
        verb = _without_bound(verb, phrases)
    start = spelled(feature, before, phrases, unit=True)
    fields = {"verb": filled(verb, {"value": end}), "before": start}
    return filled(phrases["own_verb"], fields)


def _amount(moves: AdvisedChanges, j: int, sign: float, who: Mask, phrases: Phrases) -> pa.Array:
    """Return the amounts that people raise (or lower) a feature to, and what they are."""
    column = moves.schema.model_features()[j]
    feature, after = moves.feature(column), moves.before[who, j] + moves.action[who, j]
    code = _bounds(column, after, sign, None if moves.kept is None else moves.kept[who, j])
    sides = [VALUE, phrases["at_least" if sign > 0.0 else "at_most"], phrases["exactly"]]
    heads, tails = zip(*(side.split(VALUE) for side in sides), strict=True)
    # What is said of a bound has to be true of the digits shown.
    shown = np.where(code == PROVEN, outward(after, sign), after)
    amount = spelled(feature, shown, phrases, unit=True)
    return joined(chosen(list(heads), code), amount, chosen(list(tails), code))


def _verb(feature: Feature, sign: float, phrases: Phrases) -> str:
    if feature.wording is None:
        return ""
    return feature.wording.raising if sign > 0.0 else feature.wording.lowering


def _without_bound(verb: str, phrases: Phrases) -> str:
    """Return a verb without a bound of its own: what is proven says whether there is one."""
    head, tail = verb.split(VALUE)
    for key in ("at_least", "at_most", "exactly"):
        head = head.removesuffix(phrases[key].split(VALUE)[0])
    return head + VALUE + tail


def _bounds(column: ModelFeature, after: Floats, sign: float, kept: Mask | None) -> Floats:
    """Return what is said of each amount: nothing where it is the end of the column."""
    if kept is None or column.kind == "binary":
        return np.full(len(after), UNSAID, np.float64)
    end = column.max if sign > 0.0 else column.min
    at_end = np.abs(after - end) < WHOLE
    return np.where(at_end, UNSAID, np.where(kept, PROVEN, EXACT)).astype(np.float64)


def _switched(moves: AdvisedChanges, j: int, sign: float, who: Mask, phrases: Phrases) -> pa.Array:
    """Return the phrases of people who switch to category ``j`` of its group."""
    columns = moves.schema.model_features()
    group = columns[j].group
    others = [k for k, column in enumerate(columns) if column.group == group]
    left = (moves.action[who][:, others] < 0.0).argmax(axis=1)
    feature, new = moves.feature(columns[j]), category_words(moves.schema, j, phrases)
    expanded = feature.kind != "onehot"
    verb = _verb(feature, sign, phrases)
    name = str(group) if expanded else moves.name(columns[j], phrases)
    name = str(group) if name == columns[j].name else name
    said = []
    for k in others:
        old = category_words(moves.schema, k, phrases)
        if verb:
            acted = verb.replace(VALUE, new)
            said.append(phrases["own_verb"].format(verb=acted, before=old))
        else:
            said.append(phrases["switch"].format(name=name, before=old, after=new))
    return chosen(said, left)


def category_words(schema: Schema, j: int, phrases: Phrases) -> str:
    """Return the category that a one-hot column stands for."""
    column = schema.model_features()[j]
    feature = schema.feature(column.source)
    expanded = feature.kind != "onehot"
    own = display_name(feature, phrases) if expanded else ""
    return phrases["category"].replace(VALUE, own or column.name.removeprefix(f"{column.group}="))


def present_values(schema: Schema, before: Floats, name: str, phrases: Phrases) -> pa.Array:
    """Return where people stand in a feature or a group of expanded columns, in words."""
    columns = schema.model_features()
    own = [j for j, c in enumerate(columns) if name in (c.group, c.source) and not c.indicator]
    if columns[own[0]].group is not None:
        words = [category_words(schema, j, phrases) for j in own]
        return chosen(words, before[:, own].argmax(axis=1).astype(np.float64))
    feature = schema.feature(columns[own[0]].source)
    if feature.kind == "binary" and not feature.categories:
        return chosen([phrases["value_of_0"], phrases["value_of_1"]], np.round(before[:, own[0]]))
    return spelled(feature, before[:, own[0]], phrases, unit=True)


def horizons(text: pa.Array, concerned: Mask, schema: Schema, phrases: Phrases) -> pa.Array:
    """Return sentences followed by what time does by itself about the columns concerned."""
    import pyarrow as pa

    about: dict[str, Mask] = {}
    for j, column in enumerate(schema.model_features()):
        wording = schema.feature(column.source).wording
        said = "" if wording is None else wording.horizon
        if said:
            none = np.zeros(len(concerned), bool)
            about[said] = about.get(said, none) | concerned[:, j]
    for said, who in about.items():
        sentence = f" {said[0].upper()}{said[1:].rstrip('.')}."
        text = joined(text, pa.array(["", sentence]).take(pa.array(who.astype(np.int8))))
    return text
