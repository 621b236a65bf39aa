"""A retraining on one page: what was decided, by which gates, and what had drifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countermove.reporting.citing import Row
from countermove.reporting.drift import drift_section
from countermove.reporting.rendering import render
from countermove.reporting.words import called


def retraining_page(decision: Mapping[str, Any], drift: Mapping[str, Any]) -> str:
    """Return the page of a decision and of the drift report made on the way."""
    facts = decision["facts"]
    compared = drift["recommendation"] is not None
    return render(
        "retraining.html",
        **{key: decision[key] for key in ("version", "outcome")},
        **{key: decision[key] for key in ("champion_after", "champion_before")},
        gates=facts["gates"],
        rules=list(facts["judgement"]["accuracy"]),
        accuracy=_accuracies(facts["judgement"]["accuracy"]),
        people=_judged_words(facts),
        batches=_batches(facts.get("batches", {})),
        forecasts=_forecasts(facts["outcomes"]),
        drift=drift_section(drift) if compared else None,
        reason=drift.get("reason", ""),
        policy=policy_words(decision["facts"]),
        **beside_facts(facts.get("scored") or {}),
    )


def _judged_words(facts: Mapping[str, Any]) -> str:
    """Say who was judged."""
    judged, held = facts["judgement"]["people"], (facts.get("holdout") or {}).get("rows")
    following = (facts.get("policy") or {}).get("kind") == "following"
    if not following or judged == held:
        return f"Judged on the {judged:,} people of the hold-out."
    return (
        f"Judged on {judged:,} people with new labels, where they stood before they moved, the "
        "challenger by rules fitted without them."
    )


def policy_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what the policy found and did, a sentence each: the chain from drift to effect."""
    policy = facts.get("policy")
    if policy is None or policy["kind"] != "following":
        why = "" if policy is None else f": {policy['reason']}"
        return [f"Challengers are judged on the hold-out of the first run{why}."]
    said = [_drift_words(facts, policy), _reach_words(policy)]
    if policy["discount"] is not None:
        moved = ", and the rule is moved on to the newest month" if policy.get("trend") else ""
        said.append(
            f"People a month older count {policy['discount']:g} times as much{moved} (what "
            "predicts the newest labels best)."
        )
    shown = {gate["name"] for gate in facts.get("gates", ())}
    if policy["evidence"] is not None and "likelihood" not in shown:
        said.append(f"Evidence: {policy['evidence']['words']}.")
    return [sentence for sentence in (*said, *_label_words(facts)) if sentence]


def _label_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what labels of the approved only cannot show."""
    seen = (facts.get("scored") or {}).get("labels")
    if seen is None or not seen["approved_only"]:
        return []
    drawn = (
        f"{seen['explored']:,} of them were approved by draw and speak for the refused"
        if seen["explored"]
        else "none was approved by draw (score.exploration)"
    )
    return [
        f"Labels came of the approved only ({seen['people']:,} new ones, {seen['refused']:,} of "
        f"refused people; {drawn}). They are right where the label depends on the features alone; "
        "what is peculiar to the refused, and whom the rule refuses wrongly, they cannot show."
    ]


def beside_facts(scored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page says of challengers, of exploration, and of damaged batches."""
    return {
        "challengers": [_challenger_row(each) for each in scored.get("challengers", ())],
        "explored": [*_explored_words(scored.get("exploration")), *scored.get("left_out", ())],
    }


def _challenger_row(each: Mapping[str, Any]) -> Row:
    return (
        each["challenger"],
        f"{each['people']:,}",
        _percent(each["agreement"]),
        f"{each['only_champion_approves']:,}",
        f"{each['only_challenger_approves']:,}",
        _points(each["labelled"]),
    )


def _percent(share: Mapping[str, Any]) -> str:
    if share["value"] is None:
        return "–"
    return f"{share['value']:.1%} ({share['low']:.1%} to {share['high']:.1%})"


def _points(gap: Mapping[str, Any]) -> str:
    """Return a difference in points with its interval and, where known, its people."""
    if gap["value"] is None:
        return "–"
    value, low, high = (100.0 * gap[key] for key in ("value", "low", "high"))
    people = f"; n = {gap['n']:,}" if "n" in gap else ""
    return f"{value:+.1f} ({low:+.1f} to {high:+.1f}{people})"


def _explored_words(explored: Mapping[str, Any] | None) -> list[str]:
    """Return how people approved by draw fared."""
    if explored is None:
        return []
    found = explored["favourable"]
    return [
        f"Of {found['n']:,} people approved by draw whose label has come, {_percent(found)} were "
        f"favourable; the rule had expected {explored['expected_favourable']:.1%}."
    ]


def _drift_words(facts: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    """Return what drift recommends and what the run did about it."""
    if facts["drift"]["recommendation"] is None:
        return ""
    done = []
    if policy["acts"]["forget"]:
        done.append("labels given the score changed, so everything older is discounted")
    if policy["acts"]["reweight"]:
        done.append("what nobody can change has shifted, so older people count as the newest do")
    if policy["proposal"] == "shift":
        done.append("people move another distance, so the threshold is shifted")
    effect = "; ".join(done) or "nothing is changed for it"
    return f"Drift says {facts['drift']['recommendation']}: {effect}."


def _reach_words(policy: Mapping[str, Any]) -> str:
    """Return how far people move."""
    reach = policy["reach"]
    if reach is None:
        return "How far people move was not estimated again: too few people responded."
    people = reach["people"]
    verdict = "not what was counted on" if reach["excluded"] else "as was counted on"
    differ = f", {people['never']:.1%} never move" if people["never"] else ""
    differ += f", log-sd of prices {2 * people['log_sd']:.2f}" if people["log_sd"] else ""
    return (
        f"People move {people['reach']:.2f} times as far as the settings say ({reach['low']:.2f} "
        f"to {reach['high']:.2f}, {reach['level']:.1%} interval; a move costs "
        f"{people['reach'] ** -2:.2f} times as much{differ}), {verdict}: {reach['on_boundary']:,} "
        f"of {reach['n']:,} stand on the boundary."
    )


def _accuracies(accuracy: Mapping[str, Mapping[str, float]]) -> list[Row]:
    # How people respond to an adopted model is not known for every response.
    names = dict.fromkeys(name for by_response in accuracy.values() for name in by_response)
    return [
        (called(name), *(f"{one[name]:.3f}" if name in one else "–" for one in accuracy.values()))
        for name in names
    ]


def _batches(batches: Mapping[str, Mapping[str, Any]]) -> list[Row]:
    counts = ("rows", "used", "waiting_for_label", "repeated")
    return [
        (name, *(f"{batch[key]:,}" for key in counts), f"{_corrected(batch):,}")
        for name, batch in batches.items()
        if batch["new"]
    ]


def _corrected(batch: Mapping[str, Any]) -> int:
    """Return how many labels of earlier batches a batch corrected."""
    return sum(sum(counts.values()) for counts in batch.get("corrected", {}).values())


def _forecasts(outcomes: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [
        (
            f"{outcome['batch']}, {outcome['claim']}",
            f"{outcome['forecast']:.3f}",
            f"{outcome['error']:.3f}",
            "held" if outcome["held"] else "not held",
            "contradicted" if outcome["contradicted"] else "not contradicted",
        )
        for outcome in outcomes
    ]
