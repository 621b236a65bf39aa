"""Metrics as words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RESPONSES = {
    "none": "nobody moves",
    "best": "best response",
    "smooth": "smoothed step",
    "published": "as the SERM paper simulates",
    "ascent": "smoothed step, climbed",
    "robust": "worst of several",
}
"""How a kind of response is called in front of people."""


def called(response: str) -> str:
    """Return a response's name in words; ``smooth_0.5`` carries its temperature."""
    kind, _, temperature = response.partition("_")
    return RESPONSES[kind] + (f", temperature {temperature}" if temperature else "")


def accuracy_rows(metrics: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """Return (people, blind accuracy, strategic accuracy), the stated response second."""
    accuracy = metrics["accuracy"]
    stated = metrics["response"]["kind"]
    rows = {"nobody moves": accuracy["nobody_moves"]}
    rows[f"{called(stated)} (trained for)"] = accuracy["after_response"]
    rows |= {
        called(name): pair
        for name, pair in accuracy["sensitivity"].items()
        if name not in ("none", stated)
    }
    return [(name, pair["blind"], pair["strategic"]) for name, pair in rows.items()]


def left_out_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Return what was not evaluated, one line per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in metrics.get("not_evaluated", {}).items():
        known = name.partition("_")[0] in RESPONSES
        by_reason.setdefault(reason, []).append(called(name) if known else name)
    return [f"{'; '.join(names)}: {reason}" for reason, names in by_reason.items()]


def summary_lines(metrics: Mapping[str, Any]) -> list[str]:
    """Return the outcome of a run, one line per kind of people."""
    head = ("accuracy on test rows", "blind", "strategic")
    rows = [(name, f"{a:.3f}", f"{b:.3f}") for name, a, b in accuracy_rows(metrics)]
    width = max(len(name) for name, *_ in [head, *rows])
    return [f"{name:<{width}}  {a:>5}  {b:>9}" for name, a, b in [head, *rows]]


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
