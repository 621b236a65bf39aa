"""Strategic trees beside simple rules over fresh splits: every rule, guarded or not, losses too.

Tables are balanced by leaving out rows of the larger class, so that accuracy is balanced accuracy,
in training, in the guard and on the test rows. Everybody reaches 1.41 standard deviations
(`QuadraticCost(1.0)`) and moves in whole steps, before linear rules as before trees. Splits are
kept in a file, and a run goes on where the last one stopped. Adult is read where it was fetched.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from countermove import StrategicClassifier
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import read_raw
from countermove.learning.baselines import bias_search
from countermove.learning.evaluation import accuracy_after
from countermove.learning.whole_steps import WholeStepResponse
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, NoResponse
from countermove.scores import Score

ROOT = Path(__file__).parents[1]
FIRST_SEED = 5000
SIZES = {"adult": (6_000, 5_000), "credit": (1_000, 1_000), "german": (400, 200)}
"""Rows to train and to test on; all disjoint, classes in equal numbers."""
COLUMNS_ALONE = ("credit",)
"""Tables whose columns move by themselves: their relations make a search ten times as long."""
SIMPLE = ("logistic", "class_means", "reach_penalty", "blind")


def drawn(name: str, seed: int) -> tuple[Schema, pd.DataFrame, pd.DataFrame]:
    """Return balanced training and test rows."""
    schema = load_schema(name, ROOT / "conf" / "base" / "schemas")
    typed = clean(read_raw(name, ROOT / "data" / "01_raw", schema), schema)
    n_train, n_test = SIZES[name]
    parts: tuple[list[Any], list[Any]] = ([], [])
    rng = np.random.default_rng(seed)
    for _, rows in typed.groupby("label", observed=True):
        order = rng.permutation(len(rows))
        parts[0].append(rows.iloc[order[: n_train // 2]])
        parts[1].append(rows.iloc[order[n_train // 2 : (n_train + n_test) // 2]])
    train, test = (pd.concat(part).sample(frac=1.0, random_state=seed) for part in parts)
    return schema, train, test


def one_split(name: str, seed: int) -> dict[str, Any]:
    """Train every rule and measure it on the test rows."""
    start = time.process_time()
    schema, train, test = drawn(name, seed)
    unit = fit_standardiser(train, schema, False)
    learn, judge = (
        rows_of(standardised_table(part, schema, unit), schema) for part in (train, test)
    )
    actions = ActionSet.from_schema(schema, unit, possible=name not in COLUMNS_ALONE)
    actions = actions.obeyed_in_responses(actions.possible is not None)
    people = BestResponse(QuadraticCost(1.0), actions)
    exact = WholeStepResponse(people.cost, actions)
    given: dict[str, Any] = {"response": people, "standardise": False}
    guarded = StrategicClassifier(score="trees", **given).fit(learn.X, learn.y)
    linear = StrategicClassifier(**given).fit(learn.X, learn.y)
    choice = guarded.choice_
    assert choice is not None
    as_trained = copy.deepcopy(choice.scores["blind"])
    as_trained.bias.data.zero_()
    rules: dict[str, Score] = dict(choice.scores) | {
        "blind as trained": as_trained,
        "linear strategic": bias_search(linear.score_, (exact,), learn.X, learn.y),
    }
    points = {
        rule: 100.0 * accuracy_after(score, judge.X, judge.y, exact).accuracy
        for rule, score in rules.items()
    }
    still = accuracy_after(as_trained, judge.X, judge.y, NoResponse()).accuracy
    return {
        "table": name,
        "seed": seed,
        "points": points | {"nobody moves": 100.0 * still},
        "unproven": {rule: 100.0 * exact.unproven(score, judge.X) for rule, score in rules.items()},
        "kept": choice.kept,
        "gain": 100.0 * choice.rules["trained"].gain,
        "error": 100.0 * choice.rules["trained"].standard_error,
        "best simple": max(SIMPLE, key=lambda rule: choice.rules[rule].value),
        "seconds": time.process_time() - start,
    }


def summary(found: list[dict[str, Any]], name: str) -> str:
    """Return what the splits of one table say."""
    points = pd.DataFrame([split["points"] for split in found])
    unproven = pd.DataFrame([split["unproven"] for split in found])
    chosen = [split["points"][split["kept"]] for split in found]
    simple = [split["points"][split["best simple"]] for split in found]
    points["kept by the guard"], points["best simple rule"] = chosen, simple
    n_train, n_test = SIZES[name]
    kept = pd.Series([split["kept"] for split in found]).value_counts()
    lines = [
        f"## {name}: {len(found)} splits of {n_train:,} and {n_test:,} rows",
        "",
        "| rule | balanced accuracy | not proven | against blind trees, best threshold "
        "| against the linear strategic rule | against the best simple rule |",
        "|---|---|---|---|---|---|",
    ]
    titles = {
        "nobody moves": "blind trees, nobody moves",
        "blind as trained": "blind trees as trained",
        "blind": "blind trees, best threshold",
        "logistic": "logistic regression, best threshold",
        "linear strategic": "linear strategic rule (guarded)",
        "trained": "trees of the index, unguarded",
        "best simple rule": "best simple rule",
        "kept by the guard": "kept by the guard",
    }
    for rule, title in titles.items():
        against = (points["blind"], points["linear strategic"], points["best simple rule"])
        gains = " | ".join(_interval(points[rule] - other) for other in against)
        open_ = f"{unproven[rule].mean():.2f} %" if rule in unproven else ""
        lines.append(f"| {title} | {points[rule].mean():.2f} | {open_} | {gains} |")
    said = ", ".join(f"{rule} {n}" for rule, n in kept.items())
    return "\n".join([*lines, "", f"Kept: {said}.", ""])


def _interval(values: pd.Series[float]) -> str:
    """Return the mean and its interval at 95 %."""
    from scipy.stats import t

    n = len(values)
    if n < 2 or float(values.std(ddof=1)) == 0.0:
        return f"{values.mean():+.2f}"
    half = float(t.ppf(0.975, n - 1)) * values.std(ddof=1) / n**0.5
    return f"{values.mean():+.2f} ({values.mean() - half:+.2f} to {values.mean() + half:+.2f})"


def main() -> None:
    """Measure what is missing and print a table per data set."""
    torch.set_num_threads(1)
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--splits", type=int, default=20)
    asked.add_argument("--first-seed", type=int, default=FIRST_SEED)
    asked.add_argument("--table", choices=tuple(SIZES), nargs="*", default=list(SIZES))
    kept = ROOT / "data" / "08_reporting" / "table_trees.jsonl"
    asked.add_argument("--into", type=Path, default=kept, help="where splits are kept")
    given = asked.parse_args()
    given.into.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in _lines(given.into)]
    seeds = range(given.first_seed, given.first_seed + given.splits)
    for seed in seeds:
        for name in given.table:
            if any(split["table"] == name and split["seed"] == seed for split in known):
                continue
            if name == "adult" and not (ROOT / "data" / "01_raw" / "adult.csv").exists():
                continue
            known.append(one_split(name, seed))
            with given.into.open("a") as stream:
                stream.write(json.dumps(known[-1]) + "\n")
    for name in given.table:
        found = [split for split in known if split["table"] == name and split["seed"] in seeds]
        print(summary(found, name) if found else f"## {name}: not measured, fetch it first\n")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


if __name__ == "__main__":
    main()
