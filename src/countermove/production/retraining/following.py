"""The policy that follows the world: what a night reads, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from countermove._types import Floats, Mask
from countermove.production.retraining.evidence import Evidence, Look
from countermove.production.retraining.reach import ReachEstimate, ReachModel
from countermove.scores import LinearScore


@dataclass(frozen=True, eq=False)
class DeployedRule:
    """A linear rule that people responded to.

    Attributes
    ----------
    score
        Favourable where it is at least 0.
    allowance
        What its threshold allows for people's moves, in units of the score: added to it, the score
        is about people before they moved. None: as much as the people assumed advance.
    people
        The people it was made for.
    """

    version: str
    score: LinearScore
    people: ReachModel
    allowance: float | None = None


@dataclass(frozen=True, eq=False)
class SeenBatch:
    """People of one batch, as they were seen after they could respond to a rule.

    ``y`` is NaN where there is no label yet; ``fresh`` marks labels that no look has used.
    ``rule`` is None for people who were seen before they could respond. ``weight`` is how much
    each label counts; None: all the same.
    """

    name: str
    X: Floats
    y: Floats
    day: float
    rule: DeployedRule | None
    fresh: Mask
    weight: Floats | None = None

    @property
    def labelled(self) -> Mask:
        """Who has a label."""
        return np.isfinite(self.y)


@dataclass(frozen=True)
class Memory:
    """What earlier nights left: looks, how the discounts did, and how far people moved.

    ``promoted`` is the day of the look that the last promotion of a rule rests on.
    """

    looks: tuple[Look, ...] = ()
    days: tuple[float, ...] = ()
    losses: Mapping[str, float] = field(default_factory=dict)
    reaches: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    opened: float | None = None
    promoted: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it, JSON-ready."""
        return {
            "looks": [look.to_json() for look in self.looks],
            "days": list(self.days),
            "losses": dict(self.losses),
            "reaches": {name: dict(said) for name, said in self.reaches.items()},
            "opened": self.opened,
            "promoted": self.promoted,
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Any] | None) -> Memory:
        """Return what `to_json` wrote down; nothing where there is nothing."""
        if said is None:
            return cls()
        looks = tuple(Look.from_json(look) for look in said["looks"])
        kept = (said["losses"], said["reaches"], said["opened"], said.get("promoted"))
        return cls(looks, tuple(said["days"]), *kept)


@dataclass(frozen=True, eq=False)
class Night:
    """What a night found, and what it proposes.

    Attributes
    ----------
    proposal
        ``rule``: another rule, the evidence for which suffices. ``shift``: the champion at another
        threshold, for people who move farther or less far. ``none``: the challenger is stored, and
        the champion stays.
    score
        The proposed or refused challenger, as it would be deployed.
    allowance, people
        What its threshold allows for, and the people it is made for.
    reach, discount, evidence, newest
        How far people moved, how fast was forgotten, what the comparison showed, and the day of
        the newest label; None without new labels.
    trend
        Whether the rule was moved on to the newest month.
    stood
        Per batch where its people are likely to have stood, shape (n, d).
    folds, held_out
        Per batch everybody's fold, -1 where there is no new label, and per fold the challenger
        fitted without it.
    """

    proposal: Literal["rule", "shift", "none"]
    score: LinearScore
    allowance: float
    people: ReachModel
    reach: ReachEstimate | None
    discount: float | None
    evidence: Evidence | None
    memory: Memory
    covariance: Floats | None
    newest: float | None
    stood: tuple[Floats, ...] = ()
    folds: tuple[NDArray[np.intp], ...] = ()
    held_out: tuple[LinearScore, ...] = ()
    trend: bool = False

    def after(self, promoted: bool) -> Memory:
        """Return what the next night has to know."""
        if not promoted or self.proposal == "shift":
            return self.memory
        # Only evidence shows that the world moves, not a promotion for which none was asked.
        shown = self.newest if self.proposal == "rule" else self.memory.promoted
        return replace(self.memory, looks=(), promoted=shown)

    def to_json(self) -> dict[str, Any]:
        """Return what the night found, JSON-ready."""
        return {
            "proposal": self.proposal,
            "allowance": self.allowance,
            "people": self.people.to_json(),
            "reach": None if self.reach is None else self.reach.to_json(),
            "discount": self.discount,
            "trend": self.trend,
            "evidence": None if self.evidence is None else self.evidence.to_json(),
            "newest_label_day": self.newest,
        }


def linear_score(theta: Floats, allowance: float) -> LinearScore:
    """Return a rule about people before they moved as it is deployed."""
    score = LinearScore(len(theta) - 1)
    with torch.no_grad():
        score.weight.copy_(torch.from_numpy(theta[:-1].copy()))
        score.bias.fill_(float(theta[-1]) - allowance)
    return score


def shifted_score(score: LinearScore, shift: float) -> LinearScore:
    """Return a rule with another intercept."""
    theta = np.append(score.weight.detach().numpy(), float(score.bias.detach()))
    return linear_score(theta, -shift)
