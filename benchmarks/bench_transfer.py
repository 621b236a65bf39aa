"""Foretelling what deployment does: all thresholds by one sort, and the whole report on credit.

The loop judges every row at every threshold, as the published code does for its hundred
thresholds; it is timed on a few thresholds and multiplied, because all of them would take
days. The report is that of the chain: two rules, five responses, labels kept and following,
every bound in both forms. (The rules here are logistic regressions: training is not timed.)
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch

from countermove.data.cleaning import clean
from countermove.data.rows import Rows, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.params import EvaluationParameters, SermParameters
from countermove.scores import LinearScore
from countermove.transfer import Sample, fit_chances, transfer_report
from countermove.transfer.optimal import threshold_errors

SCHEMAS = Path(__file__).parents[1] / "conf" / "base" / "schemas"
ROWS, TIMED = 100_000, 5


def error_by_rows(score: np.ndarray, label: np.ndarray, threshold: float) -> float:
    """Return the error at one threshold, a row at a time."""
    wrong = 0
    for s, y in zip(score, label, strict=True):
        wrong += (s >= threshold) != (y > 0)
    return wrong / len(score)


def error_of_array(score: np.ndarray, label: np.ndarray, threshold: float) -> float:
    """Return the error at one threshold, all rows at once."""
    return float(np.mean((score >= threshold) != (label > 0)))


def threshold_rows() -> list[str]:
    """Compare one sort with a loop over thresholds."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=ROWS)
    label = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    sample = Sample(score, label)
    start = time.process_time()
    found = threshold_errors(sample)
    ours = time.process_time() - start
    some = np.linspace(0, ROWS - 1, TIMED).astype(int)
    lines = [
        f"| all thresholds of {ROWS:,} rows | thresholds timed | s for all | times faster |",
        "|---|---|---|---|",
    ]
    for name, judge, goal in (
        ("a row at a time", error_by_rows, " (goal 500)"),
        ("an array at a time", error_of_array, ""),
    ):
        start = time.process_time()
        told = [judge(score, label, found.thresholds[place]) for place in some]
        spent = (time.process_time() - start) / TIMED * len(found.thresholds)
        if not np.allclose(told, found.errors[some]):
            raise SystemExit("the loop and the sort disagree")
        lines.append(f"| {name} | {TIMED} | {spent:,.0f} | {spent / ours:,.0f}{goal} |")
    whole = f"| one sort | {len(found.thresholds):,} | {ours:.3f} | 1 |"
    return [*lines, whole]


def linear_rule(people: Rows, strictness: float) -> LinearScore:
    """Return a logistic regression whose bar is raised."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(max_iter=1000).fit(people.X, people.y)
    rule = LinearScore(people.X.shape[1])
    with torch.no_grad():
        rule.weight.copy_(torch.from_numpy(fitted.coef_[0]))
        rule.bias.fill_(float(fitted.intercept_[0]) - strictness)
    return rule


def report_rows() -> list[str]:
    """Time the report on the credit table, split as the chain splits it."""
    schema = load_schema("credit", SCHEMAS)
    table = clean(read_embedded("credit"), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    people = rows_of(standardised_table(table, schema, units), schema)
    order = np.random.default_rng(0).permutation(len(people.y))
    train, chosen, judged = order[:15_000], order[15_000:19_500], order[24_000:]
    made = Rows(people.ids[train], people.X[train], people.y[train], people.groups)
    rules = {"blind": linear_rule(made, 0.0), "strategic": linear_rule(made, 1.0)}
    evaluation = EvaluationParameters()
    responses, stated = evaluation.responses(SermParameters(), schema, units)
    lines = [
        "| transfer report on credit | rows judged | bounds | processor s (goal 5) |",
        "|---|---|---|---|",
    ]
    for name in ("first time in a process", "again"):
        start = time.process_time()
        chances = fit_chances(made.X, made.y)
        told = transfer_report(
            rules,
            (people.X[chosen], people.y[chosen]),
            (people.X[judged], people.y[judged]),
            responses,
            stated,
            chances=chances,
            terms=evaluation.build(),
        )
        spent = time.process_time() - start
        lines.append(f"| {name} | {len(judged):,} | {len(told.bounds)} | {spent:.2f} |")
    return lines


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    for part in (threshold_rows, report_rows):
        print("\n".join(part()), flush=True)
        print()


if __name__ == "__main__":
    main()
