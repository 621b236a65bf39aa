"""What changed between two versions, in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

from countermove.production.registry import StoredVersion

SHOWN_WEIGHTS = 5


def difference(old: StoredVersion, new: StoredVersion) -> list[str]:
    """Return sentences on how two versions differ: threshold, weights, accuracy, promise, rows."""
    if old.sha256 == new.sha256:
        return [f"{old.version} and {new.version} hold the same rule."]
    return [
        *_threshold(old, new),
        *_weights(old, new),
        *_accuracies(old.facts, new.facts),
        *_promises(old.facts, new.facts),
        *_rows(old, new),
    ]


def _threshold(old: StoredVersion, new: StoredVersion) -> list[str]:
    before, after = (each.model.threshold for each in (old, new))
    if abs(before - after) < 5e-4:
        return [f"Both ask for a probability of {after:.3f}."]
    return [f"The probability asked for goes from {before:.3f} to {after:.3f}."]


def _weights(old: StoredVersion, new: StoredVersion) -> list[str]:
    """Compare directions in standardised units: only the proportions of weights decide."""
    before, after = (each.model.score.slope() for each in (old, new))
    if before is None or after is None or before.shape != after.shape:
        return ["The scores are not linear, so no weights are compared."]
    units = [
        np.asarray(slope.detach()) / max(float(slope.detach().norm()), 1e-12)
        for slope in (before, after)
    ]
    names, change = new.model.standardiser.names, units[1] - units[0]
    angle = np.degrees(np.arccos(np.clip(units[0] @ units[1], -1.0, 1.0)))
    largest = np.argsort(-np.abs(change))[:SHOWN_WEIGHTS]
    listed = "; ".join(
        f"{names[place]} {units[0][place]:+.2f} to {units[1][place]:+.2f}"
        for place in largest
        if abs(change[place]) >= 0.005
    )
    turned = f"The direction of the score turns by {angle:.1f} degrees"
    return [f"{turned}; most in {listed}." if listed else f"{turned}."]


def _accuracies(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = old["metrics"]["accuracy"], new["metrics"]["accuracy"]
    said = []
    for response in sorted(set(before) & set(after)):
        points = 100.0 * (after[response] - before[response])
        same = abs(points) < 0.05
        change = (
            "as before" if same else f"{abs(points):.1f} points {'up' if points > 0 else 'down'}"
        )
        said.append(f"{response} {after[response]:.3f}, {change}")
    return [f"Accuracy on the hold-out, by how people respond: {'; '.join(said)}."] if said else []


def _promises(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = (_promised(facts) for facts in (old, new))
    if before == after:
        return [f"The promise of recourse is the same: {after}."]
    return [f"The promise of recourse was: {before}; it is now: {after}."]


def _promised(facts: dict[str, Any]) -> str:
    certificate = facts["certificate"]
    if certificate["value"] is None:
        return "none"
    return f"at most {certificate['value']:.3g} without recourse ({certificate['level']:.0%} sure)"


def _rows(old: StoredVersion, new: StoredVersion) -> list[str]:
    before, after = (_made_from(each.model.about) for each in (old, new))
    return [f"{after[:1].upper()}{after[1:]}; before: {before}."]


def _made_from(about: dict[str, Any]) -> str:
    if "adopted" in about:
        return "adopted from the {source} {file}".format(**about["adopted"])
    return f"trained on {about['rows'].get('train', 0):,} rows"
