"""The promise of recourse: its certificate and claims, what it costs, what accuracy buys people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.reporting.citing import Cited, CitedTable, Row
from countermove.reporting.words import called, promise_line, share

if TYPE_CHECKING:
    import pandas as pd

    from countermove.reporting.page import Findings

COST = "recourse_cost"
CLAIMS = {
    "recourse_miss_rate": "share of people refused without recourse",
    "recourse_miss_rate_after_response": (
        "share of people refused without recourse once they have responded to the rule"
    ),
    "refusal_rate_after_response": "share of people refused once they have responded to the rule",
    "refused_miss_rate": "share of the refused without recourse, as asked",
    "refused_without_recourse": "share of the refused without recourse",
    COST: "cost of recourse, for most of the refused",
    "error_after_response": "error once people have moved",
}
VERDICTS = {None: "not tested here", True: "the data support it", False: "the data refute it"}
BOUGHT = {"burden": "burden", "recourse_all": "share approved in the end"}
"""Hard measures drawn against accuracy, on test rows."""
LISTED = 12
"""Rows of the frontier a table shows: every so many of them, the chosen one always."""
CURVES = (
    ("promised_share", "surely approved or with recourse", "strategic", "solid"),
    ("accuracy", "accuracy", "good", "dash"),
)
"""Column of the frontier, words, colour and dash of each of its curves."""


def promise_facts(found: Findings) -> dict[str, Any]:
    """Return the promise in words, every claim with its level, and what the claims assume."""
    certificates = Cited("certificates.json", found.certificates)
    return {
        "promise": None if found.calibration is None else _promise(found, found.calibration),
        "claims": [_claim(certificates, i) for i in range(len(found.certificates))],
        "price": next((c["words"] for c in found.certificates if c["name"] == COST), None),
        "assumptions": _assumptions(found),
    }


def _promise(found: Findings, calibration: Mapping[str, Any]) -> dict[str, Any]:
    words = promise_line(calibration)
    cited = Cited(f"{found.output}/recourse_calibration.json", calibration)
    return {"words": f"{words[:1].upper()}{words[1:]}.", "n": cited.link("certificate", "n")}


def claimed(claim: Mapping[str, Any]) -> str:
    """Return what a claim is about; one about a group names it in brackets."""
    kind, _, group = claim["name"].partition("[")
    words: str = CLAIMS.get(kind, kind)
    return words + (f" ({group.removesuffix(']')})" if group else "")


def _claim(certificates: Cited, i: int) -> dict[str, Any]:
    """Return one line of the claims; one that is not promised has a reason in place of a value."""
    claim = certificates.value(i)
    facts = {"what": claimed(claim), "rows": certificates.link(i, "n"), "value": None}
    if claim["value"] is None:
        return facts | {"reason": claim["reason"]}
    return facts | {
        "side": "most" if claim["direction"] == "upper" else "least",
        "value": certificates.link(i, "value"),
        "level": certificates.link(i, "level", by=lambda value: share(value, 0)),
    }


def _assumptions(found: Findings) -> list[str]:
    """Return what the claims rest on, each statement once, and whether the data speak to it."""
    known: dict[str, Any] = {}
    for claim in found.certificates:
        for entry in claim.get("assumptions", ()):
            known.setdefault(entry["statement"], entry)
    return [
        f"{statement} ({entry['evidence'] or VERDICTS[entry['supported']]})"
        for statement, entry in known.items()
    ]


def tradeoffs_facts(found: Findings) -> dict[str, Any]:
    """Return promise against accuracy, and accuracy against social good."""
    points = found.tradeoff
    own = None if points is None else points[(points["dataset"] == found.dataset).to_numpy()]
    return {
        "frontier": _frontier(found),
        "curves": [] if points is None or own is None or own.empty else _curves(points, found),
        "command": "kedro run --pipeline=paper --params paper.experiment.kind=tradeoff,"
        f"paper.experiment.datasets=[{found.dataset}]",
    }


def _frontier(found: Findings) -> dict[str, Any] | None:
    """Return both curves over the threshold, the threshold chosen, and some rows."""
    if found.frontier is None or found.calibration is None:
        return None
    asked = 1.0 - found.calibration["terms"]["miss_rate"]
    chosen = float(found.calibration["threshold"])
    cited = CitedTable("recourse_frontier.csv", found.frontier)
    at = int((found.frontier["threshold"] - chosen).abs().to_numpy().argmin())
    return {
        "asked": share(asked, 0),
        "threshold": cited.link(at, "threshold"),
        "accuracy": cited.share(at, "accuracy"),
        "approved": cited.share(at, "approved"),
        "figure": _frontier_figure(found.frontier, asked, chosen, at),
        "rows": _frontier_rows(cited, at),
    }


def _frontier_figure(
    frontier: pd.DataFrame, asked: float, chosen: float, at: int
) -> dict[str, Any]:
    table = frontier.assign(promised_share=1.0 - frontier["miss_bound"])
    x = [float(value) for value in table["threshold"]]
    data: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": words,
            "x": x,
            "y": [float(value) for value in table[column]],
            "line": {"color": f"var:{colour}", "width": 2.5, "dash": dash},
            "hovertemplate": "threshold %{x:.3f}: %{y:.1%}<extra>" + words + "</extra>",
        }
        for column, words, colour, dash in CURVES
    ]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "the threshold chosen",
            "x": [chosen, chosen],
            "y": [float(table[column].iloc[at]) for column, *_ in CURVES],
            "marker": {"symbol": "star", "size": 14, "color": "var:mark"},
            "hovertemplate": "chosen: %{y:.1%}<extra></extra>",
        }
    )
    line = {"color": "var:soft", "dash": "dot", "width": 1.5}
    promise = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": asked, "y1": asked}
    layout = {
        "xaxis": {"title": {"text": "threshold on the probability"}},
        "yaxis": {"title": {"text": "share of people"}, "tickformat": ".0%"},
        "shapes": [promise | {"line": line}],
    }
    return {"data": data, "layout": layout}


def _frontier_rows(cited: CitedTable, at: int) -> list[Row]:
    """Return some rows of the frontier, the chosen one always among them."""
    step = max(1, -(-len(cited.table) // LISTED))
    return [
        (
            (cited.link(i, "threshold"), " (chosen)" if i == at else ""),
            cited.share(i, "accuracy"),
            cited.link(i, "miss_bound", by=lambda value: share(value, 2)),
            cited.share(i, "approved"),
        )
        for i in sorted({*range(0, len(cited.table), step), at})
    ]


def _curves(points: pd.DataFrame, found: Findings) -> list[dict[str, Any]]:
    """Return each measure against accuracy, a line per population of this table."""
    cited = CitedTable("../tradeoff/points.csv", points)
    rows = points.reset_index(drop=True)
    own = rows[rows["dataset"] == found.dataset]
    return [
        {
            "measure": measure,
            "words": words,
            "figure": _curve_figure(own, measure, words),
            "rows": _curve_rows(own, cited, measure),
        }
        for measure, words in BOUGHT.items()
    ]


def _curve_figure(own: pd.DataFrame, measure: str, words: str) -> dict[str, Any]:
    colours = ("strategic", "good", "bad", "mark", "blind")
    dashes = ("solid", "dash", "dot", "dashdot", "longdash")
    data: list[dict[str, Any]] = []
    many = len(set(own["split"])) > 1
    for i, (key, part) in enumerate(own.groupby(["split", "response", "training"], sort=False)):
        split, response, _ = key if isinstance(key, tuple) else (key, "", "")
        label = called(str(response)) + (f", split {split}" if many else "")
        look = {"color": f"var:{colours[i % 5]}", "dash": dashes[i % 5], "width": 2}
        data.append(_points(part, measure, label) | {"line": look})
        data.append(_points(part[part["chosen"]], measure, f"{label}, chosen") | _star())
    layout = {
        "xaxis": {"title": {"text": "accuracy"}, "tickformat": ".1%", "nticks": 5},
        "yaxis": {"title": {"text": words}},
    }
    return {"data": data, "layout": layout}


def _curve_rows(own: pd.DataFrame, cited: CitedTable, measure: str) -> list[Row]:
    return [
        (
            f"{called(response)}, split {split}",
            cited.number(place, "strength", form=".4g"),
            cited.share(place, "test_accuracy"),
            cited.link(place, f"test_{measure}"),
        )
        for place, response, split in zip(own.index, own["response"], own["split"], strict=True)
    ]


def _points(part: pd.DataFrame, measure: str, label: str) -> dict[str, Any]:
    values = part[f"test_{measure}"].astype(float)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": label,
        "x": part["test_accuracy"].astype(float).tolist(),
        "y": [None if value != value else value for value in values.tolist()],
        "marker": {"size": 7},
        "hovertemplate": "%{x:.1%}, %{y:.3f}<extra>" + label + "</extra>",
    }


def _star() -> dict[str, Any]:
    return {
        "mode": "markers",
        "marker": {"symbol": "star", "size": 14, "color": "var:mark"},
        "showlegend": False,
    }
