"""What a run left behind, as the golden set keeps it: one number or sentence a line.

``python tests/golden/frozen.py <project> <name>`` writes what a run of ``serm`` left of a table,
or a run of a small paper, as the new golden set; the change that needs it says why under
"Changed results". A third argument ``small`` brings the paper's file to that size first.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

HERE = Path(__file__).parent
REPORTS = ("summary", "metrics", "certificates", "recourse_audit")
VOLATILE = (".versions.", ".date", ".seconds")
"""Parts of a key whose value another day or machine changes."""
BOUND = ("model", "response", "labels", "name", "kind")
PEOPLE = ("row_id", "decision", "probability", "status", "label", "approved_after", "price")
ADVICE = ("cost", "probability_after", "lasting")
WITH_PEOPLE = ("tiny", "german", "credit")
"""Embedded tables; the people of a fetched one are not ours to keep."""
TOLERANCE = 1e-6
"""Relative, in costs and scores: the last digits may change where the mathematics is merged."""


def flattened(value: Any, key: str) -> dict[str, Any]:
    """Return the leaves of nested reports by their path."""
    if isinstance(value, dict):
        nested = value.items()
    elif isinstance(value, list):
        nested = enumerate(value)
    else:
        return {} if any(name in f"{key}." for name in VOLATILE) else {key: value}
    leaves: dict[str, Any] = {}
    for name, each in nested:
        leaves |= flattened(each, f"{key}.{name}")
    return leaves


def reports(project: Path, dataset: str) -> dict[str, Any]:
    """Return every number and sentence of a run's reports."""
    folder = project / "data" / "08_reporting" / dataset
    leaves: dict[str, Any] = {}
    for name in REPORTS:
        leaves |= flattened(json.loads((folder / f"{name}.json").read_text("utf-8")), name)
    for bound in json.loads((folder / "transfer_report.json").read_text("utf-8"))["bounds"]:
        leaves["bounds." + ".".join(str(bound[name]) for name in BOUND)] = bound["value"]
    return leaves


def people(project: Path, dataset: str) -> pd.DataFrame:
    """Return each person's decision, probability and advice, the words as a digest."""
    folder = project / "data" / "07_model_output" / dataset
    decisions = pd.read_parquet(folder / "decisions.parquet", columns=list(PEOPLE))
    advice = pd.read_parquet(folder / "advice.parquet")
    changes = [name for name in advice if name.startswith("change:")]
    kept = advice[["row_id", *ADVICE, *changes]].copy()
    spoken = advice["words"].fillna("") + advice["reasons"].fillna("")
    kept["words"] = [hashlib.sha256(text.encode()).hexdigest()[:8] for text in spoken]
    return decisions.merge(kept, on="row_id", how="left").sort_values("row_id", ignore_index=True)


def merged(settings: dict[str, Any], small: dict[str, Any]) -> dict[str, Any]:
    """Return settings with those of a small run in their place; lists item by item."""
    both = dict(settings)
    for name, value in small.items():
        before = settings.get(name)
        if isinstance(value, dict) and isinstance(before, dict) and name != "cases":
            both[name] = merged(before, value)
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            pairs = zip(before or [{}] * len(value), value, strict=False)
            both[name] = [merged(one, other) for one, other in pairs]
        else:
            both[name] = value
    return both


def fabricate_companies(project: Path) -> None:
    """Bring a table of companies with histories: the paper's own is not ours to keep."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 4, size=150)
    columns = [f"x{number}" for number in range(1, 84)]
    table = pd.DataFrame(rng.normal(size=(lengths.sum(), len(columns))), columns=columns)
    table["Company"] = np.repeat(np.arange(150), lengths)
    table["Time"] = np.concatenate([np.arange(length) for length in lengths])
    table["Financial Distress"] = table["x1"] + table["x2"]
    table["x80"] = 1
    table.to_csv(project / "data" / "01_raw" / "distress.csv", index=False)


def small_paper(path: Path) -> None:
    """Bring a file of conf/paper to the size of the golden run, where it stands."""
    config = yaml.safe_load(path.read_text("utf-8"))
    params = config["run"]["params"]
    (group,) = params
    small = yaml.safe_load((HERE / "papers.yml").read_text("utf-8"))[path.stem]
    params[group] = merged(params[group], small)
    if params[group].get("datasets") == ["distress"]:
        fabricate_companies(path.parents[2])
    path.write_text(yaml.safe_dump(config), "utf-8")


def tables(project: Path, paper: str) -> dict[str, Any]:
    """Return the cells of every table that a paper's run left, by file, column and row."""
    leaves: dict[str, Any] = {}
    for path in sorted((project / "data" / "08_reporting" / paper).glob("*.csv")):
        table = pd.read_csv(path)
        leaves[f"{path.name}.columns"] = ", ".join(table.columns)
        timed = [name for name in table if "seconds" in name]
        # Where a run was timed, a share is one of its time.
        for column in table.drop(
            columns=[*timed, *(["share"] if timed and "share" in table else [])]
        ):
            values = table[column].tolist()
            leaves |= {f"{path.name}.{column}.{row}": value for row, value in enumerate(values)}
    return leaves


def equal(one: Any, other: Any) -> bool:
    """Whether two leaves say the same: numbers up to the last digits."""
    if isinstance(one, float) and isinstance(other, float):
        both_missing = math.isnan(one) and math.isnan(other)
        return both_missing or math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=1e-7)
    return bool(one == other)


def differences(frozen: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return a line for every leaf that is new, gone or different."""
    keys = dict.fromkeys((*frozen, *now))
    return [
        f"{key}: {frozen.get(key, 'absent')!r} became {now.get(key, 'absent')!r}"
        for key in keys
        if key not in frozen or key not in now or not equal(frozen[key], now[key])
    ]


def write(project: Path, name: str) -> None:
    """Make a run the golden set of its table or paper."""
    paper = name in yaml.safe_load((HERE / "papers.yml").read_text("utf-8"))
    leaves = tables(project, name) if paper else reports(project, name)
    path = HERE / ("papers" if paper else "") / f"{name}.json"
    path.write_text(json.dumps(leaves, indent=0, ensure_ascii=False) + "\n", "utf-8")
    if name in WITH_PEOPLE:
        people(project, name).to_parquet(HERE / f"{name}.parquet", compression="zstd")


if __name__ == "__main__":
    if sys.argv[3:] == ["small"]:
        small_paper(Path(sys.argv[1], "conf", "paper", f"{sys.argv[2]}.yml"))
    else:
        write(Path(sys.argv[1]), sys.argv[2])
