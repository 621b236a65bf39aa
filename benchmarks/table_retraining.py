"""A year of retraining on real tables made to drift, against simple policies.

    python -m benchmarks.table_retraining [worlds] [results.jsonl]

The people are those of credit and give-me-some-credit (fetched), who respond as their schema and
the default settings say; both labels are equally frequent. Labels are drawn by boosted trees fitted
to the table's own, so whoever comes twice is two people. ``still``: nothing drifts. ``reweighted``:
people come the more often the more their label goes with a direction that the first rule does not
look at. ``relabelled``: labels follow the table's logistic rule, turned by 75 degrees in a year.
``at its best``: nothing drifts, and the first champion is fitted to everybody who may come: what is
promoted is promoted falsely. The oracle fits the month's rule to everybody who may come.
Finished years are appended to the file of results, so a run that was stopped goes on.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingClassifier
from tests.production.retraining.known_worlds import BASE, MONTHLY, MONTHS, Arrivals

from benchmarks.bench_retraining import HARMFUL, numbers, read, walk
from countermove._types import Floats
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw_table
from countermove.params import EvaluationParameters, SermParameters
from countermove.production.retraining.follower import Follower
from countermove.production.retraining.following import linear_score
from countermove.production.retraining.policy import FollowingPolicy
from countermove.production.retraining.reach import ReachModel
from countermove.production.retraining.set_back import SetBackRows, as_seen, fit
from countermove.response import Response

ROOT = Path(__file__).parents[1]
TABLES = ("credit", "give-me-some-credit")
DRIFTS = ("still", "reweighted", "relabelled")
BEST = "at its best"
JUDGES = 6_000
TURNED = 75.0
"""Degrees by which the rule of the labels turns in a year."""
TILT = 0.06
"""By which the log-weight of a person grows in a month, per spread of the direction."""
WINDOW = 3
"""Months that the simple policies look back."""
LEVEL = 0.05
FIRST = 2_000
"""Number of the first world: nothing was chosen on these, nor were they seen before (as those from
1,000 on were, under an earlier policy)."""


@cache
def people_of(name: str) -> tuple[Floats, Floats, Response]:
    """Return a table, standardised, the chance of good labels, and how its people respond."""
    schema = load_schema(name, ROOT / "conf" / "base" / "schemas")
    table = clean(read_raw_table(name, ROOT / "data" / "01_raw", schema).frame, schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, units), schema)
    responses, stated = EvaluationParameters().responses(SermParameters(), schema, units)
    trees = HistGradientBoostingClassifier(max_leaf_nodes=15, random_state=0).fit(rows.X, rows.y)
    return rows.X, trees.predict_proba(rows.X)[:, 1], responses[stated[0]]


class TableWorld:
    """People of a real table whose labels drift, with the face of the benchmark's other worlds."""

    people = ReachModel()

    def __init__(self, name: str, drift: str, seed: int) -> None:
        X, chance, self.movers = people_of(name)
        self.seed, self.drift, self._best = seed, drift, dict[int, float]()
        draws = np.random.default_rng([20_261_117, seed])
        order = draws.permutation(len(X))
        # Nobody is judged on who came.
        self._judged, self._came = (
            (X[who], chance[who]) for who in (order[:JUDGES], order[JUDGES:])
        )
        self._balance = 0.5 / chance.mean(), 0.5 / (1.0 - chance.mean())
        self.first = self.other = np.zeros(X.shape[1])
        self.law = self._fitted(0, *self._came, drift="still")
        spread = np.cov(X.T)
        first = self.law[:-1] / np.sqrt(self.law[:-1] @ spread @ self.law[:-1])
        other = draws.standard_normal(X.shape[1])
        other -= first * float(first @ spread @ other)
        self.first, self.other = first, other / np.sqrt(other @ spread @ other)
        self._base = self._drawn(0, BASE, draws)

    def _turned(self, month: int) -> Floats:
        """Return weights and intercept of a month's labels."""
        angle = np.radians(TURNED * month / MONTHS)
        size = float(np.linalg.norm(self.law[:-1]) / np.linalg.norm(self.first))
        direction = np.cos(angle) * self.first + np.sin(angle) * self.other
        return np.append(size * direction, self.law[-1])

    def _masses(
        self, month: int, X: Floats, chance: Floats, drift: str | None = None
    ) -> tuple[Floats, Floats]:
        """Return how often people come in a month with a favourable label, and with the other."""
        drift = self.drift if drift is None else drift
        up, down = chance * self._balance[0], (1.0 - chance) * self._balance[1]
        if drift == "reweighted":
            tilt = np.exp(TILT * month * np.clip(X @ self.other, -3.0, 3.0))
            up, down = up * tilt, down / tilt
        if drift == "relabelled":
            favourable = expit(np.column_stack([X, np.ones(len(X))]) @ self._turned(month))
            up, down = (up + down) * favourable, (up + down) * (1.0 - favourable)
        return up, down

    def _fitted(self, month: int, X: Floats, chance: Floats, drift: str | None = None) -> Floats:
        """Return the rule fitted to everybody who may come in a month."""
        both, ones = self._masses(month, X, chance, drift), np.ones(len(X))
        tables = [as_seen(X, sign * ones) for sign in (1.0, -1.0)]
        return fit(tables, both, np.zeros(X.shape[1] + 1), iterations=40)

    def _drawn(self, month: int, n: int, draws: np.random.Generator) -> tuple[Floats, Floats]:
        """Return people who come in a month and their labels."""
        X, chance = self._came
        up, down = self._masses(month, X, chance)
        who = draws.choice(len(X), n, p=(up + down) / (up + down).sum())
        good = draws.random(n) < up[who] / (up + down)[who]
        return X[who], np.where(good, 1.0, -1.0)

    def base(self) -> tuple[Floats, Floats]:
        """Return the base table and its labels."""
        return self._base

    def arrivals(self, month: int, weight: Floats, bias: float) -> Arrivals:
        """Return a month's people after they responded to a rule."""
        draws = np.random.default_rng([9, self.seed, month])
        X, labels = self._drawn(month, MONTHLY, draws)
        rule = _rule(weight, bias)
        there = self.movers.respond(rule, X, on_failure="mask").x_new
        with torch.no_grad():
            approved = rule(torch.from_numpy(there)).numpy() >= 0.0
        return Arrivals(there, labels, approved)

    def accuracy(self, month: int, weight: Floats, bias: float) -> float:
        """Return the accuracy of a rule on the judging people of a month who respond to it."""
        X, chance = self._judged
        up, down = self._masses(month, X, chance)
        approved = self.movers.decisions_after(_rule(weight, bias), X)
        return float(np.where(approved, up, down).sum() / (up + down).sum())

    def oracle(self, month: int) -> float:
        """Return the accuracy of the rule fitted to everybody who may come in a month."""
        if month not in self._best:
            theta = self._fitted(month, *self._came)
            rows = self._drawn(month, JUDGES, np.random.default_rng([10, self.seed, month]))
            follower = Follower(*self._base, self.movers, FollowingPolicy(), self.seed)
            allowed = follower.allowance(theta, self.people, [as_seen(*rows)])
            self._best[month] = self.accuracy(month, *numbers(linear_score(theta, allowed)))
        return self._best[month]


def _rule(weight: Floats, bias: float) -> Any:
    return linear_score(np.append(weight, bias), 0.0)


def window(world: TableWorld, strategic: bool) -> list[float]:
    """Return the months' accuracy of a rule fitted to the newest months as they were seen."""
    X, y = world.base()
    follower = Follower(X, y, world.movers, FollowingPolicy(), world.seed)
    score, _ = follower.first(world.people)
    tables: list[SetBackRows] = []
    found = []
    for month in range(1, MONTHS + 1):
        rule = numbers(score)
        found.append(100.0 * world.accuracy(month, *rule))
        came = world.arrivals(month, *rule)
        tables = [*tables, as_seen(came.X, came.y)][-WINDOW:]
        theta = fit(tables, [1.0] * len(tables), np.zeros(X.shape[1] + 1), iterations=40)
        allowed = follower.allowance(theta, world.people, tables) if strategic else 0.0
        score = linear_score(theta, allowed)
    return found


def year(name: str, drift: str, seed: int) -> dict[str, Any]:
    """Walk a year under every policy; accuracies in points, by month."""
    if drift == BEST:
        world = TableWorld(name, "still", seed)
        return {"promotions": walk(world, natural=world.law).promotions}  # type: ignore[arg-type]
    world = TableWorld(name, drift, seed)
    followed = walk(world)  # type: ignore[arg-type]
    oracle = [100.0 * world.oracle(month) for month in range(1, MONTHS + 1)]
    ungated = walk(world, gated=False)  # type: ignore[arg-type]
    return {
        "following": [best - gap for best, gap in zip(oracle, followed.gaps, strict=True)],
        "never": [best - gap for best, gap in zip(oracle, followed.never, strict=True)],
        "blind window": window(world, strategic=False),
        "naive strategic window": window(world, strategic=True),
        "without a gate": [best - gap for best, gap in zip(oracle, ungated.gaps, strict=True)],
        "oracle": oracle,
        "promotions": followed.promotions,
    }


def table(said: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the table: mean accuracy, and by how much following is better, paired by world."""
    others = ("never", "blind window", "naive strategic window", "without a gate", "oracle")
    heads = " | ".join(f"over {other}" for other in others)
    yield f"| table, drift | worlds | following | {heads} | promotions | harmful |"
    yield "|---" * (5 + len(others)) + "|"
    for name, drift in ((name, drift) for name in TABLES for drift in DRIFTS):
        years = [each for each in said if each["cell"] == f"{name}, {drift}"]
        if len(years) < 2:
            continue
        own = np.array([np.mean(each["following"]) for each in years])
        gains = []
        for other in others:
            paired = own - np.array([np.mean(each[other]) for each in years])
            half = student.ppf(1.0 - 0.5 * LEVEL, len(paired) - 1) * paired.std(ddof=1)
            half /= np.sqrt(len(paired))
            mean = paired.mean()
            gains.append(f"{mean:+.2f} ({mean - half:+.2f} to {mean + half:+.2f})")
        made = [gain for each in years for _, _, gain in each["promotions"]]
        yield (
            f"| {name}, {drift} | {len(years)} | {own.mean():.2f} | {' | '.join(gains)} "
            f"| {len(made) / len(years):.1f} | {sum(gain < -HARMFUL for gain in made)} |"
        )
    for name in TABLES:
        years = [each for each in said if each["cell"] == f"{name}, {BEST}"]
        if years:
            yield ""
            count = sum(bool(each["promotions"]) for each in years)
            yield f"{name}: a champion {BEST} was replaced in {count} of {len(years)} still years."


def main() -> None:
    """Walk what is missing, and print the table."""
    torch.set_num_threads(1)
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        results = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(folder, "years.jsonl")
        done = {(each["cell"], each["seed"]) for each in read(results)}
        for seed in range(FIRST, FIRST + worlds):
            for name, drift in ((name, drift) for name in TABLES for drift in (*DRIFTS, BEST)):
                if (f"{name}, {drift}", seed) not in done:
                    said = {"cell": f"{name}, {drift}", "seed": seed} | year(name, drift, seed)
                    with results.open("a") as file:
                        file.write(json.dumps(said) + "\n")
        print("\n".join(table(read(results))))


if __name__ == "__main__":
    main()
