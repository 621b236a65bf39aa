"""What a rule asks of people, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from countermove.reporting.numbers import number

SOCIAL = {
    "utility": "utility: decision (±1) minus what the move cost, on average",
    "burden": "burden: what a deserving person must pay for approval, on average",
    "burden_unscaled": "the same as a squared distance, whatever the cost",
    "recourse": "recourse: share of the refused whom their own move brings to approval",
    "recourse_all": "share of all who are approved at once or after their move",
    "deserving_cut_off": "deserving people whom no allowed move brings to approval (not averaged)",
}
"""How the hard measures are called in front of people."""
RULES = ("blind", "strategic", "calibrated")
BY_GROUP = ("burden", "recourse", "utility")
"""Measures shown group by group, who carries the burden first."""


def social_rows(metrics: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return one line per measure: its words, then its value for every rule."""
    by_model = metrics["social"]["by_model"]
    return [
        (words, *(number(by_model[rule][name]) for rule in RULES)) for name, words in SOCIAL.items()
    ]


def group_rows(metrics: Mapping[str, Any], measure: str) -> list[tuple[str, ...]]:
    """Return one line per group: who, how many, and a measure for every rule."""
    return [
        (
            f"{column} = {value}",
            f"{by_model['calibrated']['people']:,}",
            *(number(by_model[rule][measure]) for rule in RULES),
        )
        for column, values in metrics["social"]["by_group"].items()
        for value, by_model in values.items()
    ]
