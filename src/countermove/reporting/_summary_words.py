"""What a decision summary says in sentences: its headline, its verdicts, what would change them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from countermove.reporting._estimates import Estimate
from countermove.reporting.words import called, number, share

Facts = Mapping[str, Any]

FOUR_FIFTHS = 0.8
"""Ratio of approval rates below which a group is looked at (four-fifths rule)."""
SMALLEST = 30
"""People below which a group's ratio is not judged."""
HOLDS, FAILS, UNSHOWN, UNTESTED = "holds", "does not hold", "not shown", "not tested"
PUBLISHED = "published"
"""Name of the published rule among those it is compared with."""


def headline(rules: Facts, metrics: Facts) -> str:
    """Return the first sentence: whether training pays, and how often the rule is right."""
    own = rules[PUBLISHED]["after"]
    right = (
        f"once people have responded it is right for {_share(own)} of them "
        f"({number(own['n'])} test rows)"
    )
    choice = metrics.get("choice")
    if metrics.get("adopted"):
        return f"The audited model at the promised threshold: {right}."
    if choice is None:
        return f"The strategic rule: {right}."
    if choice["kept"] == choice["best_simple"] == "logistic":
        return f"On this table a threshold shift does all there is to do: {right}."
    if choice["kept"] == choice["best_simple"]:
        return (
            f"On this table a simple rule with its best threshold does all there is to do: {right}."
        )
    return f"On this table training for people who respond pays: {right}."


def would_change(metrics: Facts, move_map: Facts | None) -> list[str]:
    """Return which other assumptions about people would turn the comparison with the blind rule."""
    stated = metrics["response"]["kind"]
    after = metrics["accuracy"]["after_response"]
    ahead = after["strategic"] >= after["blind"]
    others = {
        name: pair
        for name, pair in metrics["accuracy"]["sensitivity"].items()
        if name != stated and (pair["strategic"] >= pair["blind"]) != ahead
    }
    n = number(metrics["rows"]["test"])
    turned = "; ".join(
        f"{called(name)}: {share(pair['strategic'])} against {share(pair['blind'])}"
        for name, pair in others.items()
    )
    said = ["Response: none of the other responses measured turns the comparison with blind."]
    if turned:
        said = [f"Response: the comparison with the blind rule turns under {turned} (n = {n})."]
    said.append(_price_sentence(move_map, ahead))
    said.append(
        "Drift: not tested by this run, whose rows are all from one table; "
        "kedro run --pipeline=retrain watches later rows."
    )
    return said


def _price_sentence(move_map: Facts | None, ahead: bool) -> str:
    """Return at which prices of moving the comparison with the blind rule turns."""
    if move_map is None:
        return "Price of moving: not tested by this run."
    pairs = zip(move_map["rules"]["strategic"], move_map["rules"]["blind"], strict=True)
    turned = [
        own["scale"] for own, blind in pairs if (own["accuracy"] >= blind["accuracy"]) != ahead
    ]
    n = number(move_map["rows"]["measured"])
    if not turned:
        return f"Price of moving: nothing turns from an eighth to eight times of it (n = {n})."
    listed = ", ".join(f"{scale:g}" for scale in turned)
    return f"Price of moving: the comparison turns at {listed} times the assumed price (n = {n})."


def verdicts(
    rules: Facts, groups: Facts, metrics: Facts, calibration: Facts, certificates: Sequence[Facts]
) -> list[dict[str, str]]:
    """Return one line per question: holds, does not hold, not shown, not tested."""
    named = {
        "blind": "better than the blind rule once people respond",
        "majority": "better than the majority's decision for everybody",
        "logistic": "better than logistic regression at its best threshold",
    }
    found = [
        _line(words, *_sign(rules[name]["gain"])) for name, words in named.items() if name in rules
    ]
    found += _four_fifths(groups)
    if not groups:
        found.append(
            _line("equal treatment of groups", UNTESTED, "no sensitive column is declared")
        )
    claim = calibration["certificate"]
    promised = claim["value"] is not None
    level = f"with {share(claim['level'], 0)} confidence (n = {number(claim['n'])}), as said below"
    reason = level if promised else claim["reason"]
    found.append(_line("recourse is promised", HOLDS if promised else FAILS, reason))
    error = next((one for one in certificates if one["name"] == "error_after_response"), None)
    if error is not None and error["value"] is not None:
        sure = f"with {share(error['level'], 0)} confidence (n = {number(error['n'])})"
        words = f"at most {share(error['value'])} {sure}"
        found.append(_line("a certified error after response", HOLDS, words))
    relations = metrics["accuracy"].get("relations")
    if relations is not None:
        reason = relations["reason"] or "responses obey the schema's relations"
        found.append(_line("only possible people", HOLDS if relations["obeyed"] else FAILS, reason))
    found.append(
        _line("people respond as assumed", UNTESTED, "kedro run --pipeline=estimate_people")
    )
    found.append(_line("the world stays as it is", UNTESTED, "kedro run --pipeline=retrain"))
    return found


def future_lines(future: Facts | None) -> list[dict[str, str]]:
    """Return whether the rule settles when retrained, and what applicants can do together."""
    claims = ("settles when it is retrained", "withstands applicants who act together")
    if future is None:
        return [_line(claim, UNTESTED, "kedro run --pipeline=evaluation") for claim in claims]
    course, threat = future["retraining"], future["collective_threat"]
    lines = [_line(claims[0], UNTESTED, course["words"])]
    if course["applies"]:
        state = HOLDS if course["course"]["course"] == "settles" else FAILS
        after = course["accuracy"]
        words = f"right for {_share(after)} after {number(course['course']['rounds'])} rounds"
        lines = [_line(claims[0], state, f"{words} (n = {number(after['n'])})")]
    shares = [one["share"] for one in threat.get("segments", ()) if one["share"] is not None]
    if not threat["applies"]:
        return [*lines, _line(claims[1], UNTESTED, threat["words"])]
    words = "no segment flips an outcome"
    if shares:
        words = f"{share(min(shares), 0)} of {number(threat['n'])} applicants flip an outcome"
    return [*lines, _line(claims[1], FAILS if shares else HOLDS, words)]


def _sign(gain: Estimate) -> tuple[str, str]:
    """Return whether a gain is shown, and the gain in words."""
    words = f"{_points(gain)} (n = {number(gain['n'])})"
    if gain["low"] is None:
        return UNTESTED, words
    if gain["low"] > 0.0:
        return HOLDS, words
    return (FAILS if gain["high"] < 0.0 else UNSHOWN), words


def _four_fifths(groups: Facts) -> list[dict[str, str]]:
    """Return whether groups are approved four fifths as often as the most approved one.

    Columns for which that holds share a line.
    """
    lines = {column: _of_column(column, entries) for column, entries in groups.items()}
    held = [column for column, line in lines.items() if line["state"] == HOLDS]
    if len(held) < 2:
        return list(lines.values())
    lowest = min(held, key=lambda column: _ratio(_worst(groups[column])))
    together = f"approval within four fifths by {', '.join(held)}"
    rest = [line for column, line in lines.items() if column not in held]
    words = f"lowest {_in_words(lowest, _worst(groups[lowest]))}"
    return [_line(together, HOLDS, words), *rest]


def _of_column(column: str, entries: Sequence[Facts]) -> dict[str, str]:
    claim, worst = f"approval within four fifths by {column}", _worst(entries)
    if worst is None:
        return _line(claim, UNTESTED, f"fewer than two groups of at least {SMALLEST} people")
    low, high = worst["ratio"]["low"], worst["ratio"]["high"]
    state = UNSHOWN if low < FOUR_FIFTHS else HOLDS
    if high is not None and high < FOUR_FIFTHS:
        state = FAILS
    return _line(claim, state, _in_words(column, worst))


def _worst(entries: Sequence[Facts]) -> Facts | None:
    """Return the group approved least often among those large enough; None without one."""
    known = [
        entry
        for entry in entries
        if entry["n"] >= SMALLEST and entry["ratio"] and entry["ratio"]["value"] is not None
    ]
    return min(known, key=_ratio, default=None)


def _ratio(entry: Facts | None) -> float:
    return math.inf if entry is None else float(entry["ratio"]["low"])


def _in_words(column: str, entry: Facts | None) -> str:
    """Return a group's ratio with its interval."""
    if entry is None:
        return "unknown"
    ratio = entry["ratio"]
    high = "unbounded" if ratio["high"] is None else number(ratio["high"], ".2f")
    spread = f"{number(ratio['low'], '.2f')} to {high}, n = {number(entry['n'])}"
    return f"ratio {number(ratio['value'], '.2f')} ({spread}) for {column} {entry['group']}"


def _line(claim: str, state: str, words: str) -> dict[str, str]:
    return {"claim": claim, "state": state, "words": words}


def _share(found: Estimate) -> str:
    if found["low"] is None:
        return share(found["value"])
    return f"{share(found['value'])} ({share(found['low'])} to {share(found['high'])})"


def _points(found: Estimate) -> str:
    if found["low"] is None:
        return number(found["value"])
    ends = (number(100.0 * found[end], "+.1f") for end in ("value", "low", "high"))
    value, low, high = ends
    return f"{value} points ({low} to {high})"
