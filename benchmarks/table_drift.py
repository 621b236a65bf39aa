"""Tables of docs/guides/drift.md: false alarms, power, and what is recommended.

    python -m benchmarks.table_drift alarms|recommendations|time [repetitions]

``alarms`` counts alarms at level 0.05 in tables of people whose cause is known,
``recommendations`` what the whole report recommends, ``time`` times one report on credit.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from tests.production.drift.known_answers import CAUSES, known_case

from countermove.certificates.intervals import share_interval
from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, rows_of, standardised_table
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.params import EvaluationParameters, SermParameters
from countermove.production.drift import DriftTerms, PeopleTable, drift_report, unexpected
from countermove.production.drift._comparison import scaled
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

SCHEMAS = Path(__file__).parents[1] / "conf" / "base" / "schemas"
SIZES = (500, 2_000)
TERMS = DriftTerms(permutations=199, bootstrap=50)


def alarms(repetitions: int) -> None:
    """Print the share of alarms for every cause and size; more runs where none is due."""
    for name, cause in CAUSES.items():
        number = 8 * repetitions if cause.answer == "keep" else repetitions
        for size in SIZES:
            count = 0
            for seed in range(number):
                case = known_case(name, size, size, seed)
                tables = case.reference, case.observed
                count += unexpected(*tables, case.model, case.response, TERMS, seed)
            low, high = share_interval(count, number, 0.05)
            print(f"{name} | {size} | {count}/{number} | {low:.3f} to {high:.3f}", flush=True)


def recommendations(repetitions: int) -> None:
    """Print what the report recommends for every cause."""
    for name, cause in CAUSES.items():
        found: Counter[str] = Counter()
        for seed in range(repetitions):
            case = known_case(name, SIZES[1], SIZES[1], 10_000 + seed)
            tables = case.reference, case.observed
            report = drift_report(*tables, case.model, case.response, TERMS, seed)
            found[report.recommendation] += 1
        print(f"{name} | {cause.answer} | {dict(found)}", flush=True)


def report_time(repetitions: int) -> None:
    """Print processor seconds of a report on credit: 24,000 people before, 6,000 others after."""
    from sklearn.linear_model import LogisticRegression

    schema = load_schema("credit", SCHEMAS)
    table = clean(read_embedded("credit"), schema)
    units = fit_standardiser(table, schema, divide_by_root_d=False)
    people = rows_of(standardised_table(table, schema, units), schema)
    order = np.random.default_rng(0).permutation(len(people.y))
    before, after = order[:24_000], order[24_000:]
    fitted = LogisticRegression(max_iter=1000, C=0.1).fit(people.X[before], people.y[before])
    score = LinearScore(people.X.shape[1])
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(fitted.coef_[0]))
        score.bias.fill_(float(fitted.intercept_[0]) - 1.0)
    responses, stated = EvaluationParameters().responses(SermParameters(), schema, units)
    response = responses[next(iter(stated))]
    grown = max(range(people.X.shape[1]), key=lambda j: len(np.unique(people.X[:, j])))
    for what, factor, growth in (
        ("as modelled", 1.0, 0.0),
        ("a move costs twice as much", 2.0, 0.0),
        ("as modelled, and one feature grows by 0.1", 1.0, 0.1),
    ):
        theirs = scaled(response, factor).of_rows(after)
        came = people.X[after] + growth * np.eye(people.X.shape[1])[grown]
        seen = PeopleTable(theirs.respond(score, came).x_new, people.y[after])
        old = PeopleTable(people.X[before], people.y[before])
        for _ in range(repetitions):
            start = time.process_time()
            report = drift_report(old, seen, PublishedModel(score, units, ""), response)
            spent = time.process_time() - start
            print(f"{what} | {report.recommendation} | {spent:.2f} s", flush=True)
        print(report.words, flush=True)


def main() -> None:
    """Print one table."""
    torch.set_num_threads(1)
    tables = {"alarms": alarms, "recommendations": recommendations, "time": report_time}
    tables[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 3)


if __name__ == "__main__":
    main()
