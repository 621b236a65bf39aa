"""Does training pay? Rules × populations × tables over fresh splits, with paired errors.

Every split trains on some rows and measures all rules on the others: the rule kept by the guarded
selection beside the best simple rules, chosen by cross-validation on the training rows, with and
without the one that is charged for reach. Differences are in points of accuracy after response.
The parity table is found through the environment variable COUNTERMOVE_PARITY_DATA.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from countermove import StrategicClassifier
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.learning.evaluation import stated_accuracy
from countermove.learning.selection import Choice
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, Population
from countermove.response.base import Response

ROOT = Path(__file__).parents[1]
FIRST_SEED = 1000
PLAIN = ("logistic", "class_means")
MOST_ROWS = 15_000
Table = tuple[np.ndarray, np.ndarray, ActionSet | None]


def embedded(name: str) -> Table:
    """Return standardised rows, labels and allowed actions of an embedded or fetched table."""
    schema = load_schema(name, ROOT / "conf" / "base" / "schemas")
    typed = clean(read_raw(name, ROOT / "data" / "01_raw", schema), schema)
    typed = typed.sample(min(len(typed), MOST_ROWS), random_state=0).reset_index(drop=True)
    unit = fit_standardiser(typed, schema, False)
    people = rows_of(standardised_table(typed, schema, unit), schema)
    return people.X, people.y, ActionSet.from_schema(schema, unit)


def spam(folder: Path) -> Table:
    """Return standardised rows and labels of the parity table, its splits put together."""
    stored = np.load(folder / "serm" / "spam.npz")
    X, first = np.unique(stored["X0"].astype(float), axis=0, return_index=True)
    y = stored["y0"].astype(float)[first]
    return (X - X.mean(axis=0)) / X.std(axis=0), y, None


def populations(d: int, schema: ActionSet | None) -> dict[str, Response]:
    """Return people who differ, one population of people alike, and those of the schema."""
    half = ActionSet(immutable=range(0, d, 2))
    one, four = QuadraticCost(1.0), QuadraticCost(4.0)
    return {
        "alike": BestResponse(one),
        "a quarter never moves, two prices": Population(
            [BestResponse(one), BestResponse(four)], [0.5, 0.5], never=0.25
        ),
        "log-normal prices": Population(BestResponse(QuadraticCost(1.5)), never=0.1, log_sd=0.7),
        "half immutable, 30 % never move": Population(BestResponse(one, half), never=0.3),
        "half immutable, log-normal prices": Population(
            BestResponse(QuadraticCost(1.5), half), never=0.1, log_sd=0.7
        ),
    } | ({} if schema is None else {"as the schema allows": BestResponse(one, schema)})


def one_split(table: Table, people: Response, seed: int) -> Mapping[str, float | str]:
    """Train on seven tenths of the rows and measure on the others."""
    X, y, _ = table
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(0.7 * len(y))
    train, test = order[:cut], order[cut:]
    rule = StrategicClassifier(response=people, standardise=False).fit(X[train], y[train])
    choice = rule.choice_
    assert isinstance(choice, Choice)
    measured = {
        name: 100.0 * stated_accuracy(score, X[test], y[test], people)
        for name, score in choice.scores.items()
    }
    plain = max(PLAIN, key=lambda name: choice.rules[name].value)
    return {
        "kept": choice.kept,
        "accuracy": measured[choice.kept],
        "against plain rules": measured[choice.kept] - measured[plain],
        "against all": measured[choice.kept] - measured[choice.best_simple],
        "trained against all": measured["trained"] - measured[choice.best_simple],
    }


def main() -> None:
    """Print a row per table and population."""
    torch.set_num_threads(1)
    asked = argparse.ArgumentParser()
    asked.add_argument("--splits", type=int, default=20)
    asked.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first split")
    names = ("credit", "german", "adult", "spam")
    asked.add_argument("--table", choices=names, nargs="*", default=list(names))
    given = asked.parse_args()
    folder = os.environ.get("COUNTERMOVE_PARITY_DATA")
    tables: dict[str, Callable[[], Table]] = {
        name: partial(embedded, name) for name in ("credit", "german", "adult")
    }
    if folder:
        tables["spam"] = partial(spam, Path(folder))
    print("| table | people | kept | against plain rules | against all | trained, unguarded |")
    print("|---|---|---|---|---|---|")
    for name in given.table:
        if name not in tables:
            print(f"| {name} | not measured: COUNTERMOVE_PARITY_DATA is not set | | | | |")
            continue
        table = tables[name]()
        for people, response in populations(table[0].shape[1], table[2]).items():
            found = pd.DataFrame(
                [one_split(table, response, given.seed + k) for k in range(given.splits)]
            )
            kept = ", ".join(f"{k} {v}" for k, v in found["kept"].value_counts().items())
            columns = ("against plain rules", "against all", "trained against all")
            shown = " | ".join(_mean(found[column]) for column in columns)
            print(f"| {name} | {people} | {kept} | {shown} |", flush=True)


def _mean(values: pd.Series[float]) -> str:
    error = values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():+.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
