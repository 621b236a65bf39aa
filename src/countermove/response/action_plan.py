"""What a response knows of its actions before it meets anybody, and of a score: its slope."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.people.actions import Bounds
from countermove.scores import Score


class ActionPlan:
    """What a response knows of its actions before it meets a score; made once and kept."""

    def __init__(self, actions: ActionSet, n_features: int) -> None:
        self.actions = actions.for_response()
        down, up = self.actions.directions(n_features)
        self.down, self.up, self.moving = down, up, down | up
        self.all_free = bool(down.all() and up.all())
        self.all_move = bool(self.moving.all())
        self.ones = self.moving.astype(np.float64)
        self.rising, self.falling = up.astype(np.float64), down.astype(np.float64)
        self._tensors = tuple(torch.from_numpy(part) for part in (down, up, self.moving))
        parts = (actions.lower, actions.upper, actions.min_value, actions.max_value)
        self.per_person = any(part is not None and part.ndim == 2 for part in parts)
        self._bounds: dict[int, Bounds] = {}
        self._facts: dict[int, tuple[bool, bool]] = {}

    def facts(self, n_rows: int) -> tuple[bool, bool]:
        """Return whether nothing bounds a feature that moves, and whether all have one box."""
        bounds = self.bounds(n_rows)
        if id(bounds) not in self._facts:
            self._facts = {id(bounds): (_unbounded(bounds), _shared(bounds, self.actions))}
        return self._facts[id(bounds)]

    def bounds(self, n_rows: int) -> Bounds:
        """Return the bounds for so many people."""
        key = n_rows if self.per_person else 0
        if key not in self._bounds:
            self._bounds = {key: self.actions.bounds(n_rows, len(self.moving))}
        return self._bounds[key]

    def movable(self, slope: Tensor) -> Tensor:
        """Return the slope over the features that move."""
        return slope if self.all_move else slope * self._tensors[2]

    def usable(self, slope: Floats) -> Floats:
        """Return the slope where a person can move in its direction, zero elsewhere."""
        if self.all_free:
            return slope
        result: Floats = np.where(slope > 0.0, self.up, self.down) * slope
        return result

    def unit(self, slope: Tensor) -> Tensor:
        r"""Return :math:`\sup\{w\cdot\delta : \|\delta\|_2 \le 1\}` over movable directions."""
        if not self.all_free:
            down, up, _ = self._tensors
            slope = slope * torch.where(slope > 0.0, up, down)
        norm: Tensor = torch.linalg.vector_norm(slope, dim=-1)
        return norm


def slope_of(score: Score) -> Tensor:
    """Return the score's slope; refuse scores that are not affine in what moves."""
    slope = score.slope()
    if slope is None:
        raise ParameterError(
            f"{type(score).__name__} has no slope: it is not affine in the features that move, so "
            "the response does not reduce to one number per person and there is no N(w) to measure "
            "distance by. unit=<score per unit of distance> can stand for N(w), but nothing can "
            "stand for the slope: publish a score that is affine in what moves (LinearScore, or "
            "PartlyLinearScore, any network in the other features), or let people climb it "
            "(AscentResponse; RepresentationResponse for a RepresentationScore)"
        )
    return slope


def _unbounded(bounds: Bounds) -> bool:
    held = (bounds.lower == 0.0) & (bounds.upper == 0.0)
    loose = np.isinf(bounds.lower) & np.isinf(bounds.upper)
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    return not by_value and len(held) == 1 and bool((held | loose).all())


def _shared(bounds: Bounds, actions: ActionSet) -> bool:
    """Return whether everybody has the same box and constraints, hence the same polyline."""
    by_value = np.isfinite(bounds.min_value).any() or np.isfinite(bounds.max_value).any()
    alone = len(bounds.lower) == len(bounds.upper) == 1
    return alone and not by_value and (actions.b is None or actions.b.ndim == 1)
