"""The first section of the page: the decision summary, every number linked to its place."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from countermove.reporting._summary_words import (
    ASSUMED,
    BEST_SIMPLE,
    FAILS,
    HOLDS,
    PUBLISHED,
    UNSHOWN,
    UNTESTED,
)
from countermove.reporting.citing import Cited, Key, Text, Write
from countermove.reporting.words import SIMPLE, number, rule_names, share

if TYPE_CHECKING:
    from countermove.reporting.page import Findings

SHOWN = 5
"""Columns of the scorecard, and groups, that stand open; the others fold."""
STATES = {HOLDS: "good", FAILS: "bad", ASSUMED: "open", UNSHOWN: "open", UNTESTED: "open"}
"""How each state is coloured; the word itself says it."""
UNBROKEN = "\u00a0"
WHO = ("approved", "refused")


def summary_facts(found: Findings) -> dict[str, Any]:
    """Return what the committee's section shows; ``summary`` is None where it was not made."""
    if found.summary is None:
        return {"summary": None}
    cited = Cited("summary.json", found.summary)
    points = _points_rows(cited)
    groups = _group_rows(cited)
    return {
        "summary": cited,
        "rules": _rule_rows(cited, found),
        "points": points[:SHOWN],
        "more_points": points[SHOWN:],
        "base": cited.link("rule", "base", by=_points) if points else None,
        "level": cited.link("level", by=lambda value: share(value, 0)),
        "approval": _spread(cited, "approval_rate"),
        "approval_before": _spread(cited, "approval_rate_nobody_moves"),
        "favourable": {who: _spread(cited, "favourable_rate", who) for who in WHO},
        "n": cited.link("approval_rate", "n"),
        "groups": groups[:SHOWN],
        "more_groups": groups[SHOWN:],
        "priced": any(
            group["burden"] is not None and group["burden"]["value"] is not None
            for found in cited.value("groups").values()
            for group in found
        ),
        "promise": _promise(cited),
        "regrets": _regret_rows(cited, found),
        "states": STATES,
    }


def _rule_rows(cited: Cited, found: Findings) -> list[list[Text]]:
    """Return accuracy before and after response, AUC and paired differences, rule by rule."""
    names = rule_names(found.metrics)
    best = cited.value("best_simple")
    titles = {
        PUBLISHED: f"{names['strategic']} (published)",
        "blind": names["blind"],
        "majority": SIMPLE["majority"],
        "logistic": f"{SIMPLE['logistic']}, best threshold",
        BEST_SIMPLE: f"{SIMPLE.get(best, 'the rule before the promise')}, best threshold",
    }
    rules = cited.value("accuracy", "after_response")
    return [
        [
            titles[name],
            _spread(cited, "accuracy", "nobody_moves", name),
            _spread(cited, "accuracy", "after_response", name),
            _spread(cited, "auc", name, by=_hundredths),
            ""
            if name == PUBLISHED
            else _spread(cited, "differences", name, "accuracy", by=_in_points),
        ]
        for name in rules
        if name != BEST_SIMPLE or best not in rules
    ]


def _regret_rows(cited: Cited, found: Findings) -> list[list[Text]]:
    """Return what knowing people would add, rule by rule, member by member."""
    rules = cited.value("regret") or {}
    titles = rule_names(found.metrics) | {"least_regret": "rule of least regret"}
    return [
        [
            titles[name],
            *(
                cited.link("regret", name, "regret", member, "value", by=_as_cost)
                for member in cited.value("people", "set")
            ),
            (cited.link("regret", name, "largest_regret", "high", by=_as_cost)),
            *(
                cited.link("regret", name, "beyond", member, "value", by=_as_cost)
                for member in cited.value("people", "beyond")
            ),
        ]
        for name in rules
    ]


def _points_rows(cited: Cited) -> list[list[Text]]:
    """Return the scorecard, the weightiest column first; nothing for rules that have none."""
    entries = cited.value("rule", "points") or []
    return [
        [
            entry["column"],
            entry["unit"] or "1",
            cited.link("rule", "points", i, "per_unit", by=_points),
            cited.link("rule", "points", i, "per_deviation", by=_points),
        ]
        for i, entry in enumerate(entries)
    ]


def _group_rows(cited: Cited) -> list[list[Text]]:
    """Return one row per group of every sensitive column: large ones first, by their ratios."""
    places = [
        (column, i)
        for column, entries in cited.value("groups").items()
        for i in range(len(entries))
    ]
    return [_group_row(cited, *at) for at in sorted(places, key=lambda at: _ratio(cited, *at))]


def _ratio(cited: Cited, column: str, i: int) -> tuple[bool, float]:
    entry = cited.value("groups", column, i)
    ratio = entry["ratio"]
    known = ratio is not None and ratio["value"] is not None
    return not known, float(ratio["value"]) if known else math.inf


def _group_row(cited: Cited, column: str, i: int) -> list[Text]:
    at = ("groups", column, i)
    ratio: Text = "reference" if cited.value(*at, "reference") else "too few to say"
    if cited.value(*at, "ratio") is not None:
        ratio = _spread(cited, *at, "ratio", by=_hundredths)
    return [
        f"{column}: {cited.value(*at, 'group')}",
        cited.link(*at, "n"),
        _spread(cited, *at, "approval"),
        ratio,
        _spread(cited, *at, "error"),
        _spread(cited, *at, "burden", by=_hundredths),
    ]


def _promise(cited: Cited) -> dict[str, Any]:
    """Return the promise in words, what was asked, its rows, its assumptions and its cost."""
    assumptions = cited.value("promise", "assumptions")
    return {
        "words": cited.link("promise", "words", by=lambda words: words[:1].upper() + words[1:]),
        "given": cited.value("promise", "applicable"),
        "short": cited.value("promise", "led_by") != "promise",
        "asked": cited.link("promise", "asked", by=lambda value: share(value, 0)),
        "n": cited.link("promise", "n"),
        "cost": _spread(cited, "promise", "cost", by=_as_cost),
        "assumptions": [
            cited.linked(one, "promise", "assumptions", i) for i, one in enumerate(assumptions)
        ],
    }


def _spread(cited: Cited, *path: Key, by: Write = share) -> Text:
    """Return an estimate with its interval, each number linked; a dash where there is none."""
    found = cited.value(*path)
    if found is None or found["value"] is None:
        return number(None)
    value = cited.link(*path, "value", by=by)
    if found["low"] is None:
        return value
    low, high = cited.link(*path, "low", by=by), cited.link(*path, "high", by=by)
    return (value, " (", low, f"{UNBROKEN}to{UNBROKEN}", high, ")")


def _in_points(value: float | None) -> str:
    return number(None if value is None else 100.0 * value, "+.1f")


def _as_cost(value: float | None) -> str:
    return number(None if value is None else 100.0 * value, ".1f")


def _hundredths(value: float | None) -> str:
    return number(value, ".2f")


def _points(value: float) -> str:
    return number(value, "+.3g")
