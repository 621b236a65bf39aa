"""What the rule asks of people, group by group, and what refused people are advised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from countermove.reporting.citing import Cited, CitedTable, Row
from countermove.reporting.rendering import axis_label

if TYPE_CHECKING:
    import pandas as pd

    from countermove.reporting.page import Findings

Groups = list[tuple[str, str]]
SOCIAL = {
    "utility": "utility: decision (±1) minus what the move cost, on average",
    "burden": "burden: mean cost of approval for people with a favourable outcome",
    "burden_unscaled": "the same as a squared distance, whatever the cost",
    "recourse": "approved by moving: share of the refused whom their move gets approved",
    "recourse_all": "share of all who are approved at once or after their move",
    "deserving_cut_off": "people left out of the burden: no allowed move gets them approved",
}
"""How the hard measures are called in front of people."""
RULES = {"blind": "blind", "strategic": "strategic", "calibrated": "calibrated"}
ADOPTED = {"blind": "as it is", "calibrated": "at the promised threshold"}
"""The rules compared; those of an audit are one model."""
BY_GROUP = {"burden": "burden", "recourse": "approved by moving", "utility": "utility"}
"""Measures shown group by group and what the page calls them: recourse is any allowed action."""
SHOWN = {"blind": ("blind", "circle-open"), "calibrated": ("strategic", "diamond")}
"""Rules drawn: their colour and their mark; the calibrated rule is the strategic one published."""
NAMES = {"blind": "Blind rule", "calibrated": "Strategic rule, as published"}
CHANGE = "change:"
"""Prefix of the columns that hold a change in original units, see the advice table."""
PLACES = {
    0.0: "the smallest change",
    0.25: "a small change",
    0.5: "a medium change",
    0.9: "a large change",
    1.0: "the largest change",
}
"""Which of the people with recourse are shown, by its cost."""
OTHERS = {
    "BEYOND_REACH": ("beyond reach: costs more than the ceiling", 1),
    "PROVEN_NONE": ("no recourse: proven", 2),
    "NOT_FOUND": ("no recourse found", 1),
}
"""What else is shown, and how often."""


def people_facts(found: Findings) -> dict[str, Any]:
    """Return the measures of all people and of every group, and recourse by group."""
    metrics = found.cited
    by_group = metrics.value("social", "by_group")
    groups = [(column, value) for column, values in by_group.items() for value in values]
    rules = ADOPTED if found.adopted else RULES
    audit = None if found.audit is None else Cited("recourse_audit.json", found.audit)
    return {
        "rules": rules.values(),
        "adopted": found.adopted,
        "rows": [
            (words, *(metrics.link("social", "by_model", rule, key) for rule in rules))
            for key, words in SOCIAL.items()
        ],
        "groups": groups,
        "figure": _groups_figure(metrics, groups),
        "height": 120 + 26 * len(groups),
        "by_group": {
            words: _group_rows(metrics, groups, measure, rules)
            for measure, words in BY_GROUP.items()
        },
        "audit": audit,
        "lasting": found.audit is not None and (found.audit.get("lasting") or {}).get("lasting"),
        "audit_rows": [] if audit is None else _audit_rows(audit),
        "errors": [] if found.audit is None else found.audit.get("errors", []),
        "causal": None if found.audit is None else found.audit.get("causal"),
    }


def _groups_figure(metrics: Cited, groups: Groups) -> dict[str, Any]:
    """Return every measure of every group: a panel per measure, a mark per rule."""
    places = [axis_label(f"{column} = {value}", 24) for column, value in groups]
    data = [
        _marks(metrics, groups, places, panel, measure, rule)
        for panel, measure in enumerate(BY_GROUP, start=1)
        for rule in SHOWN
    ]
    tall = 80 + 24 * len(groups)
    below = _panels(side_by_side=False) | {"height": 60 + tall * len(BY_GROUP)}
    return {"data": data, "layout": _panels(side_by_side=True), "narrow": below}


def _panels(side_by_side: bool) -> dict[str, Any]:
    """Return the axes of the panels: abreast, or below each other on a narrow screen."""
    layout: dict[str, Any] = {}
    share_of, gap = 1.0 / len(BY_GROUP), 0.035 if side_by_side else 0.05
    for i, measure in enumerate(BY_GROUP.values()):
        tail = "" if i == 0 else str(i + 1)
        near = [i * share_of + (gap / 2 if i else 0.0), (i + 1) * share_of - gap / 2]
        far = [1.0 - (i + 1) * share_of + gap, 1.0 - i * share_of - gap / 4]
        layout[f"xaxis{tail}"] = {
            "title": {"text": measure},
            "rangemode": "tozero",
            "nticks": 5,
            "domain": near if side_by_side else [0.0, 1.0],
            "anchor": f"y{tail}",
        }
        layout[f"yaxis{tail}"] = {
            "autorange": "reversed",
            "tickfont": {"size": 11.5},
            "showticklabels": not side_by_side or i == 0,
            "domain": [0.0, 1.0] if side_by_side else far,
            "anchor": f"x{tail}",
        }
    return layout


def _marks(
    metrics: Cited,
    groups: Groups,
    places: list[str],
    panel: int,
    measure: str,
    rule: str,
) -> dict[str, Any]:
    """Return one rule's marks in one panel."""
    colour, symbol = SHOWN[rule]
    name = (ADOPTED if metrics.value().get("adopted") else NAMES)[rule]
    tail = "" if panel == 1 else str(panel)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "legendgroup": rule,
        "showlegend": panel == 1,
        "x": [metrics.value("social", "by_group", c, v, rule, measure) for c, v in groups],
        "y": places,
        "xaxis": f"x{tail}",
        "yaxis": f"y{tail}",
        "marker": {
            "symbol": symbol,
            "size": 9,
            "color": f"var:{colour}",
            "line": {"width": 2, "color": f"var:{colour}"},
        },
        "hovertemplate": "%{y}: %{x:.3f}<extra>" + name + "</extra>",
    }


def _group_rows(
    metrics: Cited, groups: Groups, measure: str, rules: Mapping[str, str]
) -> list[Row]:
    return [
        (
            f"{column} = {value}",
            metrics.link("social", "by_group", column, value, "calibrated", "people"),
            *(metrics.link("social", "by_group", column, value, rule, measure) for rule in rules),
        )
        for column, value in groups
    ]


def _audit_rows(audit: Cited) -> list[Row]:
    """Return whom some allowed action brings to approval, by group."""
    facts: Any = audit.facts
    return [
        (
            f"{column} = {entry['group']}",
            audit.link("groups", column, i, "refused"),
            audit.share("groups", column, i, "recourse_neg", "value"),
            audit.link("groups", column, i, "mean_cost"),
        )
        for column, entries in facts.get("groups", {}).items()
        for i, entry in enumerate(entries)
    ]


def advice_facts(found: Findings) -> dict[str, Any]:
    """Return a handful of people: small and large changes, and those for whom there is none."""
    if found.advice is None:
        return {"advice": None}
    advice = CitedTable(f"{found.output}/advice.csv", found.advice)
    cards = [_card(advice, row, words) for row, words in chosen_rows(found.advice)]
    return {"advice": advice.file, "cards": cards}


def chosen_rows(advice: pd.DataFrame) -> list[tuple[int, str]]:
    """Return positions of the people shown and why, each person once."""
    status = advice["status"].astype(str).to_numpy()
    order = advice["cost"].to_numpy().argsort(kind="stable")
    with_recourse = [int(i) for i in order if status[i] == "FOUND"]
    rows: dict[int, str] = {}
    for place, words in PLACES.items():
        if with_recourse:
            rows.setdefault(with_recourse[round(place * (len(with_recourse) - 1))], words)
    for kind, (words, most) in OTHERS.items():
        for i in [int(i) for i in range(len(status)) if status[i] == kind][:most]:
            rows[i] = words
    return list(rows.items())


def steps_of(words: str, changes: int) -> list[str]:
    """Return the steps of a sentence of advice, or the sentence where they cannot be separated."""
    *parts, last = (part.strip() for part in words.rstrip(".").split("; "))
    if len(parts) >= changes:  # a path moves several columns in one step, a column takes one
        return [words]
    # Sentences after the last step: what time does by itself.
    return [f"{part[:1].upper()}{part[1:]}" for part in [*parts, *last.split(". ")]]


def _text(cell: Any) -> str:
    return cell if isinstance(cell, str) else ""


def _card(advice: CitedTable, row: int, words: str) -> dict[str, Any]:
    """Return what one person's card shows."""
    person = advice.table.iloc[row]
    moves = [c for c in advice.table.columns if c.startswith(CHANGE)]
    changes = sum(1 for c in moves if person[c] == person[c] and abs(float(person[c])) > 0.0)
    return {
        "person": str(person["row_id"]),
        "words": words,
        "found": person["status"] in ("FOUND", "BEYOND_REACH"),
        "probability": advice.share(row, "probability"),
        "probability_after": advice.share(row, "probability_after"),
        "cost": advice.number(row, "cost", form=".2f"),
        "steps": steps_of(str(person["words"]), changes),
        "reasons": _text(person.get("reasons")),
    }
