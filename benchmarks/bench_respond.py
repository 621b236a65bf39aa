"""Answering for two million people: time against `X @ w` plus a copy, and memory.

Every line is the median of alternating rounds in one process on one thread, so
that a busy machine slows both sides alike. Memory is the rise of the process's
peak over its size before, relative to input plus output.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from multiprocessing import get_context

import numpy as np
import torch

from benchmarks.memory import high_water_mark
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.people import (
    ActionSet,
    ConicCost,
    Cost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
)
from countermove.response import (
    AscentResponse,
    BestResponse,
    ConicResponse,
    Response,
    ScalarResponse,
)
from countermove.scores import LinearScore

PEOPLE, FEATURES, ROUNDS, LIMIT = 2_000_000, 15, 5, 6.0
QUANTILES, FEW = (0.3, 0.6, 0.9), 60


def rule() -> LinearScore:
    """Return a rule that refuses about half of the people."""
    return LinearScore(FEATURES, torch.Generator().manual_seed(1))


def crowd(n: int = PEOPLE) -> np.ndarray:
    """Return standardised people, scaled as in the SERM experiments."""
    return np.random.default_rng(0).normal(size=(n, FEATURES)) / np.sqrt(FEATURES)


def responses() -> dict[str, Response]:
    """Return what is measured."""
    box = ActionSet(min_value=np.full(FEATURES, -0.7), max_value=np.full(FEATURES, 0.7))
    cost: Cost = QuadraticCost(1.0)
    direction = np.random.default_rng(1).normal(size=FEATURES)
    return {
        "best": BestResponse(cost),
        "smooth": ScalarResponse(cost),
        "smooth, stay": ScalarResponse(cost, start="stay"),
        "published": ScalarResponse(cost, None, 0.2, "stay", False, "last_proxy"),
        "best, binding box": BestResponse(cost, box),
        "smooth, binding box": ScalarResponse(cost, box),
        "best, mixture": BestResponse(MixtureCost(direction, 0.3)),
        "smooth, mixture": ScalarResponse(MixtureCost(direction, 0.3)),
        "best, mixture, binding box": BestResponse(MixtureCost(direction, 0.3), box),
    }


def seconds(action) -> float:  # type: ignore[no-untyped-def]
    """Return the wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(name: str) -> tuple[float, float, float]:
    """Return yardstick seconds, response seconds and the share of memory, in a fresh process."""
    torch.set_num_threads(1)
    score, response = rule(), responses()[name]
    w = score.weight.detach().numpy()
    response.respond(score, crowd(1000))
    X = crowd()
    before = high_water_mark()
    found = response.respond(score, X)
    rise = high_water_mark() - before
    outputs = sum(part.nbytes for part in (found.x_new, found.cost, found.moved, found.converged))
    share = (X.nbytes + rise) / (X.nbytes + outputs)
    del found
    rounds = [
        (seconds(lambda: X @ w) + seconds(X.copy), seconds(lambda: response.respond(score, X)))
        for _ in range(ROUNDS)
    ]
    yard, spent = np.median(np.array(rounds), axis=0)
    return float(yard), float(spent), float(share)


def credit_people() -> tuple[LinearScore, np.ndarray, ActionSet]:
    """Return credit's people, what they may do, and a rule along the label that refuses 60 %."""
    schema = load_schema("credit", "conf/base/schemas")
    table = clean(read_embedded("credit"), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    rows = rows_of(standardised_table(table, schema, units), schema)
    actions = ActionSet.from_schema(schema, units).with_windows(rows.X, rows.windows)
    score = LinearScore(rows.X.shape[1])
    weight = (rows.X * rows.y[:, None]).mean(axis=0)
    with torch.no_grad():
        score.weight[:] = torch.from_numpy(weight)
        score.bias.fill_(-float(np.quantile(rows.X @ weight, 0.6)))
    return score, rows.X, actions


def possible_calls(response: Response, score: LinearScore, X: np.ndarray) -> dict[str, object]:
    """Return what training, thresholds and evaluation ask of a response."""
    rows = torch.from_numpy(X)

    def without_gradient() -> None:
        with torch.no_grad():
            response.scores_after(score, rows)

    calls = {
        "respond": lambda: response.respond(score, X),
        "decisions": lambda: response.decisions_after(score, X),
        "scores with gradient": lambda: response.scores_after(score, rows),
        "scores": without_gradient,
    }
    if isinstance(response, BestResponse):
        calls["crossing"] = lambda: response.crossing_cost(score, X)
    return calls


def processor_seconds(action) -> float:  # type: ignore[no-untyped-def]
    """Return the processor time of one call."""
    start = time.process_time()
    action()
    return time.process_time() - start


def measure_possible() -> None:
    """Print what it costs that people stay possible, per person and against columns alone."""
    torch.set_num_threads(1)
    score, X, actions = credit_people()
    print("| possible people, credit | plain, µs | possible, µs | ratio (limit 20) |")
    print("|---|---|---|---|")
    for kind, make in (("best", BestResponse), ("smooth", ScalarResponse)):
        sides = [
            possible_calls(make(actions=allowed), score, X)
            for allowed in (actions.with_possible(None), actions.obeyed_in_responses())
        ]
        for name in sides[0]:
            for calls in sides:
                calls[name]()
            rounds = [[processor_seconds(calls[name]) for calls in sides] for _ in range(ROUNDS)]
            plain, possible = np.median(np.array(rounds), axis=0) / len(X) * 1e6
            ratio = possible / plain
            print(f"| {kind}, {name} | {plain:.2f} | {possible:.2f} | {ratio:.1f} |", flush=True)
    measure_whole_steps(score, X, actions)
    measure_programs(score, X, actions)


def measure_whole_steps(score: LinearScore, X: np.ndarray, actions: ActionSet) -> None:
    """Print what decisions in whole steps take, and how far they are from those in any steps."""
    people = BestResponse(actions=actions.obeyed_in_responses())
    people.decisions_in_whole_steps(score, X[:50])
    spent = []
    for refused in QUANTILES:
        rule = at_quantile(score, X, refused)
        start = time.process_time()
        whole = people.decisions_in_whole_steps(rule, X)
        spent.append((time.process_time() - start) / len(X) * 1e3)
        relaxed = people.decisions_after(rule, X)
        print(
            f"\nwhole steps, {refused:.0%} refused: {spent[-1]:.3f} ms a person (limit 1); "
            f"approved {whole.mean():.4f}, relaxed {relaxed.mean():.4f}",
            flush=True,
        )


def at_quantile(score: LinearScore, X: np.ndarray, refused: float) -> LinearScore:
    """Return the same rule at the threshold that refuses a share of the people."""
    rule = LinearScore(X.shape[1])
    weight = score.weight.detach()
    with torch.no_grad():
        rule.weight[:] = weight
        rule.bias.fill_(-float(np.quantile(X @ weight.numpy(), refused)))
    return rule


def measure_programs(score: LinearScore, X: np.ndarray, actions: ActionSet) -> None:
    """Print what convex programs per branch, and climbing, take for possible people."""
    who = np.random.default_rng(0).permutation(len(X))[:FEW]
    own = actions.of_rows(who)
    d = X.shape[1]
    cross = MahalanobisCost(np.eye(d) + 0.1)
    print(f"\n| possible people, {FEW} of credit | plain, ms | possible, ms | ratio (limit 20) |")
    print("|---|---|---|---|")
    for name, make in (
        ("conic smooth", lambda allowed: ConicResponse(QuadraticCost(), allowed)),
        ("conic best, Mahalanobis", lambda allowed: BestResponse(ConicCost(_matrix), allowed)),
        ("best, Mahalanobis", lambda allowed: BestResponse(cross, allowed)),
        ("ascent", lambda allowed: AscentResponse(actions=allowed)),
    ):
        spent = []
        for allowed in (own.with_possible(None), own.obeyed_in_responses()):
            response = make(allowed)
            response.respond(score, X[who], on_failure="mask")
            call = partial(response.respond, score, X[who], on_failure="mask")
            spent.append(processor_seconds(call) / FEW * 1e3)
        plain, possible = spent
        ratio = possible / plain
        print(f"| {name} | {plain:.3f} | {possible:.3f} | {ratio:.1f} |", flush=True)


def _matrix(x, x_new):  # type: ignore[no-untyped-def]
    """Return a cost with cross terms as CVXPY writes it."""
    import cvxpy as cp

    return cp.sum_squares(x_new - x) + 0.1 * cp.square(cp.sum(x_new - x))


def main() -> None:
    """Print the tables."""
    if sys.argv[1:] == ["possible"]:
        measure_possible()
        return
    print("| response | X @ w + copy, s | respond, s | ratio (limit 6) | memory (limit 1.2) |")
    print("|---|---|---|---|---|")
    for name in sys.argv[1:] or responses():
        with get_context("spawn").Pool(1) as pool:
            yard, spent, share = pool.apply(measure, (name,))
        ratio = spent / yard
        print(f"| {name} | {yard:.3f} | {spent:.3f} | {ratio:.1f} | {share:.2f} |", flush=True)
    if not sys.argv[1:]:
        print()
        measure_possible()


if __name__ == "__main__":
    main()
