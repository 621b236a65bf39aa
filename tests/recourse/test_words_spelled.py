"""Words made a column at a time are the words of each person alone."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.recourse.recommend import (
    BEYOND_REACH,
    FOUND,
    NOT_FOUND,
    NOT_NEEDED,
    PROVEN_NONE,
    STATUSES,
    Advice,
)
from countermove.recourse.words import NOTHING, Telling, advice_table, sentences

PLAIN = {
    NOT_NEEDED: "Approved: nothing to do.",
    PROVEN_NONE: "No allowed change leads to approval.",
    NOT_FOUND: "No change that leads to approval was found, which does not prove there is none.",
}
EXPENSIVE = (
    "Approval takes more than can reasonably be expected of you. The smallest change found: "
)

SCHEMA = Schema.from_mapping(
    "bank",
    {
        "label": {"column": "outcome", "favourable": 1},
        "features": {
            "hours": {"kind": "integer", "unit": "hours", "change": "both"},
            "amount": {"kind": "numeric", "unit": "EUR", "change": "both"},
            "savings": {"kind": "ordered", "change": "both", "categories": ["no", "some", "much"]},
            "home": {"kind": "onehot", "change": "both", "categories": ["rented", "own", "free"]},
            "smoker": {"kind": "binary", "change": "both", "categories": ["yes", "no"]},
            "age": {"kind": "integer", "change": "immutable"},
            "owner": {"kind": "binary", "change": "up"},
        },
    },
)
UNITS = Standardiser(
    np.array([38.1, 900.3, 0.7, 0.4, 0.3, 0.3, 0.5, 41.0, 0.2]),
    np.array([8.3, 311.7, 0.8, 0.49, 0.45, 0.45, 0.5, 12.7, 0.4]),
    SCHEMA.feature_names,
)
N = 400


def spelled_alone(value):
    """Spell a number: whole or large ones without a fraction, thousands apart."""
    if abs(value - round(value)) < 1e-6 or abs(value) >= 1e6:
        return f"{round(value):,}"
    return f"{float(f'{value:.6g}'):,.6g}"


def followed(value, j):
    """Spell what an action leads to: categories in words, numbers as everywhere."""
    column = SCHEMA.model_features()[j]
    feature = SCHEMA.feature(column.source)
    if column.group is not None:
        return f"{value:.4g}"
    is_code = feature.categories and abs(value - round(value)) < 1e-6
    return f"“{feature.categories[round(value)]}”" if is_code else spelled_alone(value)


def one_sentence(before, action, total):
    """Say what one person does, feature by feature, as a reader would spell it."""
    columns, steps = SCHEMA.model_features(), []
    for j, column in enumerate(columns):
        if abs(action[j]) <= NOTHING * UNITS.scale[j]:
            continue
        if column.group is not None:
            if action[j] > 0.0:
                left = next(k for k in (3, 4, 5) if action[k] < 0.0)
                old, new = (columns[k].name.split("=")[1] for k in (left, j))
                steps.append(f"switch home from “{old}” to “{new}”")
            continue
        feature = SCHEMA.feature(column.source)
        verb = "raise" if action[j] > 0.0 else "lower"
        values = [before[j], before[j] + action[j]]
        words = [spelled_alone(v) for v in values]
        if feature.categories:
            words = [f"“{feature.categories[round(v)]}”" for v in values]
        one = words[1] == "1" and feature.unit == "hours"
        unit = " hour" if one else f" {feature.unit}" if feature.unit else ""
        steps.append(f"{verb} {column.name} from {words[0]} to {words[1]}{unit}")
    text = "; ".join(steps) or "stay as you are"
    follows = total - action
    moved = [j for j in range(len(columns)) if abs(follows[j]) > NOTHING * UNITS.scale[j]]
    if moved:
        ends = before + action + follows
        brought = [
            f"{columns[j].name} {followed(before[j], j)} → {followed(ends[j], j)}" for j in moved
        ]
        text += f" (with what follows: {', '.join(brought)})"
    return f"{text[0].upper()}{text[1:]}."


SHOWN = (FOUND, BEYOND_REACH)


@pytest.fixture
def crowd():
    """People of every status, and every kind of change, also none at all."""
    rng = np.random.default_rng(5)
    home, new_home = rng.integers(0, 3, N), rng.integers(0, 3, N)
    before = np.column_stack(
        [
            rng.integers(0, 60, N), rng.uniform(0, 5000, N), rng.integers(0, 3, N),
            np.eye(3)[home], rng.integers(0, 2, N), rng.integers(18, 90, N), np.zeros(N),
        ]
    )  # fmt: skip
    after = np.column_stack(
        [
            rng.integers(0, 60, N), rng.uniform(0, 5e6, N), rng.integers(0, 3, N),
            np.eye(3)[new_home], rng.integers(0, 2, N), before[:, 7], rng.integers(0, 2, N),
        ]
    )  # fmt: skip
    kept = rng.uniform(size=(N, 9)) < 0.4
    kept[:, 3:6] = kept[:, [3]]
    kept[:20] = True
    X, X_new = UNITS.transform(before), UNITS.transform(np.where(kept, before, after))
    status = np.array(rng.choice(STATUSES, N))
    status[:20] = FOUND
    action = np.where(np.isin(status, SHOWN)[:, None], X_new - X, np.nan)
    return X, status, action


def advice_of(status, action, effect=None):
    zeros = np.zeros(len(status))
    return Advice(action, status, zeros, zeros, zeros, zeros.astype(np.int64), effect)


@pytest.mark.parametrize("consequences", [False, True])
def test_everybody_is_told_what_each_alone_would_be_told(crowd, consequences):
    X, status, action = crowd
    effect = None
    if consequences:
        effect = action.copy()
        effect[::3, 1] += 0.25
    said = sentences(advice_of(status, action, effect), X, SCHEMA, UNITS)
    before, moves = UNITS.inverse(X), UNITS.action_to_original(action)
    whole = moves if effect is None else UNITS.action_to_original(effect)
    for i in range(N):
        expected = PLAIN.get(status[i]) or one_sentence(before[i], moves[i], whole[i])
        if status[i] == BEYOND_REACH:
            expected = f"{EXPENSIVE}{expected}"
        assert said[i] == expected
    assert said[0].startswith("Stay as you are") or consequences
    assert len({*said}) > N / 5


def test_nobody_and_nobody_found_have_words_too(crowd):
    X, status, action = crowd
    assert sentences(advice_of(status[:0], action[:0]), X[:0], SCHEMA, UNITS) == []
    lost = ~np.isin(status, SHOWN)
    said = sentences(advice_of(status[lost], action[lost]), X[lost], SCHEMA, UNITS)
    assert said == [PLAIN[one] for one in status[lost]]


def test_the_table_holds_the_same_words(crowd):
    X, status, action = crowd
    advice = advice_of(status, action)
    table = advice_table(advice, X, SCHEMA, UNITS)
    assert table["words"].tolist() == Telling(SCHEMA, UNITS).array(advice, X).to_pylist()
    assert table["words"].dtype == table["row_id"].dtype
