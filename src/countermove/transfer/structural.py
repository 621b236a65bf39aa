r"""People made by a small structural model, and what a rule does to one of its variables.

Each variable is a polynomial of its causes plus noise of its own. A rule's decision
:math:`h \in \{-1, +1\}` shifts one variable, and everything that follows from it is made
again; the mechanism of the label is not touched, so P(Y | X) is kept (covariate shift).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError, nearest

People = dict[str, Floats]

NOISES = ("uniform", "normal")


@dataclass(frozen=True)
class StructuralEquation:
    """How one variable follows from others.

    Parameters
    ----------
    causes
        Coefficient per (cause, power).
    noise
        ``uniform`` between ``low`` and ``high``, or ``normal`` with standard deviation ``high``
        around 0.
    low, high
        Of the noise, in units of the variable.
    """

    causes: Mapping[tuple[str, int], float] = field(default_factory=dict)
    noise: Literal["uniform", "normal"] = "normal"
    low: float = 0.0
    high: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Return the noise of n people, shape (n,)."""
        if self.noise == "uniform":
            return rng.uniform(self.low, self.high, n)
        return rng.normal(0.0, self.high, n)

    def mean(self, people: People, n: int) -> Floats:
        """Return what follows from the causes, shape (n,)."""
        total = np.zeros(n)
        for (cause, power), coefficient in self.causes.items():
            total += coefficient * people[cause] ** power
        return total


@dataclass(frozen=True)
class StructuralModel:
    """Variables and how they follow from each other, causes before effects."""

    equations: Mapping[str, StructuralEquation]

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> StructuralModel:
        """Read a model from what YAML can hold.

        .. code-block:: yaml

            x1: {uniform: [-1, 1]}
            x2: {causes: {x1: 1.2}, normal: 0.15}
            x3: {causes: {x1^2: -1.0}, normal: 0.1}

        Raises
        ------
        ParameterError
            For an unknown key or cause, a noise that makes no sense, or variables that
            cause each other in a circle.
        """
        equations = {name: _equation(name, spec) for name, spec in mapping.items()}
        for name, equation in equations.items():
            for cause, _ in equation.causes:
                if cause not in equations:
                    raise ParameterError(
                        f"variable {name!r} follows from {cause!r}, which the model does not "
                        f"have; {nearest(cause, equations)}"
                    )
        parents = {name: {c for c, _ in equation.causes} for name, equation in equations.items()}
        try:
            order = list(TopologicalSorter(parents).static_order())
        except CycleError as error:
            raise ParameterError(
                f"variables cause each other in a circle: {' → '.join(error.args[1])}; "
                "take one arrow out"
            ) from error
        return cls({name: equations[name] for name in order})

    def draw(self, n: int, rng: np.random.Generator) -> tuple[People, People]:
        """Return n people and the noise that made them, by variable."""
        noise = {name: equation.draw(n, rng) for name, equation in self.equations.items()}
        return self.made(noise), noise

    def made(self, noise: People, given: People | None = None) -> People:
        """Return the people that noise makes; variables ``given`` are set from outside."""
        given = {} if given is None else given
        n = len(next(iter(noise.values())))
        people: People = {}
        for name, equation in self.equations.items():
            people[name] = given[name] if name in given else equation.mean(people, n) + noise[name]
        return people

    def answered(
        self,
        people: People,
        decision: Floats,
        shift: Shift,
        noise: People,
    ) -> People:
        """Return the people after a decision.

        Parameters
        ----------
        people
            Before.
        decision
            In {-1, +1}, shape (n,).
        shift
            Which variable moves, and how.
        noise
            Of the variables that are made again: the old ones keep what is particular to each
            person, fresh draws do not (as published).
        """
        if shift.variable not in self.equations:
            raise ParameterError(
                f"no variable {shift.variable!r} to shift; "
                f"{nearest(shift.variable, self.equations)}"
            )
        before = people[shift.variable]
        return self.made(noise, {shift.variable: shift.after(before, decision)})


@dataclass(frozen=True)
class Shift:
    r"""What a decision does to one variable.

    Parameters
    ----------
    variable
        Its name.
    strength
        :math:`c`, in units of the variable.
    reading
        ``paper``: :math:`x' = x + c (h - 1)`, so only the refused move, down by 2c;
        ``released``: :math:`x' = x + c h`, so both move, by c.
    """

    variable: str
    strength: float
    reading: Literal["paper", "released"] = "paper"

    def after(self, before: Floats, decision: Floats) -> Floats:
        """Return the variable after the decision, shape (n,)."""
        step = decision - 1.0 if self.reading == "paper" else decision
        return before + self.strength * step


def _equation(name: str, spec: Mapping[str, Any]) -> StructuralEquation:
    unknown = set(spec) - {"causes", *NOISES}
    if unknown:
        key = sorted(unknown)[0]
        raise ParameterError(
            f"variable {name!r}: unknown key {key!r}; {nearest(key, ('causes', *NOISES))}"
        )
    causes = {_powered(name, c): float(b) for c, b in spec.get("causes", {}).items()}
    if "uniform" in spec:
        low, high = (float(value) for value in spec["uniform"])
        if not low < high or "normal" in spec:
            raise ParameterError(
                f"variable {name!r}: expected one noise, uniform [low, high] with low < high, or "
                f"normal; got {dict(spec)}"
            )
        return StructuralEquation(causes, "uniform", low, high)
    spread = float(spec.get("normal", 0.0))
    if spread < 0.0:
        raise ParameterError(f"variable {name!r}: a standard deviation cannot be negative")
    return StructuralEquation(causes, "normal", 0.0, spread)


def _powered(name: str, cause: str) -> tuple[str, int]:
    base, _, power = cause.partition("^")
    if power and not (power.isdigit() and int(power) >= 1):
        raise ParameterError(
            f"variable {name!r}: {cause!r} is no cause; write x or x^2, with a whole power"
        )
    return base, int(power or 1)
