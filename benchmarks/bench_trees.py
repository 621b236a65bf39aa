"""Exact crossings of boosted trees: against treecf, against the model's own predict, and at size.

CPU seconds of one thread, same people, same run; both take one person per call, ours all at once
too. treecf runs where ``COUNTERMOVE_TREECF_PYTHON``
names a Python that has it (0.3.2) and LightGBM; without it its columns stay empty. Its distance is
the sum of |move| over its own normalisers, which the search then uses too; it goes a float32 step
beyond a split, so costs count as equal to 1e-4.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.people import ActionSet, QuadraticCost
from countermove.people.feasible import feasible_actions
from countermove.response import trees as tree_moves
from countermove.response._tree_cells import ABSOLUTE
from countermove.response.trees import TreeMoves, cheapest_crossing
from countermove.scores.adopted import AdoptedModel, adopt
from countermove.scores.trees import TreeScore

SCHEMAS = Path(__file__).parents[1] / "conf" / "base" / "schemas"
RAW = Path(__file__).parents[1] / "data" / "01_raw"
ALONE = 100
"""People asked about by one call each."""
AFAR = 50.0
"""Bound on every move in standard deviations: none."""


def credit(balanced: bool = False) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return the credit table, labels and the columns its schema lets move, in its order."""
    schema = load_schema("credit", SCHEMAS)
    typed = clean(read_raw("credit", RAW, schema), schema)
    unit = fit_standardiser(typed, schema, False)
    rows = rows_of(standardised_table(typed, schema, unit), schema)
    X, y = np.round(unit.inverse(rows.X), 6), (rows.y > 0).astype(int)
    movable = [j for j, one in enumerate(schema.model_features()) if one.change != "immutable"]
    if balanced:
        draws = np.random.default_rng(0)
        fewer = np.flatnonzero(y == int(y.mean() < 0.5))
        others = draws.permutation(np.flatnonzero(y != y[fewer[0]]))[: len(fewer)]
        kept = draws.permutation(np.concatenate([fewer, others]))
        X, y = X[kept], y[kept]
    return X, y, movable


def synthetic() -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Return a continuous table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3:8].sum(axis=1) > 0.5).astype(int)
    return X, y, list(range(20))


def fitted(X: np.ndarray, y: np.ndarray, trees: int, leaves: int) -> Any:
    """Return a boosted model."""
    return lightgbm.LGBMClassifier(
        n_estimators=trees, num_leaves=leaves, verbose=-1, random_state=0, n_jobs=1
    ).fit(X, y)


def searched(
    model: AdoptedModel, Z: np.ndarray, movable: list[int], most: float, normaliser: Any = None
) -> tuple[TreeMoves, float, float]:
    """Return crossings of standardised people, CPU ms a person in one call and in one each."""
    score = model.standardised_score_
    assert isinstance(score, TreeScore)
    d = Z.shape[1]
    held = [j for j in range(d) if j not in movable]
    limit = np.full(d, AFAR)
    feasible = feasible_actions(ActionSet(-limit, limit, immutable=held), Z)
    before = tree_moves._prices
    if normaliser is not None:
        weight = model.standardiser_.scale / normaliser
        tree_moves._prices = lambda cost, n: (ABSOLUTE, weight)
    try:
        one = np.zeros(1, np.intp)  # what is compiled is loaded first
        cheapest_crossing(score, Z[one], feasible.rows(one), QuadraticCost(), 0.0, most)
        start = time.process_time()
        found = cheapest_crossing(score, Z, feasible, QuadraticCost(), 0.0, most)
        together = 1e3 * (time.process_time() - start) / len(Z)
        alone = Z[: min(len(Z), ALONE)]
        start = time.process_time()
        for i in range(len(alone)):
            person = feasible.rows(np.array([i]))
            cheapest_crossing(score, alone[[i]], person, QuadraticCost(), 0.0, most)
        return found, together, 1e3 * (time.process_time() - start) / max(len(alone), 1)
    finally:
        tree_moves._prices = before


def normalisers(X: np.ndarray) -> np.ndarray:
    """Return treecf's units: the median absolute deviation, else the quartiles, else the range."""
    found = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    quartiles = np.percentile(X, 75, axis=0) - np.percentile(X, 25, axis=0)
    width = X.max(axis=0) - X.min(axis=0)
    found = np.where(found > 0, found, np.where(quartiles > 0, quartiles, width))
    return np.where(found > 0, found, 1.0)


def beside_treecf(X: np.ndarray, booster: Any, people: np.ndarray, movable: list[int]) -> Any:
    """Return what treecf finds, None where it is not installed."""
    python = os.environ.get("COUNTERMOVE_TREECF_PYTHON")
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        booster.save_model(Path(folder) / "model.txt")
        np.savez(Path(folder) / "case.npz", people=people, background=X, movable=movable)
        side = Path(__file__).with_name("treecf_side.py")
        subprocess.run([python, str(side), folder], check=True, env=os.environ | {"PYTHONPATH": ""})
        return dict(np.load(Path(folder) / "treecf.npz"))


def compare(name: str, data: Any, trees: int, leaves: int, n_movable: int, n: int) -> None:
    """Print one row against treecf, in its own distance, without a ceiling."""
    X, y, order = data
    movable = order[:n_movable]
    theirs = fitted(X, y, trees, leaves)
    model = adopt(theirs, X)
    refused = X[theirs.predict_proba(X)[:, 1] < 0.5][:n]
    unit = model.standardiser_
    assert unit is not None
    found, ours, alone = searched(model, unit.transform(refused), movable, np.inf, normalisers(X))
    other = beside_treecf(X, theirs.booster_, refused, movable)
    said = ["", "", ""]
    if other is not None:
        both = other["proven"] & found.proven
        ended = np.isfinite(found.cost[both])
        equal = ended == np.isfinite(other["cost"][both])
        equal[ended] &= np.isclose(
            found.cost[both][ended], other["cost"][both][ended], rtol=1e-4, atol=1e-6
        )
        slow = 1e3 * other["seconds"].mean()
        said = [f"{slow:.1f}", f"{slow / alone:.1f}", f"{equal.sum()} of {both.sum()}"]
    print(
        f"| {name}, {trees} x {leaves}, {n_movable} | {ours:.3f} | {alone:.3f} | "
        f"{found.proven.mean():.2%} | {' | '.join(said)} |",
        flush=True,
    )


def at_size(n: int) -> None:
    """Print many people on credit, 100 x 15 leaves, ceiling 2, against LightGBM's own predict."""
    X, y, order = credit()
    theirs = fitted(X, y, 100, 15)
    model = adopt(theirs, X)
    people = X[np.random.default_rng(0).integers(len(X), size=n)]
    start = time.process_time()
    now = theirs.booster_.predict(people, num_threads=1)
    own = time.process_time() - start
    unit = model.standardiser_
    assert unit is not None
    found, together, _ = searched(model, unit.transform(people[now < 0.5]), order[:6], 2.0)
    ours = together * len(found.cost) / 1e3
    print(
        f"\n{n:,} people of credit, 100 x 15, 6 movable, ceiling 2, {(now < 0.5).sum():,} of "
        f"them refused: {ours / own:.1f} times LightGBM's own predict (goal 35), "
        f"{(~found.proven).sum()} not proven.",
        flush=True,
    )


def with_ceiling(name: str, data: Any, trees: int, leaves: int, n_movable: int, n: int) -> None:
    """Print time and proofs under the ceiling of 2."""
    X, y, order = data
    theirs = fitted(X, y, trees, leaves)
    model = adopt(theirs, X)
    refused = X[theirs.predict_proba(X)[:, 1] < 0.5][:n]
    unit = model.standardiser_
    assert unit is not None
    found, ours, _ = searched(model, unit.transform(refused), order[:n_movable], 2.0)
    print(
        f"| {name}, {trees} x {leaves}, {n_movable} | {ours:.3f} | {found.proven.mean():.2%} |",
        flush=True,
    )


def main() -> None:
    """Print every row."""
    few = int(os.environ.get("COUNTERMOVE_BENCH_PEOPLE", "100"))
    whole, balanced = credit(), credit(balanced=True)
    widest = sorted(balanced[2], key=lambda j: -len(np.unique(balanced[0][:, j])))
    print(
        "| trees x leaves, movable; no ceiling | ms a person, all at once | one call each | proven "
        "| treecf 0.3.2, one call each | times ours, call for call | equal |"
    )
    print("|---|---|---|---|---|---|---|")
    compare("balanced credit", balanced, 100, 15, 3, few)
    compare("balanced credit", balanced, 100, 15, 6, few)
    compare("balanced credit, columns of most values", (*balanced[:2], widest), 100, 15, 6, few)
    compare("credit", whole, 100, 15, 6, few)
    compare("synthetic", synthetic(), 100, 15, 6, few)
    print("\n| the same, ceiling 2 | ms a person | proven |\n|---|---|---|")
    with_ceiling("credit", whole, 100, 15, 6, 10 * few)
    with_ceiling("credit", whole, 300, 31, 10, 10 * few)
    with_ceiling("synthetic", synthetic(), 300, 31, 10, few)
    at_size(int(os.environ.get("COUNTERMOVE_BENCH_SIZE", "100000")))


if __name__ == "__main__":
    main()
