"""How often each rule is right, by how people respond to it, and how training went."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from countermove.reporting.citing import Cited, Row, Text
from countermove.reporting.rendering import axis_label
from countermove.reporting.words import (
    MISSING,
    SIMPLE,
    accuracy_rows,
    called,
    left_out_lines,
    number,
    points,
    rule_names,
    rule_titles,
    share,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.reporting.page import Findings

RULES = {"blind": "Blind rule", "strategic": "Strategic rule"}
TRAINED = {
    "blind": "trained as if nobody moved",
    "strategic": "chosen for where people will stand, threshold calibrated",
}
ADOPTED = {
    "blind": "at a probability of one half",
    "strategic": "the same score, at the threshold calibrated for recourse",
}
"""What the two rules are."""
MARKS = {"blind": "circle-open", "strategic": "diamond"}
DASHES = {"blind": "dash", "strategic": "solid"}
LOSSES = {"train_loss": "training rows", "validation_loss": "validation rows"}
Kinds = Sequence[tuple[str, tuple[str, ...]]]


def accuracy_figure(metrics: Mapping[str, Any]) -> Figure:
    """Draw accuracy of the blind and the strategic rule under each kind of people."""
    from plotly.graph_objects import Bar, Figure, Layout

    rows = accuracy_rows(metrics)
    people = [name for name, *_ in rows]
    bars = [
        Bar(
            name=name,
            x=people,
            y=heights,
            marker_color=colour,
            text=heights,
            texttemplate="%{y:.3f}",
        )
        for name, colour, heights in (
            ("blind", "#9aa5b1", [blind for _, blind, _ in rows]),
            ("strategic", "#00796b", [strategic for *_, strategic in rows]),
        )
    ]
    layout = Layout(
        barmode="group",
        template="plotly_white",
        title=f"Accuracy on the test rows of {metrics['dataset']}",
        yaxis={"title": "accuracy", "range": [0, 1]},
        xaxis={"title": "how people respond to the rule"},
    )
    return Figure(bars, layout)


def headline_facts(found: Findings) -> dict[str, Any]:
    """Return the outcome in words, and accuracy under every response."""
    metrics = found.cited
    kinds = _kinds(metrics)
    after = metrics.value("accuracy", "after_response")
    rows = [
        (words, *(metrics.share("accuracy", *path, rule) for rule in RULES))
        for words, path in kinds
    ]
    return {
        "verdict": _verdict(points(after["strategic"], after["blind"])),
        "changes": {rule: _change(metrics, rule) for rule in RULES},
        "rules": rule_titles(found.metrics),
        "names": rule_names(found.metrics),
        "meaning": ADOPTED if found.adopted else TRAINED,
        "adopted": found.metrics.get("adopted"),
        "compared": _compared(found),
        "response": metrics.linked(called(metrics.value("response", "kind")), "response", "kind"),
        "whole_steps": (metrics.value("accuracy").get("whole_steps") or {}).get("strategic"),
        "unproven": metrics.value("accuracy").get("unproven"),
        "relations": metrics.value("accuracy").get("relations"),
        "people": _who_moves(metrics),
        "choice": _does_it_pay(metrics),
        "baselines": _baselines(metrics),
        "rows": rows,
        "figure": _responses(metrics, kinds),
        "height": 90 + 46 * len(kinds),
        "left_out": left_out_lines(found.metrics),
    }


def _compared(found: Findings) -> list[list[Any]]:
    """Return a row per rule that an audited model was compared with."""
    if found.comparison is None:
        return []
    cited = Cited("comparison.json", found.comparison)
    rows = []
    for name in cited.value("rules"):
        at = ("rules", name)
        gain = [cited.link(*at, "gain", end, by=_in_points) for end in ("value", "low", "high")]
        accuracies = [cited.share(*at, when) for when in ("nobody_moves", "after_response")]
        rows.append([COMPARED[name], *accuracies, *(gain if name != AS_IS else ["", "", ""])])
    return rows


AS_IS = "as it is"
COMPARED = {
    AS_IS: "the model as it is",
    "best threshold after response": "the model at its best threshold after response",
    "strategic training": "a rule trained for people who respond",
}
"""What an audited model is compared with, in words."""


def _does_it_pay(metrics: Cited) -> str | None:
    """Return the sentence on whether training pays; None where nothing was chosen."""
    facts = metrics.value()
    choice = facts.get("choice")
    return None if choice is None else choice["sentence"]


def _in_points(value: float) -> str:
    return number(100.0 * value, ".2f") + " points"


def _baselines(metrics: Cited) -> list[list[Any]]:
    """Return a row per rule that was compared: its accuracies and its gain."""
    rows = []
    for name in metrics.value("accuracy").get("baselines", {}):
        at = ("accuracy", "baselines", name)
        rows.append(
            [
                SIMPLE[name],
                metrics.share(*at, "nobody_moves"),
                metrics.share(*at, "after_response"),
                metrics.share(*at, "cross_validated"),
                metrics.link(*at, "gain", by=_in_points),
                metrics.link(*at, "standard_error", by=_in_points),
            ]
        )
    return rows


def _who_moves(metrics: Cited) -> list[Text]:
    """Return who is assumed to move, where people differ: one phrase after the other."""
    people = metrics.value("response")
    if people["kind"] != "population":
        return []
    said: list[Text] = [(metrics.share("response", "never"), " never move")]
    spread = people["log_sd"]
    if spread > 0.0:
        ends = [math.exp(sign * spread) for sign in (-1.0, 1.0)]
        words = " and ".join(number(end, ".2f") for end in ends)
        within = metrics.linked(words, "response", "log_sd")
        said.append(("two thirds of the others pay between ", within, " times the median price"))
    if len(people["kinds"]) > 1:
        shares = metrics.value("response", "shares")
        named = [
            (metrics.share("response", "shares", i), f" of the others: {called(kind['kind'])}")
            for i, kind in enumerate(people["kinds"])
            if shares[i] > 0.0
        ]
        said += named
    if people.get("log_price") is not None:
        by = metrics.linked("on where people stand", "response", "log_price")
        said.append(("the price depends ", by))
    return said


def _verdict(gain: float) -> str:
    """Return how the strategic rule compares with the blind one."""
    if not gain:
        return "as often as"
    return f"{abs(gain):.1f} points {'more' if gain > 0 else 'less'} often than"


def _change(metrics: Cited, rule: str) -> str:
    """Return what people's response does to a rule."""
    before, after = (
        metrics.value("accuracy", when, rule) for when in ("nobody_moves", "after_response")
    )
    change = points(after, before)
    return (
        f"{'Gains' if change > 0 else 'Loses'} {abs(change):.1f} points" if change else "The same"
    )


def _kinds(metrics: Cited) -> Kinds:
    """Return every kind of people: its words and where its accuracies stand."""
    stated = metrics.value("response", "kind")
    others = metrics.value("accuracy", "sensitivity")
    return [
        ("nobody moves", ("nobody_moves",)),
        (f"{called(stated)} (assumed)", ("after_response",)),
        *((called(name), ("sensitivity", name)) for name in others if name not in ("none", stated)),
    ]


def _responses(metrics: Cited, kinds: Kinds) -> dict[str, Any]:
    """Return the figure: one line per kind of people, one mark per rule."""
    places = [axis_label(words) for words, _ in kinds]
    marks = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": words,
            "y": places,
            "x": [metrics.value("accuracy", *path, rule) for _, path in kinds],
            "marker": {
                "symbol": MARKS[rule],
                "size": 12,
                "color": f"var:{rule}",
                "line": {"width": 2.5, "color": f"var:{rule}"},
            },
            "hovertemplate": "%{x:.1%}<extra>" + words + "</extra>",
        }
        for rule, words in rule_titles(metrics.value()).items()
    ]
    layout = {
        "xaxis": {"title": {"text": "accuracy"}, "tickformat": ".0%"},
        "yaxis": {"autorange": "reversed"},
    }
    return {"data": [_span(metrics, kinds, places), *marks], "layout": layout}


def _span(metrics: Cited, kinds: Kinds, places: Sequence[str]) -> dict[str, Any]:
    """Return the thin line that joins both rules' marks."""
    x: list[float | None] = []
    y: list[str | None] = []
    for (_, path), place in zip(kinds, places, strict=True):
        x += [*(metrics.value("accuracy", *path, rule) for rule in RULES), None]
        y += [place, place, None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": "var:line", "width": 4},
        "showlegend": False,
        "hoverinfo": "skip",
    }


def history_facts(found: Findings) -> dict[str, Any]:
    """Return which epoch of each rule was kept, and every epoch as figures and tables."""
    if found.history is None:
        return {"history": None}
    history = Cited("training_history.json", found.history)
    key = "validation_accuracy"
    return {
        "history": history,
        "kept": [_kept(history, rule) for rule in RULES],
        "accuracy": _accuracy_figure(history),
        "accuracy_head": ["epoch", *RULES.values()],
        "accuracy_rows": _epochs(history, [(rule, key) for rule in RULES], share),
        "loss": _loss_figure(history),
        "loss_head": ["epoch", *(f"{RULES[rule]}, {LOSSES[loss]}" for rule, loss in _losses())],
        "loss_rows": _epochs(history, _losses()),
    }


def _losses() -> list[tuple[str, str]]:
    return [(rule, loss) for rule in RULES for loss in LOSSES]


def _kept(history: Cited, rule: str) -> dict[str, Any]:
    best = history.value(rule, "best_epoch")
    return {
        "rule": RULES[rule],
        "epoch": history.link(rule, "best_epoch"),
        "epochs": len(history.value(rule, "records")) - 1,
        "accuracy": history.share(rule, "records", best, "validation_accuracy"),
        "stopped_early": history.value(rule, "stopped_early"),
    }


def _accuracy_figure(history: Cited) -> dict[str, Any]:
    key = "validation_accuracy"
    data = [_line(history, rule, key, words) for rule, words in RULES.items()]
    data += [_best(history, rule, key, rule == "blind") for rule in RULES]
    layout = {
        "xaxis": {"title": {"text": "epoch"}},
        "yaxis": {"title": {"text": "accuracy"}, "tickformat": ".0%"},
    }
    return {"data": data, "layout": layout}


def _loss_figure(history: Cited) -> dict[str, Any]:
    widths = {"train_loss": 1.2, "validation_loss": 2.8}
    data = [
        _line(history, rule, loss, f"{RULES[rule].split()[0]}, {LOSSES[loss]}", width=widths[loss])
        for rule, loss in _losses()
    ]
    layout = {"xaxis": {"title": {"text": "epoch"}}, "yaxis": {"title": {"text": "loss"}}}
    return {"data": data, "layout": layout}


def _line(history: Cited, rule: str, key: str, label: str, **look: Any) -> dict[str, Any]:
    records = history.value(rule, "records")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "x": [record["epoch"] for record in records],
        "y": [record[key] for record in records],
        "line": {"color": f"var:{rule}", "dash": DASHES[rule], "width": 2.5} | look,
        "hovertemplate": "epoch %{x}: %{y:.4f}<extra>" + label + "</extra>",
    }


def _best(history: Cited, rule: str, key: str, legend: bool) -> dict[str, Any]:
    best = history.value(rule, "records", history.value(rule, "best_epoch"))
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "epoch kept",
        "legendgroup": "kept",
        "showlegend": legend,
        "x": [best["epoch"]],
        "y": [best[key]],
        "marker": {"symbol": "star", "size": 13, "color": "var:mark"},
        "hovertemplate": f"{RULES[rule]}, kept: " + "%{y:.4f}<extra></extra>",
    }


def _epochs(history: Cited, columns: Sequence[tuple[str, str]], by: Any = None) -> list[Row]:
    """Return one row per epoch; a rule that stopped before has no number there."""
    longest = max(len(history.value(rule, "records")) for rule in RULES)

    def cell(rule: str, key: str, epoch: int) -> Text:
        if epoch >= len(history.value(rule, "records")):
            return MISSING
        path = (rule, "records", epoch, key)
        return history.link(*path, by=by) if by else history.link(*path)

    return [
        (str(epoch), *(cell(rule, key, epoch) for rule, key in columns)) for epoch in range(longest)
    ]
