"""What a decision summary says in sentences: its headline, its verdicts, what would change them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countermove.errors import shown
from countermove.reporting.estimates import SMALLEST_GROUP, Estimate
from countermove.reporting.words import SIMPLE, called, number, rule_names, share

Facts = Mapping[str, Any]

FOUR_FIFTHS = 0.8
"""Ratio of approval rates below which a group is looked at (four-fifths rule)."""
HOLDS, FAILS, UNSHOWN, UNTESTED = "holds", "does not hold", "not shown", "not tested"
ASSUMED = "holds if people respond as assumed"
"""Of a claim about people who have responded, where nobody has tested how they do."""
PUBLISHED, BEST_SIMPLE = "strategic", "best_simple"
"""Names of the published rule and of the best simple one among those that are compared."""


def headline(compared: Facts, promise: Facts, metrics: Facts, *, moved: bool) -> str:
    """Return the first sentences: which rule is published, how often it is right, at what cost.

    ``moved`` says whether the response changes any decision of the published rule.
    """
    own = compared["accuracy"]["after_response"][PUBLISHED]
    right = f"right for {_share(own)} of {number(own['n'])} test people"
    cost, choice = _promise_cost(promise["cost"]), metrics.get("choice")
    if metrics.get("adopted"):
        return f"The audited model at the promised threshold is {right} after response.{cost}"
    if not moved:
        return (
            "The response changes no decision of this rule, so that training for people who "
            f"respond has nothing to do: it is {right}.{cost}"
        )
    if choice is None:
        return f"The strategic rule is {right} after response.{cost}"
    if choice["kept"] == "least_regret":
        return (
            f"The published rule is {SIMPLE['least_regret']}: it is {right} after response.{cost}"
        )
    if choice["kept"] != choice["best_simple"]:
        return (
            f"The published rule is trained for people who respond: it is {right} after "
            f"response.{cost}"
        )
    return (
        f"The published rule is {SIMPLE[choice['kept']]} at another threshold, beyond which "
        f"training showed no gain: it is {right} after response.{cost}"
    )


def _promise_cost(cost: Estimate) -> str:
    """Return a sentence on what the promise costs, where that is shown; else nothing."""
    if cost["low"] is None or cost["low"] <= 0.0:
        return ""
    return f" The promise of recourse costs {_points(cost, '.1f')} of it."


def would_change(metrics: Facts, move_map: Facts | None) -> list[str]:
    """Return which other assumptions about people would turn the comparison with the blind rule."""
    names = rule_names(metrics)
    stated = metrics["response"]["kind"]
    after = metrics["accuracy"]["after_response"]
    ahead = after["strategic"] >= after["blind"]
    measured = {
        name: pair for name, pair in metrics["accuracy"]["sensitivity"].items() if name != stated
    }
    turned = {
        called(name): pair
        for name, pair in measured.items()
        if (pair["strategic"] >= pair["blind"]) != ahead
    }
    n = number(metrics["rows"]["test"])
    other = names["blind" if ahead else "strategic"]
    listed = "; ".join(
        f"{name} ({share(pair['strategic'])} against {share(pair['blind'])})"
        for name, pair in turned.items()
    )
    said = (
        f"under all {len(measured)} other responses measured the comparison with the "
        f"{names['blind']} comes out the same (n = {n})."
    )
    if turned:
        said = (
            f"under {len(turned)} of the {len(measured)} other responses measured the {other} is "
            f"right more often (published against {names['blind']}, n = {n}): {listed}."
        )
    return [
        f"Response: {said}",
        _price_sentence(move_map, ahead, names["blind"]),
        "Drift: not tested by this run, whose rows are all of one table; "
        "kedro run --pipeline=retrain watches later ones.",
    ]


def _price_sentence(move_map: Facts | None, ahead: bool, other: str) -> str:
    """Return at which prices of moving the comparison with the blind rule turns."""
    if move_map is None:
        return "Price of moving: not tested by this run."
    pairs = zip(move_map["rules"]["strategic"], move_map["rules"]["blind"], strict=True)
    turned = [
        own["scale"] for own, blind in pairs if (own["accuracy"] >= blind["accuracy"]) != ahead
    ]
    n = number(move_map["rows"]["measured"])
    if not turned:
        return (
            "Price of moving: from an eighth to eight times the assumed one the comparison with "
            f"the {other} stays as it is (n = {n})."
        )
    listed = " and ".join(", ".join(f"{scale:g}" for scale in turned).rsplit(", ", 1))
    return (
        f"Price of moving: the comparison with the {other} reverses at "
        f"{listed} times the assumed one (n = {n})."
    )


def verdicts(
    compared: Facts,
    groups: Facts,
    promise: Facts,
    metrics: Facts,
    certificates: Sequence[Facts],
    sheet: Facts | None = None,
    people: Facts | None = None,
) -> list[dict[str, str]]:
    """Return one line per question: holds, does not hold, not shown, not tested.

    While ``people`` are unknown no claim about people who have responded simply holds.
    """
    gains, other = compared["differences"], rule_names(metrics)["blind"]
    found = [
        _line(f"More often right than the {other}", *_sign(gains["blind"]["accuracy"])),
        _line(
            "More often right than the majority's decision", *_sign(gains["majority"]["accuracy"])
        ),
        *_training_line(compared, metrics),
        *_four_fifths(groups),
    ]
    if not groups:
        found.append(
            _line("Groups are approved alike", UNTESTED, "the schema declares no sensitive column")
        )
    found.append(_promise_line(promise))
    error = next((one for one in certificates if one["name"] == "error_after_response"), None)
    if error is not None and error["value"] is not None:
        words = f"at most {share(error['value'])}, {_sure(error)}"
        found.append(_line("Certified error after response", HOLDS, words))
    found = untested(found, people) + _protected_line(sheet)
    relations = metrics["accuracy"].get("relations")
    if relations is not None:
        reason = relations["reason"] or "responses obey the schema: relations, histories, ranges"
        state = HOLDS if relations["obeyed"] else FAILS
        found.append(_line("Only possible people are counted on", state, reason))
    return [
        *found,
        _people_line(people),
        _line("No drift", UNTESTED, "see kedro run --pipeline=retrain"),
    ]


def untested(lines: Sequence[dict[str, str]], people: Facts | None) -> list[dict[str, str]]:
    """Return claims about people who have responded, which hold on an assumption if unknown."""
    unknown = people is not None and people["state"] == "unknown"
    return [
        line | {"state": ASSUMED} if unknown and line["state"] == HOLDS else line for line in lines
    ]


def _people_line(people: Facts | None) -> dict[str, str]:
    """Return what is known of how people respond."""
    claim = "People respond as assumed"
    if people is not None and people["state"] == "estimated":
        return _line(claim, HOLDS, "estimated from what people did; promises hold over the set")
    signed = people is not None and people["assumed_by"]
    words = f"assumed by {signed}; " if people is not None and signed else ""
    return _line(claim, UNTESTED, f"{words}see kedro run --pipeline=estimate_people")


def _protected_line(sheet: Facts | None) -> list[dict[str, str]]:
    """Return whether the score reads a column that is protected, or says as much."""
    if sheet is None:
        return []
    claim = "The score reads no protected column"
    if sheet["protected"]:
        return [_line(claim, FAILS, f"it reads {shown(sheet['protected'])}")]
    if not sheet["sensitive"]:
        return [
            _line(claim, UNTESTED, "the schema declares none, and no feature is named like one")
        ]
    words = f"no feature is or stands in for a sensitive one (n = {sheet['rows']:,})"
    return [_line(claim, HOLDS, words)]


def _training_line(compared: Facts, metrics: Facts) -> list[dict[str, str]]:
    """Return whether training beats the best simple rule: on test rows, or where it was chosen."""
    choice = metrics.get("choice")
    if choice is None or compared["difference"] is None:
        return []
    if choice["kept"] != choice["best_simple"]:
        simple = SIMPLE.get(compared["best_simple"], "the rule before the promise")
        return [
            _line(
                f"More often right than the best simple rule ({simple})",
                *_sign(compared["difference"]),
            )
        ]
    why = choice["sentence"].partition(": ")[2].rstrip(".")
    return [
        _line(
            "Training beats the best simple rule",
            UNSHOWN,
            f"{why}, so the simple rule is published",
        )
    ]


def _promise_line(promise: Facts) -> dict[str, str]:
    """Return whether the share that was asked for is promised."""
    claim = f"Recourse is promised to {share(promise['asked'], 0)}"
    if not promise["applicable"]:
        return _line(claim, FAILS, promise["reason"])
    if promise["led_by"] == "promise":
        return _line(claim, HOLDS, _sure(promise))
    allowed = promise["largest_loss"]
    why = (
        ""
        if allowed is None
        else f"; more would cost over {100.0 * allowed:.3g} points where it was chosen"
    )
    words = f"only to {share(promise['promised'])}, {_sure(promise)}{why}"
    return _line(claim, FAILS, words)


def future_lines(future: Facts | None) -> list[dict[str, str]]:
    """Return whether the rule settles when retrained, and what applicants can do together."""
    claims = ("Settles when it is retrained", "Withstands applicants who act together")
    if future is None:
        return [_line(claim, UNTESTED, "see kedro run --pipeline=evaluation") for claim in claims]
    course, threat = future["retraining"], future["collective_threat"]
    lines = [_line(claims[0], UNTESTED, course["words"])]
    if course["applies"]:
        lines = [_line(claims[0], *_settles(course))]
    if not threat["applies"]:
        return [*lines, _line(claims[1], UNTESTED, threat["words"])]
    able = [one for one in threat["segments"] if one["share"] is not None]
    n = number(threat["n"])
    if not able:
        return [*lines, _line(claims[1], HOLDS, f"no segment flips an outcome (n = {n})")]
    least = min(able, key=lambda one: float(one["share"]))
    flipped = "the typical refused person" if least["outcome"] == "person" else "half of a group"
    words = f"{share(least['share'], 0)} of them get {flipped} approved (n = {n})"
    return [*lines, _line(claims[1], FAILS, words)]


def _settles(course: Facts) -> tuple[str, str]:
    """Return whether retraining settles, and how often the rule is right then and now."""
    end, then, now = course["course"], course["accuracy"], course["accuracy_now"]
    right = f"{_share(then)} right, now {share(now['value'])} (n = {number(then['n'])})"
    changing = f"{share(end['changing'])} of decisions keep changing"
    if end["course"] == "settles":
        return HOLDS, f"after {number(end['rounds'])} rounds {right}"
    how = {"collapses": "it collapses", "cycles": f"it cycles, {changing}"}
    return (
        FAILS,
        f"{how.get(end['course'], changing)}; after {number(end['rounds'])} rounds {right}",
    )


def _sure(claim: Facts) -> str:
    return f"with {share(claim['level'], 0)} confidence (n = {number(claim['n'])})"


def _sign(gain: Estimate) -> tuple[str, str]:
    """Return whether a gain is shown, and the gain in words."""
    words = f"{_points(gain)}, n = {number(gain['n'])}"
    if gain["low"] is None:
        return UNTESTED, words
    if gain["low"] > 0.0:
        return HOLDS, words
    return (FAILS if gain["high"] < 0.0 else UNSHOWN), words


def _four_fifths(groups: Facts) -> list[dict[str, str]]:
    """Return whether groups are approved four fifths as often as the reference.

    Columns for which that holds share a line.
    """
    lines = {column: _of_column(column, entries) for column, entries in groups.items()}
    held = [column for column, line in lines.items() if line["state"] == HOLDS]
    rest = [line for column, line in lines.items() if column not in held]
    if len(held) < 2:
        return list(lines.values())
    judged = [(column, entry) for column in held for entry in _judged(groups[column])]
    words = f"lowest {_in_words(*min(judged, key=lambda at: _ratio(at[1])))}"
    return [_line(f"Four-fifths rule, by {', '.join(held)}", HOLDS, words), *rest]


def _of_column(column: str, entries: Sequence[Facts]) -> dict[str, str]:
    """Return the line of a column: it fails with one group that does, whatever the others say."""
    claim, judged = f"Four-fifths rule, by {column}", _judged(entries)
    if not judged:
        few = f"the reference or every other group has fewer than {SMALLEST_GROUP} people"
        return _line(claim, UNTESTED, few)
    below = [
        entry
        for entry in judged
        if entry["ratio"]["high"] is not None and entry["ratio"]["high"] < FOUR_FIFTHS
    ]
    if below:
        return _line(claim, FAILS, _in_words(column, min(below, key=_ratio)))
    open_ended = [entry for entry in judged if entry["ratio"]["low"] < FOUR_FIFTHS]
    if open_ended:
        return _line(claim, UNSHOWN, _in_words(column, min(open_ended, key=_ratio)))
    return _line(claim, HOLDS, _in_words(column, min(judged, key=_ratio)))


def _judged(entries: Sequence[Facts]) -> list[Facts]:
    """Return the groups that have a ratio."""
    return [entry for entry in entries if entry["ratio"] and entry["ratio"]["value"] is not None]


def _ratio(entry: Facts) -> float:
    return float(entry["ratio"]["value"])


def _in_words(column: str, entry: Facts) -> str:
    """Return a group's ratio with its interval."""
    ratio = entry["ratio"]
    high = "unbounded" if ratio["high"] is None else number(ratio["high"], ".2f")
    spread = f"{number(ratio['low'], '.2f')} to {high}, n = {number(entry['n'])}"
    return f"ratio {number(ratio['value'], '.2f')} ({spread}) for {column}: {entry['group']}"


def _line(claim: str, state: str, words: str) -> dict[str, str]:
    return {"claim": claim, "state": state, "words": words}


def _share(found: Estimate) -> str:
    if found["low"] is None:
        return share(found["value"])
    return f"{share(found['value'])} ({share(found['low'])} to {share(found['high'])})"


def _points(found: Estimate, form: str = "+.1f") -> str:
    if found["low"] is None:
        return number(found["value"])
    value, low, high = (number(100.0 * found[end], form) for end in ("value", "low", "high"))
    return f"{value} points ({low} to {high})"
