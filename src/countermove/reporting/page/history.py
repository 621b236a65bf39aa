"""How training went, epoch by epoch."""

from __future__ import annotations

from typing import Any

from countermove.reporting.numbers import share
from countermove.reporting.page.citing import Cited
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.headline import RULES
from countermove.reporting.page.layout import Section, chart, grid
from countermove.reporting.page.markup import Markup, absent, joined, paragraph
from countermove.reporting.page.plain import html_table

DASHES = {"blind": "dash", "strategic": "solid"}
LOSSES = {"train_loss": "training rows", "validation_loss": "validation rows"}


def history_section(found: Findings) -> Section:
    """Return the section, or the sentence in its place."""
    title = "How training went"
    if found.history is None:
        missing = absent("No history of training was kept.", found.command("training"))
        return Section("history", title, "Training", missing)
    cited = Cited("training_history.json", found.history)
    parts = [paragraph(*_kept(cited, rule)) for rule in RULES]
    parts += [
        paragraph(
            "Each rule is judged by the people it was trained for: the blind one by people who "
            "stay, the strategic one by people who have moved. Epoch 0 is the start.",
            kind="note",
        ),
        grid((_accuracy(cited), _loss(cited))),
    ]
    return Section("history", title, "Training", joined(parts))


def _kept(cited: Cited, rule: str) -> list[str]:
    best = cited.value(rule, "best_epoch")
    stopped = cited.value(rule, "stopped_early")
    end = "stopped when it no longer improved" if stopped else "used all of its epochs"
    return [
        f"{RULES[rule]}: epoch ",
        cited.link(rule, "best_epoch"),
        f" of {len(cited.value(rule, 'records')) - 1} kept, right for ",
        cited.link(rule, "records", best, "validation_accuracy", by=share),
        f" of the validation rows; training {end}.",
    ]


def _line(cited: Cited, rule: str, key: str, label: str, **look: Any) -> dict[str, Any]:
    records = cited.value(rule, "records")
    return {
        "type": "scatter",
        "mode": "lines",
        "name": label,
        "x": [record["epoch"] for record in records],
        "y": [record[key] for record in records],
        "line": {"color": f"var:{rule}", "dash": DASHES[rule], "width": 2.5} | look,
        "hovertemplate": "epoch %{x}: %{y:.4f}<extra>" + label + "</extra>",
    }


def _best(cited: Cited, rule: str, key: str, legend: bool) -> dict[str, Any]:
    best = cited.value(rule, "records", cited.value(rule, "best_epoch"))
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


def _accuracy(cited: Cited) -> Markup:
    key = "validation_accuracy"
    data = [_line(cited, rule, key, words) for rule, words in RULES.items()]
    data += [_best(cited, rule, key, rule == "blind") for rule in RULES]
    layout = {
        "xaxis": {"title": {"text": "epoch"}},
        "yaxis": {"title": {"text": "share judged right"}, "tickformat": ".0%"},
    }
    table = _table(cited, (key,), share, "Validation accuracy by epoch")
    caption = "Share of the validation rows judged right, by epoch."
    spec = {"data": data, "layout": layout}
    return chart("history-accuracy", caption, caption, spec, table)


def _loss(cited: Cited) -> Markup:
    widths = {"train_loss": 1.2, "validation_loss": 2.8}
    data = [
        _line(cited, rule, key, f"{RULES[rule].split()[0]}, {rows}", width=widths[key])
        for rule in RULES
        for key, rows in LOSSES.items()
    ]
    layout = {"xaxis": {"title": {"text": "epoch"}}, "yaxis": {"title": {"text": "loss"}}}
    table = _table(cited, tuple(LOSSES), None, "Loss by epoch")
    caption = "Loss by epoch: thin lines on training rows, thick ones on validation rows."
    return chart("history-loss", caption, caption, {"data": data, "layout": layout}, table)


def _table(cited: Cited, keys: tuple[str, ...], by: Any, caption: str) -> Markup:
    longest = max(len(cited.value(rule, "records")) for rule in RULES)
    columns = [(rule, key) for rule in RULES for key in keys]

    def cell(rule: str, key: str, epoch: int) -> str:
        if epoch >= len(cited.value(rule, "records")):
            return "–"
        path = (rule, "records", epoch, key)
        return cited.link(*path, by=by) if by else cited.link(*path)

    head = ["epoch"]
    for rule, key in columns:
        judged_on = f", {LOSSES[key]}" if key in LOSSES else ""
        head.append(f"{RULES[rule]}{judged_on}")
    rows = [[str(e), *(cell(rule, key, e) for rule, key in columns)] for e in range(longest)]
    return html_table(head, rows, caption)
