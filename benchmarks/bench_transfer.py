"""Foretelling what deployment does: all thresholds by one sort, and the whole report on credit.

The peer is scikit-learn's `roc_curve`, from which the error at every threshold follows. The
report is that of the chain: two rules, five responses, labels kept and following, every bound in
both forms. (The rules here are logistic regressions: training is not timed.)
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import roc_curve

from benchmarks.timing import cpu_seconds
from countermove.data.cleaning import clean
from countermove.data.rows import Rows, fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.params import EvaluationParameters, SermParameters
from countermove.scores import LinearScore
from countermove.transfer import Sample, fit_chances, transfer_report
from countermove.transfer.optimal import threshold_errors

SCHEMAS = Path(__file__).parents[1] / "conf" / "base" / "schemas"
ROWS = 100_000


def errors_by_roc(score: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the error at every threshold by scikit-learn, from the strictest on."""
    wrongly, rightly, _ = roc_curve(label, score, drop_intermediate=False)
    favourable = (label > 0).sum()
    return (wrongly * (len(label) - favourable) + (1.0 - rightly) * favourable) / len(label)


def threshold_rows() -> list[str]:
    """Compare one sort with scikit-learn's."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=ROWS)
    label = np.where(rng.random(ROWS) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    sample = Sample(score, label)
    if not np.allclose(
        np.sort(threshold_errors(sample).errors), np.sort(errors_by_roc(score, label))
    ):
        raise SystemExit("scikit-learn and the sort disagree")
    ours = cpu_seconds(lambda: threshold_errors(sample))
    theirs = cpu_seconds(lambda: errors_by_roc(score, label))
    return [
        f"| errors at all thresholds of {ROWS:,} rows | CPU s | times ours |",
        "|---|---|---|",
        f"| Countermove | {ours:.3f} | 1 |",
        f"| scikit-learn, `roc_curve` | {theirs:.3f} | {theirs / ours:.1f} |",
    ]


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
