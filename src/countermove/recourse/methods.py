"""The recourse methods by name: each proposes actions for a `Problem`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

import numpy as np

from countermove._types import Floats, Mask
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.recourse.models import MARGIN
from countermove.recourse.problem import Problem
from countermove.recourse.room import absent

METHODS = ("linear_program", "gradient", "integer_program", "causal", "exhaustive")
LOCAL_MODELS = ("taylor", "sampled", "both")


@dataclass(frozen=True)
class Settings:
    """How hard the methods search.

    Parameters
    ----------
    starts, steps
        Starts per person and Adam steps per start (``gradient``).
    local_model
        The linear model of a score that is not linear (``integer_program``):
        ``taylor`` (its gradient), ``sampled`` (least squares on samples of the
        person's own actions) or ``both``, the cheaper success.
    grid
        Values per continuous feature (``exhaustive``).
    """

    starts: int = 4
    steps: int = 200
    local_model: str = "both"
    grid: int = 41

    def __post_init__(self) -> None:
        for name, least in (("starts", 1), ("steps", 1), ("grid", 2)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name} is at least {least}, got {getattr(self, name)!r}")
        if self.local_model not in LOCAL_MODELS:
            raise UnknownNameError(
                f"no local model {self.local_model!r}; {nearest(self.local_model, LOCAL_MODELS)}"
            )


class Found(NamedTuple):
    """Proposed actions (NaN where none), and for whom none exists beyond doubt."""

    action: Floats
    proven_none: Mask


Reach = Callable[[Problem, Settings], tuple[Floats, Floats]]


class Method(NamedTuple):
    """How a method finds recourse, and how it finds the best score whatever the threshold."""

    search: Callable[[Problem, Settings], Found]
    reach: Reach


def method_of(name: str) -> Method:
    """Return a method by name."""
    if name not in METHODS:
        raise UnknownNameError(f"no recourse method {name!r}; {nearest(str(name), METHODS)}")
    home = import_module(f"countermove.recourse.{name}")
    return Method(home.search, home.reach)


def unproven(action: Floats) -> Found:
    """Return a proposal without any proof."""
    return Found(action, np.zeros(len(action), bool))


def fall_back(problem: Problem, action: Floats, reach: Reach, settings: Settings) -> Floats:
    """Fill in, where nothing was found, the action of the best score the method reaches.

    The best score does not depend on the target: whoever PARE counted as having
    recourse is given that very action here.
    """
    rest = np.flatnonzero(absent(action))
    if not rest.size:
        return action
    reached, scores = reach(problem.rows(rest), settings)
    # The aim lies a hair beyond the threshold; within that hair the verdict is the caller's.
    near = scores >= problem.target - 2.0 * MARGIN * (1.0 + abs(problem.target))
    filled = action.copy()
    filled[rest[near]] = reached[near]
    return filled
