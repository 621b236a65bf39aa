"""Recourse for the same 200 people of credit, side by side with treecf, DiCE and alibi.

One LightGBM model (60 trees of 15 leaves), people it refuses and was not trained on, and the
schema's columns, directions, bounds and whole numbers, as far as a library can be told. *Found*:
the model itself approves. *Violations*: people found whose move breaks one of these limits. Cost:
squared standard deviations; the ratio is the median over people found within the limits by both.
Everybody is asked about by one call each, as the other libraries take them; Countermove once more
by one call for all. Each library runs where ``COUNTERMOVE_<LIBRARY>_PYTHON`` names a Python that
has it and LightGBM, or ``.cache/<library>-env`` holds one (``pip install treecf``, ``dice-ml``,
``alibi[tensorflow]`` with ``click``).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bench_trees import SCHEMAS, credit, fitted
from countermove.data.schema import load_schema
from countermove.people import ActionSet
from countermove.recourse import recommend
from countermove.scores.adopted import adopt

PEOPLE = 200
SEARCHES = {
    "treecf, exact": ("treecf", "treecf"),
    "DiCE, random": ("dice", "dice_random"),
    "DiCE, genetic": ("dice", "dice_genetic"),
    "alibi, prototypes": ("alibi", "alibi"),
}


@dataclass(frozen=True)
class Limits:
    """What the schema lets people do, by column: original units."""

    held: np.ndarray
    way: np.ndarray  # 1 up, -1 down, 0 both
    least: np.ndarray
    most: np.ndarray

    def broken(self, people: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return whose move breaks a limit."""
        move = places - people
        far = 1e-6 * (1.0 + np.abs(people))
        wrong = self.held & (np.abs(move) > far)
        wrong |= (self.way * move < -far) | (places < self.least - far) | (places > self.most + far)
        wrong |= np.abs(move - np.round(move)) > 1e-3
        return wrong.any(axis=1)


def limits(X: np.ndarray) -> tuple[Limits, list[str]]:
    """Return the limits of credit; no bound lies beyond what anybody has."""
    features = load_schema("credit", SCHEMAS).model_features()
    way = np.array([{"up": 1, "down": -1}.get(one.change, 0) for one in features])
    held = np.array([one.change == "immutable" for one in features])
    least = np.maximum([one.min for one in features], X.min(axis=0))
    most = np.minimum([one.max for one in features], X.max(axis=0))
    return Limits(held, way, least, most), [one.name for one in features]


def ours(booster: Any, train: np.ndarray, people: np.ndarray, known: Limits, names: Any) -> Any:
    """Return where everybody is sent, and CPU milliseconds a person: in one call, in one each."""
    model = adopt(booster, train, columns=names)

    def some(mask: np.ndarray) -> list[str]:
        return [name for name, there in zip(names, mask, strict=True) if there]

    allowed = ActionSet(
        **model.allowed(
            immutable=some(known.held),
            only_increase=some(known.way > 0),
            only_decrease=some(known.way < 0),
            integer=names,
            bounds=dict(zip(names, zip(known.least, known.most, strict=True), strict=True)),
        )
    )
    recommend(model, people[:2], actions=allowed)  # what is compiled is loaded first
    start = time.process_time()
    advice = recommend(model, people, actions=allowed)
    together = 1e3 * (time.process_time() - start) / len(people)
    start = time.process_time()
    for person in people:
        recommend(model, person[None], actions=allowed)
    alone = 1e3 * (time.process_time() - start) / len(people)
    places = np.where((advice.status == "FOUND")[:, None], advice.x_new(people), np.nan)
    proven = advice.proven_cheapest | (advice.status == "PROVEN_NONE")
    print(f"{proven.sum()} of {len(people)} of our answers are proven: cheapest, or none.\n")
    return places, together, alone


def theirs(library: str, search: str, booster: Any, case: dict[str, Any]) -> Any:
    """Return the same of another library; None where there is no environment for it."""
    default = Path(__file__).parents[1] / ".cache" / f"{library}-env" / "bin" / "python"
    python = os.environ.get(f"COUNTERMOVE_{library.upper()}_PYTHON", str(default))
    if not Path(python).exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        booster.booster_.save_model(Path(folder) / "model.txt")
        np.savez(Path(folder) / "case.npz", **case)
        side = str(Path(__file__).with_name("counterfactual_side.py"))
        alone = os.environ | {"PYTHONPATH": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
        quiet = subprocess.DEVNULL
        subprocess.run([python, side, search, folder], check=True, env=alone, stdout=quiet)
        found = dict(np.load(Path(folder) / "found.npz"))
    return found["places"], 1e3 * found["seconds"].mean(), str(found["version"])


def row(
    name: str,
    answer: Any,
    booster: Any,
    people: np.ndarray,
    unit: np.ndarray,
    known: Limits,
    reference: np.ndarray,
) -> str:
    """Return one search's row of the table; every place is judged by the model itself."""
    if answer is None:
        return f"| {name} | not installed | | | | | |"
    places, spent, release = answer
    there = ~np.isnan(places).any(axis=1)
    if there.any():
        there[there] &= booster.predict_proba(places[there])[:, 1] >= 0.5
    broken = there & known.broken(people, np.where(there[:, None], places, people))
    cost = (((places - people) / unit) ** 2).sum(axis=1)
    both = there & ~broken & ~np.isnan(reference).any(axis=1)
    compared = cost[both] / (((reference - people) / unit) ** 2).sum(axis=1)[both]
    ratio = f"{np.median(compared):.2f} ({both.sum()})" if both.any() else ""
    middle = f"{np.median(cost[there]):.2f}" if there.any() else ""
    return (
        f"| {name} | {release} | {there.sum()} of {len(people)} | {broken.sum()} | {middle} | "
        f"{ratio} | {spent:,.1f} |"
    )


def main() -> None:
    """Print the table."""
    X, y, _ = credit()
    known, names = limits(X)
    order = np.random.default_rng(0).permutation(len(X))
    train, others = X[order[:20_000]], X[order[20_000:]]
    booster = fitted(train, y[order[:20_000]], 60, 15)
    n = int(os.environ.get("COUNTERMOVE_BENCH_PEOPLE", str(PEOPLE)))
    people = others[booster.predict_proba(others)[:, 1] < 0.5][:n]
    unit = train.std(axis=0)
    least, most = (np.broadcast_to(side, people.shape) for side in (known.least, known.most))
    case = {
        "people": people, "background": train[:2_000], "unit": unit, "held": known.held,
        "way": known.way, "least": known.least, "most": known.most, "step": np.ones(len(unit)),
        "low": np.where(known.held | (known.way > 0), people, least),
        "high": np.where(known.held | (known.way < 0), people, most),
    }  # fmt: skip
    places, together, alone = ours(booster, train, people, known, names)
    reference = np.where(known.broken(people, places)[:, None], np.nan, places)
    print("| search | version | found | violations | median cost | times ours | ms a person |")
    print("|---|---|---|---|---|---|---|")
    judged = (booster, people, unit, known, reference)
    release = version("countermove")
    print(row("Countermove", (places, alone, release), *judged))
    print(row("Countermove, one call for all", (places, together, release), *judged), flush=True)
    for name, (library, search) in SEARCHES.items():
        print(row(name, theirs(library, search, booster, case), *judged), flush=True)


if __name__ == "__main__":
    main()
