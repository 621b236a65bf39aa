"""A year of retraining in worlds that drift, against an oracle that knows the month's law.

`python -m benchmarks.bench_retraining` walks five worlds a cell; `--worlds 20 --nulls 200 --results
years.jsonl` is the full table. Finished years are appended to that file, so a run that was stopped
goes on where it ended; `--print` only prints what is there. The nights are those of `retrain`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import binom
from tests.production.retraining.known_worlds import (
    CHANGE,
    MONTHLY,
    MONTHS,
    MOVABLE,
    STEEP,
    DriftingWorld,
)

from countermove._types import Floats
from countermove.production.retraining.evidence import MONTH, Look, weigh
from countermove.production.retraining.follower import Follower
from countermove.production.retraining.following import (
    DeployedRule,
    Memory,
    SeenBatch,
    linear_score,
)
from countermove.production.retraining.policy import FollowingPolicy
from countermove.production.retraining.set_back import SetBackRows, as_seen, log_likelihood
from countermove.scores import LinearScore

KINDS = ("still", "immutables", "rotation", "abrupt", "season", "price")
LIMITS = {
    "still": (0.2, 0.4), "immutables": (0.2, 0.4), "rotation": (1.4, 2.0), "abrupt": (1.8, 2.5),
    "season": (2.5, 3.0), "price": (0.6, 1.0), "rotation, a month late": (2.5, 3.3),
    "rotation, approved only": (1.7, 2.7),
}  # fmt: skip
WORLDS, NULLS = 3_000, 7_000
"""Numbers of the first worlds: nothing was chosen on these, nor were they seen before."""
HARMFUL = 0.5
"""Points that a promotion loses in the month after it to count as harmful."""


@dataclass
class Year:
    """What a year of one world came to, in points."""

    gaps: list[float] = field(default_factory=list)  # below the oracle, by month
    never: list[float] = field(default_factory=list)  # the same of the first champion
    promotions: list[tuple[int, str, float]] = field(default_factory=list)  # month, kind, gain
    seconds: list[float] = field(default_factory=list)  # CPU of a night


def numbers(score: LinearScore) -> tuple[Floats, float]:
    """Return weights and intercept."""
    return score.weight.detach().numpy(), float(score.bias.detach())


def walk(
    world: DriftingWorld,
    late: int = 0,
    approved_only: bool = False,
    natural: Floats | None = None,
    months: int = MONTHS,
    policy: FollowingPolicy | None = None,
    gated: bool = True,
) -> Year:
    """Walk the months of a world; ``natural`` is a first champion other than the fitted one.

    Where it is not ``gated``, every month's challenger is deployed.
    """
    X, y = world.base()
    follower = Follower(X, y, world.movers, policy or FollowingPolicy(), world.seed)
    score, allowance = follower.first(world.people)
    if natural is not None:
        allowance = follower.allowance(natural, world.people, [follower.base])
        score = linear_score(natural, allowance)
    deployed = DeployedRule("0", score, world.people, allowance)
    first, memory, year = numbers(score), Memory(), Year()
    seen: list[SeenBatch] = []
    labels: list[Floats] = []
    for month in range(1, months + 1):
        rule, best = numbers(deployed.score), world.oracle(month)
        year.gaps.append(100.0 * (best - world.accuracy(month, *rule)))
        year.never.append(100.0 * (best - world.accuracy(month, *first)))
        came = world.arrivals(month, *rule)
        labels.append(np.where(came.approved, came.y, np.nan) if approved_only else came.y)
        nobody = np.full(MONTHLY, np.nan)
        seen.append(SeenBatch(str(month), came.X, nobody, MONTH * month, deployed, nobody > 0.0))
        ready = month - late
        if ready > 0:
            seen = [_labelled(batch, labels[k], k + 1, ready) for k, batch in enumerate(seen)]
        started = time.process_time()
        night = follower.night(deployed, seen, memory)
        year.seconds.append(time.process_time() - started)
        promoted = night.proposal != "none" or not gated
        memory = night.after(promoted)
        if promoted:
            chosen = numbers(night.score)
            gain = world.accuracy(month + 1, *chosen) - world.accuracy(month + 1, *rule)
            year.promotions.append((month, night.proposal, 100.0 * gain))
            deployed = DeployedRule(str(month), night.score, night.people, night.allowance)
    return year


def _labelled(batch: SeenBatch, labels: Floats, month: int, ready: int) -> SeenBatch:
    """Return a batch with its labels once they have come."""
    if month > ready:
        return batch
    new = np.full(MONTHLY, month == ready)
    return SeenBatch(batch.name, batch.X, labels, batch.day, batch.rule, new)


def optimal(seed: int) -> dict[str, Any]:
    """Walk a still world whose champion is the law itself."""
    world = DriftingWorld("still", seed)
    direction, intercept = world.law(0)
    return asdict(walk(world, natural=STEEP * np.append(direction, intercept)))


def weaker(seed: int, points: float = 1.0) -> dict[str, Any]:
    """Walk three months of a still world whose champion is a point below the best rule."""
    world = DriftingWorld("still", seed)
    low, high = 0.0, 60.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        direction, reach = _turned(world, middle), world.reach(0)
        deployed = world.intercept - reach * float(np.linalg.norm(direction[:MOVABLE]))
        lost = 100.0 * (world.oracle(1) - world.accuracy(1, direction, deployed))
        low, high = (low, middle) if lost > points else (middle, high)
    natural = STEEP * np.append(_turned(world, high), world.intercept)
    return asdict(walk(world, natural=natural, months=3))


def _turned(world: DriftingWorld, angle: float) -> Floats:
    turned = np.radians(angle)
    found: Floats = np.cos(turned) * world.first + np.sin(turned) * world.other
    return found


def equal(seed: int, angle: float = 12.0, halfway: bool = False) -> dict[str, Any]:
    """Return whether a year promotes one of twelve challengers that are exactly as good.

    Champion and challenger lean to either side of the law, in a direction uncorrelated with it, so
    that their expected likelihood is the same: the boundary of the null. Where the equal rule is
    the one ``halfway`` to the challenger, the challenger is worse, and both are looked at.
    """
    world, policy = DriftingWorld("still", seed), FollowingPolicy()
    spread = world.factor @ world.factor.T
    side = world.other - world.first * float(world.first @ spread @ world.other) / float(
        world.first @ spread @ world.first
    )
    side *= np.tan(np.radians(angle)) / float(np.sqrt(side @ spread @ side))
    champion, other, beyond = (
        STEEP * np.append(world.first + lean * side, world.intercept) for lean in (1.0, -1.0, -3.0)
    )
    looks: list[Look] = []
    highest, promoted = -np.inf, False
    for month in range(1, MONTHS + 1):
        X, chance = world.people_of(month, MONTHLY, 1)
        y = np.where(np.random.default_rng([11, seed, month]).random(MONTHLY) < chance, 1.0, -1.0)
        rows = as_seen(X, y)
        looked = [_look_at(rule, champion, rows, month) for rule in (other, beyond)]
        looks.append(replace(looked[1], half=looked[0]) if halfway else looked[0])
        found = weigh(looks, [look.day for look in looks], 0.0, policy)
        highest, promoted = max(highest, found.value - found.limit), promoted or found.sufficient
    return {"promoted": bool(promoted), "crossed": bool(highest > 0.0)}


def _look_at(rule: Floats, champion: Floats, rows: SetBackRows, month: int) -> Look:
    """Compare two rules that were fitted to nobody."""
    gain = log_likelihood(rows, rule) - log_likelihood(rows, champion)
    ours, theirs = (
        int(((expit(rows.X @ theta) >= 0.5) == (rows.y > 0.5)).sum()) for theta in (rule, champion)
    )
    sums = (float(gain.sum()), float(gain @ gain))
    return Look(MONTH * month, MONTHLY, *sums, (0.0,), float(ours - theirs))


def halfway(seed: int) -> dict[str, Any]:
    """Return whether a year promotes a rule halfway that is exactly as good."""
    return equal(seed, halfway=True)


def cells() -> dict[str, Callable[[int], dict[str, Any]]]:
    """Return the cells of the table, each a function of the world's number."""

    def year(kind: str, rough: bool, **how: Any) -> Callable[[int], dict[str, Any]]:
        return lambda seed: asdict(walk(DriftingWorld(kind, seed, rough), **how))

    found = {kind: year(kind, False) for kind in KINDS}
    for kind in ("rotation", "abrupt"):
        found[f"{kind}, a month late"] = year(kind, False, late=1)
        found[f"{kind}, approved only"] = year(kind, False, approved_only=True)
    return found | {f"rough {kind}": year(kind, True) for kind in KINDS}


def run(path: Path, worlds: int, nulls: int) -> None:
    """Walk what is not in the file yet, and append it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {(said["cell"], said["seed"]) for said in read(path)}
    asked = [("equal", NULLS + seed, equal) for seed in range(nulls)]
    asked += [("halfway", NULLS + seed, halfway) for seed in range(nulls)]
    asked += [("weaker", NULLS + seed, weaker) for seed in range(min(nulls, 100))]
    asked += [
        (name, WORLDS + seed, cell) for seed in range(worlds) for name, cell in cells().items()
    ]
    asked += [("optimal", NULLS + seed, optimal) for seed in range(nulls)]
    for name, seed, cell in asked:
        if (name, seed) not in done:
            said = {"cell": name, "seed": seed, **cell(seed)}
            with path.open("a") as file:
                file.write(json.dumps(said) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the finished years."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(said: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of the table of gaps."""
    yield "| world | worlds | mean | worst | limit | never retrained | promotions | harmful |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in cells():
        years = [year for year in said if year["cell"] == name]
        if not years:
            continue
        gaps, never = (np.array([year[key] for year in years]) for key in ("gaps", "never"))
        made = [each for year in years for each in year["promotions"]]
        lost = sum(gain < -HARMFUL for _, _, gain in made)
        limit = " / ".join(map(str, LIMITS[name])) if name in LIMITS else ""
        yield (
            f"| {name} | {len(years)} | {gaps.mean():.2f} | {gaps.mean(axis=1).max():.2f} "
            f"| {limit} | {never.mean():.2f} | {len(made) / len(years):.1f} | {lost} |"
        )
    nights = [second for year in said for second in year.get("seconds", ())]
    if nights:
        yield ""
        most = np.quantile(nights, 0.99)
        yield f"A night takes {np.mean(nights):.2f} CPU s on average, 99 of 100 at most {most:.2f}."


def summary(said: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the sentences under the table."""
    for name in ("abrupt", "rough abrupt"):
        after = [year["gaps"][CHANGE] for year in said if year["cell"] == name]
        if after:
            near = sum(gap <= 1.0 for gap in after)
            yield f"{name}: within 1 point in the first month after it in {near} of {len(after)}."
    rate = FollowingPolicy().yearly_false_promotions
    counts = {
        "equal": [year["promoted"] for year in said if year["cell"] == "equal"],
        "equal to the rule halfway": [
            year["promoted"] for year in said if year["cell"] == "halfway"
        ],
        "optimal": [
            any(kind == "rule" for _, kind, _ in year["promotions"])
            for year in said if year["cell"] == "optimal"
        ],
    }  # fmt: skip
    for name, made in counts.items():
        if made:
            chance = float(binom.sf(sum(made) - 1, len(made), rate))
            yield (
                f"champion {name}: promoted in {sum(made)} of {len(made)} years; stated rate "
                f"{rate:g}, exact binomial p = {chance:.2g}."
            )
    power = [bool(year["promotions"]) for year in said if year["cell"] == "weaker"]
    if power:
        yield f"a point below: promoted within three months in {sum(power)} of {len(power)} worlds."


def main() -> None:
    """Walk, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=5, help="worlds a cell")
    parser.add_argument("--nulls", type=int, default=20, help="years without a better challenger")
    parser.add_argument("--results", type=Path, help="file of finished years, to go on from")
    parser.add_argument("--print", action="store_true", help="walk nothing")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = given.results or Path(folder, "years.jsonl")
        if not given.print:
            run(results, given.worlds, given.nulls)
        said = read(results)
    print("\n".join([*table(said), "", *summary(said)]))


if __name__ == "__main__":
    main()
