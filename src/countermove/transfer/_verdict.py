"""What the transfer report says first: a few errors, each with its level, and one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from countermove.certificates.intervals import per_cent
from countermove.transfer.bounds import Setting
from countermove.transfer.estimates import Range, share_range
from countermove.transfer.optimal import difference
from countermove.transfer.sample import Labels

READINGS: dict[Labels, str] = {
    "kept": "moving changes no label",
    "follow": "labels follow the features",
}


def verdict(
    settings: Mapping[str, Mapping[str, Setting]], labels: Labels, failure_probability: float
) -> dict[str, Any]:
    """Return errors before and after, the direct certificate and what the best threshold saves.

    Parameters
    ----------
    settings
        By rule, by stated response: its people, with an equal part of the failure probability
        where several responses are stated. The response with the largest error counts.
    labels
        What moving does to a label in them.
    failure_probability
        Of every interval, and of the certificate, each on its own.
    """
    level = 1.0 - failure_probability
    rules, at_best = {}, {}
    for rule, by_response in settings.items():
        name = max(by_response, key=lambda each: by_response[each].own.induced.error())
        setting = by_response[name]
        rules[rule] = _of_rule(setting, level) | {"response": name}
        at_best[rule] = setting.best.induced.wrong(setting.chosen.best)
    first, *_, last = (*rules, list(rules)[-1])
    found: dict[str, Any] = {
        "words": _words(rules, labels, level),
        "labels": labels,
        "level": level,
        "rules": rules,
    }
    if first != last:
        # Each of the two responses was picked by its errors: every pair has its part of the level.
        clusters = next(iter(settings[first].values())).clusters
        pairs = len(settings[first]) * len(settings[last])
        apart = difference(at_best[first], at_best[last], failure_probability / pairs, clusters)
        apart = replace(apart, level=level)
        found["saved_at_best_threshold"] = {"of": last, "against": first} | asdict(apart)
        found["words"] += f" Between them: {apart.words}."
    return found


def _of_rule(setting: Setting, level: float) -> dict[str, Any]:
    """Return one rule's figures; every interval covers its figure at the level."""
    alpha, source, after = setting.failure_probability, setting.own.source, setting.own.induced
    best, at = setting.best.induced, setting.chosen.best
    wrong, wrong_best = after.wrong(), best.wrong(at)
    lost = difference(wrong, wrong_best, alpha, after.clusters)
    most = share_range(after, wrong, 2.0 * alpha).high

    def shown(found: Range) -> dict[str, Any]:
        return asdict(found) | {"level": level, "n": after.n}

    return {
        "error_before": shown(share_range(source, source.wrong(), alpha)),
        "expected_after": shown(share_range(after, wrong, alpha)),
        "at_most_after": {"value": most, "level": level, "n": after.n, "kind": "certificate"},
        "loss_to_best_threshold": shown(Range(lost.value, lost.low, lost.high))
        | {"words": lost.words},
        "at_best_threshold": shown(share_range(best, wrong_best, alpha)) | {"threshold": at},
    }


def _words(rules: Mapping[str, Mapping[str, Any]], labels: Labels, level: float) -> str:
    def after(rule: str) -> str:
        found = rules[rule]
        expected = found["expected_after"]
        return (
            f"the {rule} rule errs for {per_cent(found['error_before']['value'])} of the people "
            f"before deployment, for {per_cent(expected['value'])} ({per_cent(expected['low'])} to "
            f"{per_cent(expected['high'])}) once they respond ({found['response']}), and for at "
            f"most {per_cent(found['at_most_after']['value'])} with {per_cent(level, 0)} confidence"
        )

    def best(rule: str, again: bool) -> str:
        value = per_cent(rules[rule]["at_best_threshold"]["value"])
        return f"the {rule} one {value}" if again else f"the {rule} rule would err {value}"

    names: Sequence[str] = list(rules)
    saying = "; ".join(after(rule) for rule in reversed(names))
    at_best = ", ".join(best(rule, bool(place)) for place, rule in enumerate(names))
    return f"If {READINGS[labels]}, {saying}. At its best threshold {at_best}."
