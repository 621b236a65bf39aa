"""Finding recourse: many people at once against one at a time.

The loop re-creates the published set-up: one person at a time, a black box with
central differences over all features, a sweep over ten prices of distance and ten
bisections of them, Adam with a falling rate. (The library used there spends most of its
time outside the model; that part is not re-created.) Ratios are per person, in one run.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from countermove.data.cleaning import clean
from countermove.data.rows import Rows, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import Schema, load_schema
from countermove.data.sources import EMBEDDED, read_raw, user_files
from countermove.data.standardise import Standardiser
from countermove.people import ActionSet
from countermove.recourse import Settings, advice_table, recommend
from countermove.scores import LinearScore, MLPScore, Score
from countermove.scores.base import values

FEATURES, ACTIONABLE, WIDTH = 9, (1, 4), 0.75
"""The shape of the paper's adult table: nine features, two of them actionable."""
THRESHOLD = 0.5
ORDERS, SWEEP, BISECTIONS, MOST, PATIENCE = 10, 100, 10, 1000, 50
RATE, EPSILON, ENOUGH = 0.1, 0.01, 5
SCHEMAS = Path(__file__).parents[1] / "conf" / "base" / "schemas"
RAW = Path(__file__).parents[1] / "data" / "01_raw"


def trained(hidden: tuple[int, ...] = (100, 100)) -> MLPScore:
    """Return a network of about a quarter favourable decisions, trained for a few seconds."""
    torch.manual_seed(0)
    draws = np.random.default_rng(0)
    X = draws.normal(size=(4000, FEATURES))
    wish = np.sin(2 * X[:, 1]) + X[:, 4] * X[:, 0] + X[:, 2:4].sum(axis=1) - 1.0
    label = torch.from_numpy((wish + 0.3 * draws.normal(size=len(X)) > 0).astype(np.float64))
    score = MLPScore(FEATURES, hidden, dropout=0.0)
    optimiser = torch.optim.Adam(score.parameters(), lr=0.005)
    rows = torch.from_numpy(X)
    for _ in range(20):
        for part in torch.randperm(len(rows)).split(200):
            optimiser.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(
                score(rows[part]), label[part]
            ).backward()
            optimiser.step()
    return score.eval()


def box() -> ActionSet:
    """Return the two actionable features' box."""
    most = np.zeros(FEATURES)
    most[list(ACTIONABLE)] = WIDTH
    return ActionSet(lower=-most, upper=most)


def seconds(action: Callable[[], Any]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


Slope = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From people, where they started and the price of distance to probability and gradient."""


def by_differences(score: Score) -> Slope:
    """Return the published gradient: central differences of a black box, one person at a time.

    Four calls of the model per step, as there: the value that is checked, the value in
    the loss, and the two sides of the differences.
    """

    def black_box(X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return torch.sigmoid(score(torch.from_numpy(X))).numpy()

    def slope(X: np.ndarray, start: np.ndarray, price: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shift = EPSILON * np.eye(X.shape[1], dtype=X.dtype)
        checked, p = black_box(X), black_box(X)
        rise = (black_box(X + shift) - black_box(X - shift)) / (2.0 * EPSILON)
        return checked, 2.0 * (p - 1.0)[:, None] * rise + price[:, None] * np.sign(X - start)

    return slope


def by_chain_rule(score: Score) -> Slope:
    """Return the gradient of the same loss, exact and for everybody at once."""

    def slope(X: np.ndarray, start: np.ndarray, price: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, rise = (part.numpy() for part in score.value_and_gradient(torch.from_numpy(X)))
        p = expit(value)
        slope = (2.0 * (p - 1.0) * p * (1.0 - p))[:, None] * rise
        return p, slope + price[:, None] * np.sign(X - start)

    return slope


def descend(slope_of, start, low, high, price, x, moments, first_step, steps, patience):
    """Take Adam steps on some people together; return where, who succeeded, and their best."""
    n = len(start)
    best, worth = np.full_like(start, np.nan), np.full(n, np.inf)
    hits, met, missed = np.zeros(n, int), np.zeros(n, int), np.zeros(n, int)
    m, v = moments
    for t in range(first_step, first_step + steps):
        live = np.flatnonzero(np.maximum(met, missed) < patience)
        if not live.size:
            break
        p, slope = slope_of(x[live], start[live], price[live])
        good = p >= THRESHOLD
        distance = np.abs(x[live] - start[live]).sum(axis=1)
        wins = good & (distance < worth[live])
        best[live[wins]], worth[live[wins]] = x[live[wins]], distance[wins]
        hits[live[good]] += 1
        met[live] = np.where(good, met[live] + 1, 0)
        missed[live] = np.where(good, 0, missed[live] + 1)
        m[live] = 0.9 * m[live] + 0.1 * slope
        v[live] = 0.999 * v[live] + 0.001 * slope**2
        scale = RATE * (1.0 - (t - first_step) / steps) + 1e-12
        k = t + 1
        step = scale * (m[live] / (1 - 0.9**k)) / (np.sqrt(v[live] / (1 - 0.999**k)) + 1e-8)
        x[live] = np.clip(x[live] - step, low[live], high[live])
    return x, hits, best, worth


def published(slope_of: Slope, X: np.ndarray, actions: ActionSet) -> np.ndarray:
    """Run the published search on the rows together; return who is found to have recourse."""
    low, high = ((X + part).astype(X.dtype) for part in actions.box(X.astype(np.float64)))
    n = len(X)
    x, best, worth = X.copy(), np.full_like(X, np.nan), np.full(n, np.inf)
    prices = 0.001 / 10.0 ** np.arange(ORDERS)
    hits = np.zeros((n, ORDERS), int)
    for order, value in enumerate(prices):
        moments = np.zeros_like(X), np.zeros_like(X)
        price = np.full(n, value, X.dtype)
        x, hits[:, order], found, cost = descend(
            slope_of, X, low, high, price, x, moments, 0, SWEEP, SWEEP + 1
        )
        wins = cost < worth
        best[wins], worth[wins] = found[wins], cost[wins]
    # Between the second price that succeeds and the last that fails (else the first price).
    second = (np.cumsum(hits > 0, axis=1) >= 2).argmax(axis=1)
    failed = hits == 0
    last = np.where(failed.any(axis=1), ORDERS - 1 - failed[:, ::-1].argmax(axis=1), 0)
    lower, upper = prices[second].copy(), prices[last].copy()
    price, x = 0.5 * (lower + upper), X.copy()
    for _ in range(BISECTIONS):
        moments = np.zeros_like(X), np.zeros_like(X)
        x, hit, found, cost = descend(
            slope_of, X, low, high, price.astype(X.dtype), x, moments, 0, MOST, PATIENCE
        )
        wins = cost < worth
        best[wins], worth[wins] = found[wins], cost[wins]
        enough = hit >= ENOUGH
        lower = np.where(enough, np.maximum(price, lower), lower)
        upper = np.where(enough, upper, np.minimum(price, upper))
        price = 0.5 * (lower + upper)
    return ~np.isnan(best).any(axis=1)


def gradient_rows(people: int = 6, crowd: int = 1000) -> list[str]:
    """Return the comparison of gradient recourse."""
    score, actions = trained(), box()
    X = np.random.default_rng(1).normal(size=(4 * crowd, FEATURES))
    refused = X[values(score, X) < 0.0][:crowd]
    # The published network computes in single precision; both sides of the ratio do so here.
    single, rows = copy.deepcopy(score).float(), refused.astype(np.float32)
    loop, exact = by_differences(single), by_chain_rule(single)
    alone: list[bool] = []
    one = seconds(
        lambda: alone.extend(bool(published(loop, rows[[i]], actions)[0]) for i in range(people))
    )
    together: list[np.ndarray] = []
    same = seconds(lambda: together.append(published(exact, rows, actions)))
    quick = Settings(starts=1, steps=200)
    adam: list[Any] = []
    ours = seconds(
        lambda: adam.append(
            recommend(score, refused, "gradient", THRESHOLD, actions, settings=quick)
        )
    )
    lp: list[Any] = []
    linear = seconds(
        lambda: lp.append(recommend(score, refused, "linear_program", actions=actions))
    )
    base = one / people
    agree = int((together[0][:people] == np.array(alone)).sum())

    def line(name: str, spent: float, n: int, found: float, limit: str) -> str:
        each = spent / n
        return f"| {name} | {n} | {1e3 * each:.2f} | {base / each:,.0f} {limit} | {found:.3f} |"

    return [
        "| gradient recourse, two tanh layers of 100 | people | ms each | times faster | found |",
        "|---|---|---|---|---|",
        line("published algorithm, one person at a time", one, people, float(np.mean(alone)), ""),
        line(
            f"same algorithm, all together ({agree}/{people} agree)",
            same, crowd, float(together[0].mean()), "(goal 200)",
        ),
        line(
            "`gradient`, one start", ours, crowd,
            float((adam[0].status == "FOUND").mean()), "(goal 1,000)",
        ),
        line("`linear_program`", linear, crowd, float((lp[0].status == "FOUND").mean()), ""),
    ]  # fmt: skip


def crowd_rows(n: int = 100_000) -> list[str]:
    """Return wall and processor time of linear-program advice for many people, on one core."""
    X = np.random.default_rng(2).normal(size=(n, FEATURES))
    rule = LinearScore(FEATURES, torch.Generator().manual_seed(1))
    rows = [
        "| linear_program advice | people | refused | found | s (goal 5) | processor s |",
        "|---|---|---|---|---|---|",
    ]
    network, cores = trained(), os.cpu_count() or 1
    for name, score, threads in (
        ("linear score", rule, 1),
        ("two tanh layers of 100", network, 1),
        (f"two tanh layers of 100, {cores} cores", network, cores),
    ):
        torch.set_num_threads(threads)
        start, busy = time.perf_counter(), time.process_time()
        status = recommend(score, X, "linear_program", actions=box()).status
        spent, busy = time.perf_counter() - start, time.process_time() - busy
        torch.set_num_threads(1)
        rows.append(
            f"| {name} | {n:,} | {(status != 'NOT_NEEDED').sum():,} "
            f"| {(status == 'FOUND').sum():,} | {spent:.2f} | {busy:.2f} |"
        )
    return rows


def constrained(schema: Schema, units: Standardiser) -> ActionSet:
    """Return german's actions where an amount rises no more than the duration (both in sd)...

    ... and both accounts together rise by one standard deviation at most.
    """
    names, actions = schema.feature_names, ActionSet.from_schema(schema, units)
    A = np.zeros((2, len(names)))
    A[0, [names.index("duration_months"), names.index("credit_amount")]] = 1.0, -1.0
    A[1, [names.index("checking_status"), names.index("savings_status")]] = -1.0
    return actions._copy(A=A, b=[0.0, 1.0])


def fitted_rule(name: str) -> tuple[Schema, Standardiser, Rows, LinearScore]:
    """Return a table in standardised units and its logistic regression."""
    from sklearn.linear_model import LogisticRegression

    schema = load_schema(name, SCHEMAS)
    table = clean(read_raw(name, RAW, schema), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    people = rows_of(standardised_table(table, schema, units), schema)
    fitted = LogisticRegression(C=0.1, max_iter=1000).fit(people.X, people.y)
    rule = LinearScore(people.X.shape[1])
    with torch.no_grad():
        rule.weight.copy_(torch.from_numpy(fitted.coef_[0]))
        rule.bias.fill_(float(fitted.intercept_[0]))
    return schema, units, people, rule


def german_rows() -> list[str]:
    """Return people per second of the exact method on the German credit table."""
    schema, units, people, rule = fitted_rule("german")
    allowed = {
        "": ActionSet.from_schema(schema, units),
        ", two constraints": constrained(schema, units),
    }
    rows = [
        "| integer_program on german | refused | found | proven none | people/s (goal 200) |",
        "|---|---|---|---|---|",
    ]
    for (said, actions), threshold in product(allowed.items(), (0.7, 0.95)):
        answer: list[Any] = []
        spent = seconds(
            lambda t=threshold, on=actions, a=answer: a.append(  # type: ignore[misc]
                recommend(rule, people.X, "integer_program", t, on)
            )
        )
        status = answer[0].status
        refused = int((status != "NOT_NEEDED").sum())
        rows.append(
            f"| approved from {threshold}{said} | {refused} | {(status == 'FOUND').sum()} "
            f"| {(status == 'PROVEN_NONE').sum()} | {refused / spent:,.0f} |"
        )
    return rows


def _in_words(seed: int, many: int) -> tuple[int, int]:
    """Advise refused people of credit, drawn at random, in words; return found and proven."""
    schema, units, people, rule = fitted_rule("credit")
    reached = values(rule, people.X)
    refused = np.flatnonzero(reached < np.quantile(reached, 0.3))
    who = np.random.default_rng(seed).choice(refused, many)
    X, cut = people.X[who], float(expit(np.quantile(reached, 0.3)))
    actions = ActionSet.from_schema(schema, units).with_windows(X, people.windows.iloc[who])
    advice = recommend(rule, X, "auto", cut, actions, digits=2)
    advice_table(advice, X, schema, units, model=rule)
    return int((advice.status == "FOUND").sum()), int(advice.proven_cheapest.sum())


def exact_rows(goals: dict[str, float] | None = None, many: int = 100_000) -> list[str]:
    """Return processor time of proven cheapest advice per refused person, compiled code loaded."""
    goals = {"credit": 1.0, "german": 2.0, "adult": 1.0} if goals is None else goals
    rows = [
        "| auto | refused | found | proven cheapest | ms a person (goal) |",
        "|---|---|---|---|---|",
    ]
    for name, goal in goals.items():
        if name not in EMBEDDED and not user_files(name, RAW):
            rows.append(f"| {name}: not fetched | | | | ({goal:g}) |")
            continue
        schema, units, people, rule = fitted_rule(name)
        cut = float(expit(np.quantile(values(rule, people.X), 0.3)))
        for words, possible in (("each column by itself", False), ("possible people", True)):
            actions = ActionSet.from_schema(schema, units, possible)
            actions = actions.with_windows(people.X, people.windows)
            recommend(rule, people.X[:1], "auto", 0.999, actions.of_rows([0]))
            answer: list[Any] = []
            spent = seconds(
                lambda a=answer, r=rule, p=people, t=cut, on=actions: a.append(  # type: ignore[misc]
                    recommend(r, p.X, "auto", t, on)
                )
            )
            status, proven = answer[0].status, answer[0].proven_cheapest
            refused = int((status != "NOT_NEEDED").sum())
            rows.append(
                f"| {name}, {refused / len(status):.0%} refused, {words} | {refused:,} "
                f"| {(status == 'FOUND').sum():,} | {proven.sum():,} "
                f"| {1e3 * spent / refused:.3f} ({goal:g}) |"
            )
    start = time.perf_counter()
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        parts = list(pool.map(_in_words, [0, 1], [many // 2] * 2))
    found, proven = (sum(part[k] for part in parts) for k in (0, 1))
    rows.append(
        f"| credit, possible people, two digits, in words, 2 cores | {many:,} | {found:,} "
        f"| {proven:,} | {time.perf_counter() - start:.1f} s in all, start of the processes "
        "included (60 s) |"
    )
    return rows


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    for part in (exact_rows, gradient_rows, crowd_rows, german_rows):
        print("\n".join(part()), flush=True)
        print()


if __name__ == "__main__":
    main()
