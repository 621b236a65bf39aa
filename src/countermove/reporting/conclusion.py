"""May the rule be published? One of four decisions, with the criteria that it follows from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countermove.reporting._summary_words import ASSUMED, FAILS, HOLDS, PUBLISHED
from countermove.reporting.words import number

Facts = Mapping[str, Any]

PUBLISH, PILOT, DO_NOT, COMPARE = "publish", "pilot", "do_not_publish", "compare"
WORDS = {
    PUBLISH: "Publish the rule.",
    PILOT: "Publish the rule with a pilot, before it decides about everybody.",
    DO_NOT: "Do not publish the rule.",
    COMPARE: "Compare the model with strategic training before anything changes.",
}


def conclude(
    regret: Facts, verdict: Sequence[Facts], promise: Facts, adopted: bool
) -> dict[str, Any]:
    """Return the decision on a rule.

    Parameters
    ----------
    regret
        See `countermove.learning.least_regret.published_regret`, with ``tolerated``.
    verdict
        The lines of the summary; a group that is approved too seldom stands against a rule.
    promise
        What is promised about recourse.
    adopted
        Whether the rule is somebody's model as it is.

    Returns
    -------
    dict
        ``decision`` (publish, pilot, do_not_publish or compare), ``words`` and ``reasons``, each a
        ``criterion``, whether it is ``met`` (None: not shown), and ``words``.
    """
    reasons = [_gains(regret), *_groups(verdict), _recourse(promise), _regrets(regret)]
    gains, *groups, recourse, regrets = (reason["met"] for reason in reasons)
    if adopted:
        decision = COMPARE
    elif not gains or False in groups:
        decision = DO_NOT
    else:
        decision = PUBLISH if regrets and recourse else PILOT
    return {"decision": decision, "words": _sentence(decision, reasons), "reasons": reasons}


def opening(summary: Facts) -> str:
    """Return the first sentences of a summary: what to do, and how often the rule is right."""
    concluded = summary["conclusion"]
    return " ".join([*([concluded["words"]] if concluded else []), summary["headline"]])


def _sentence(decision: str, reasons: Sequence[Facts]) -> str:
    against = [reason["words"] for reason in reasons if reason["met"] is False]
    lead = against[0] if against else reasons[-1]["words"]
    return f"{WORDS[decision]} {lead[:1].upper()}{lead[1:]}."


def _gains(regret: Facts) -> dict[str, Any]:
    """Return whether the rule beats deciding alike for everybody, whoever people are."""
    rule = regret["rules"][PUBLISHED]
    gain, low = rule["least_gain"]["value"], rule["least_gain"]["low"]
    words = (
        f"against deciding alike for everybody it gains {_points(gain)} (at least {_points(low)}) "
        f"if {_if(rule['least'])}"
    )
    return _reason("it gains whoever people are", low > 0.0, words)


def _regrets(regret: Facts) -> dict[str, Any]:
    """Return whether knowing people would add no more than is tolerated."""
    rule, least = (regret["rules"][name] for name in (PUBLISHED, "least_regret"))
    largest, tolerated = rule["largest_regret"], regret["tolerated"]
    words = (
        f"knowing how people respond would add {_points(largest['value'])} (up to "
        f"{_points(largest['high'])}) if {_if(rule['worst'])}; {_points(tolerated)} are tolerated"
    )
    if largest["value"] - least["largest_regret"]["value"] > tolerated:
        words += (
            f"; the rule of least regret (serm.training.selection=least_regret) leaves "
            f"{_points(least['largest_regret']['value'])}"
        )
    return _reason("little depends on who people are", largest["high"] <= tolerated, words)


def _groups(verdict: Sequence[Facts]) -> list[dict[str, Any]]:
    """Return a reason for every line about groups; one that is not shown is open."""
    lines = [line for line in verdict if line["claim"].startswith("Four-fifths")]
    met = {FAILS: False, HOLDS: True, ASSUMED: True}
    return [
        _reason(
            "groups are approved alike", met.get(line["state"]), f"{line['claim']}: {line['words']}"
        )
        for line in lines
    ]


def _recourse(promise: Facts) -> dict[str, Any]:
    criterion, words = "recourse is promised as asked", str(promise["words"])
    if not promise["applicable"]:
        return _reason(criterion, False, f"nothing is promised about recourse: {words}")
    met = promise["led_by"] == "promise"
    return _reason(criterion, met, words if met else f"less is promised than was asked: {words}")


def _reason(criterion: str, met: bool | None, words: str) -> dict[str, Any]:
    return {"criterion": criterion, "met": met, "words": words}


def _if(member: str) -> str:
    moves = {"nobody moves": "nobody moves", "best": "people respond as assumed"}
    return moves.get(member, f"people respond at {member}")


def _points(value: float) -> str:
    return f"{number(100.0 * value, '.1f')} points"
