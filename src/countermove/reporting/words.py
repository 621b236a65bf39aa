"""How numbers, responses and outcomes are written for people."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

NARROW = "\u202f"
"""Narrow no-break space, before a per-cent sign."""
MISSING = "–"
RESPONSES = {
    "none": "nobody moves",
    "best": "best response",
    "smooth": "smoothed step",
    "published": "as the SERM paper simulates",
    "ascent": "smoothed step, climbed",
    "robust": "worst of several",
    "population": "people who differ",
}
"""How a kind of response is called in front of people."""

SIMPLE = {
    "majority": "the majority's decision for everybody",
    "logistic": "logistic regression",
    "class_means": "the line between the class means",
    "immutables": "logistic regression on what nobody can change",
    "reach_penalty": "logistic regression charged for what people can reach",
    "blind": "the same kind of score, trained as if nobody moved",
    "trained": "trained on where people will stand",
    "least_regret": "the rule of least regret over plausible people",
    "annealed": "the same, turned by an annealed 0-1 loss",
}
"""What the rules of `countermove.learning.selection` are, in words."""


def number(value: float | None, form: str = ".3f", missing: str = MISSING) -> str:
    """Return a number in words: counts with separators, the rest by ``form``; a true minus sign.

    >>> number(None), number(1234), number(-0.12345), number(0.5, ".4g"), number(True)
    ('–', '1,234', '−0.123', '0.5', 'yes')
    """
    if value is None or (isinstance(value, float) and isnan(value)):
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else f"{value:{form}}"
    return text.replace("-", "−") if "e" not in text else text


def share(value: float | None, digits: int = 1, missing: str = MISSING) -> str:
    """Return a share in per cent.

    >>> share(0.80666)
    '80.7\u202f%'
    """
    if value is None:
        return missing
    return f"{100.0 * value:.{digits}f}{NARROW}%".replace("-", "−")


def points(high: float, low: float) -> float:
    """Return a difference of shares in percentage points, of the shares as `share` shows them.

    >>> round(points(0.80666, 0.78317), 1)
    2.4
    """
    return round(round(100.0 * high, 1) - round(100.0 * low, 1), 1)


def called(response: str) -> str:
    """Return a response's name in words; ``smooth_0.5`` carries its temperature."""
    kind, _, temperature = response.partition("_")
    after = "member" if kind == "population" else "temperature"
    return RESPONSES[kind] + (f", {after} {temperature}" if temperature else "")


def accuracy_rows(metrics: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return (people, blind accuracy, strategic accuracy), the stated response second."""
    accuracy = metrics["accuracy"]
    stated = metrics["response"]["kind"]
    rows = {"nobody moves": accuracy["nobody_moves"]}
    assumed = "assumed" if metrics.get("adopted") else "trained for"
    rows[f"{called(stated)} ({assumed})"] = accuracy["after_response"]
    rows |= {
        called(name): pair
        for name, pair in accuracy["sensitivity"].items()
        if name not in ("none", stated)
    }
    return [(name, pair["blind"], pair["strategic"]) for name, pair in rows.items()]


def rule_names(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return what the two rules of a report are called: those of an audit are one model."""
    if metrics.get("adopted"):
        return {"blind": "model as it is", "strategic": "model at the promised threshold"}
    return {"blind": "blind rule", "strategic": "strategic rule"}


def rule_titles(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Return the same for headings."""
    return {rule: name.capitalize() for rule, name in rule_names(metrics).items()}


def left_out_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Return what was not evaluated, one line per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in metrics.get("not_evaluated", {}).items():
        known = name.partition("_")[0] in RESPONSES
        by_reason.setdefault(reason, []).append(called(name) if known else name)
    return [f"{'; '.join(names)}: {reason}" for reason, names in by_reason.items()]


def summary_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Return the outcome of a run, one line per kind of people, and whether training pays."""
    names = rule_names(metrics)
    head = ("accuracy on test rows", *(name.removesuffix(" rule") for name in names.values()))
    rows = [(name, f"{a:.3f}", f"{b:.3f}") for name, a, b in accuracy_rows(metrics)]
    width = max(len(name) for name, *_ in [head, *rows])
    wide = [max(5, len(head[1])), max(9, len(head[2]))]
    lines = [f"{name:<{width}}  {a:>{wide[0]}}  {b:>{wide[1]}}" for name, a, b in [head, *rows]]
    choice = metrics.get("choice")
    return lines if choice is None else [*lines, choice["sentence"]]


def promise_line(calibration: Mapping[str, Any]) -> str:
    """Return what a run promises, and that it is less than asked where it is."""
    asked = 1.0 - calibration["terms"]["miss_rate"]
    words: str = calibration["certificate"]["words"]
    if calibration["led_by"] == "promise":
        return words
    terms = calibration["terms"]
    return (
        f"{words} ({asked:.4g} was asked, and would have cost more than "
        f"{terms['largest_loss']:g} of {terms['measure']})"
    )
