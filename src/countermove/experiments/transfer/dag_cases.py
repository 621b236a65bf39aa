"""The four cases of the paper's Figure 4, as the paper writes them and as they were released.

Two covariate shifts (a small structural model whose first variable answers the decision, after
which everything that follows from it is made again) and two target shifts (labels that change
with the decision, features drawn given the label).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError, nearest
from countermove.transfer.shifts import Transition

Variables = dict[str, Floats]

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

    def mean(self, people: Variables, n: int) -> Floats:
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

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Variables, Variables]:
        """Return n people and the noise that made them, by variable."""
        noise = {name: equation.draw(n, rng) for name, equation in self.equations.items()}
        return self.made(noise), noise

    def made(self, noise: Variables, given: Variables | None = None) -> Variables:
        """Return the people that noise makes; variables ``given`` are set from outside."""
        given = {} if given is None else given
        n = len(next(iter(noise.values())))
        people: Variables = {}
        for name, equation in self.equations.items():
            people[name] = given[name] if name in given else equation.mean(people, n) + noise[name]
        return people

    def answered(
        self,
        people: Variables,
        decision: Floats,
        shift: Shift,
        noise: Variables,
    ) -> Variables:
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


Reading = Literal["paper", "released"]
Drawn = tuple[Floats, Floats]
"""Features, shape (n, 3), and labels in {-1, +1}, shape (n,)."""

STAY_OR_CHANGE = Transition(((0.15, 0.0), (0.8, 1.0)))
"""Of the released target shifts: the accepted keep their label, the refused may change it."""


@dataclass(frozen=True)
class CovariateCase:
    """A structural model with label +1 where the second variable is above 0.

    Parameters
    ----------
    model
        Makes the features.
    shift
        What a decision does.
    n
        Rows of the published experiment.
    """

    model: StructuralModel
    shift: Shift
    n: int

    def source(self, n: int, rng: np.random.Generator) -> Drawn:
        """Return n people before."""
        people, _ = self.model.draw(n, rng)
        return _seen(people)

    def induced(self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator) -> Drawn:
        """Return the same people after a decision in {-1, +1}; noise is drawn afresh."""
        people = dict(zip(self.model.equations, X.T, strict=True))
        noise = {name: e.draw(len(X), rng) for name, e in self.model.equations.items()}
        return _seen(self.model.answered(people, decision, self.shift, noise))


@dataclass(frozen=True)
class TargetCase:
    r"""Features given the label, and a label that answers the decision.

    :math:`X_1 \mid y \sim N_{[0,1]}(\mu_y, \sigma^2)`, :math:`X_2 = -0.8 X_1 + N(0, .15^2)`,
    :math:`X_3 = 0.2\,Y + N(0, .2^2)`.

    Parameters
    ----------
    means
        :math:`\mu_{-1}, \mu_{+1}`.
    spread
        :math:`\sigma`.
    n
        Rows of the published experiment.
    label_zero
        What :math:`Y` counts as in :math:`X_3` where the label is −1: −1 (paper) or 0
        (released).
    favourable
        Share of label +1 before.
    transition
        Chances to have label +1 after.
    matched
        False: as released, the first p(h)·n rows get :math:`X_1` of label −1 and the rest that
        of label +1 (the counts swapped), whatever their new label is; P(X | Y) then changes.
    """

    means: tuple[float, float]
    spread: float
    n: int
    label_zero: float = -1.0
    favourable: float = 0.5
    transition: Transition = STAY_OR_CHANGE
    matched: bool = True

    def source(self, n: int, rng: np.random.Generator) -> Drawn:
        """Return n people before, those of label −1 first."""
        y = np.sort(np.where(rng.random(n) < self.favourable, 1.0, -1.0))
        return self.features(y, rng), y

    def induced(self, X: Floats, y: Floats, decision: Floats, rng: np.random.Generator) -> Drawn:
        """Return people after: new labels, and features drawn to match them."""
        table = np.asarray(self.transition.chances)
        chances = table[(y > 0).astype(int), (decision > 0).astype(int)]
        after = np.where(rng.random(len(y)) < chances, 1.0, -1.0)
        return self.features(after, rng), after

    def features(self, y: Floats, rng: np.random.Generator) -> Floats:
        """Return features for labels, shape (n, 3)."""
        looks = y > 0
        if not self.matched:
            looks = np.arange(len(y)) >= int(np.sum(y > 0))
        x1 = truncated_normal(np.where(looks, self.means[1], self.means[0]), self.spread, rng)
        counted = np.where(y > 0, 1.0, self.label_zero)
        x2 = -0.8 * x1 + rng.normal(0.0, 0.15, len(y))
        return np.column_stack([x1, x2, 0.2 * counted + rng.normal(0.0, 0.2, len(y))])


Case = CovariateCase | TargetCase

COVARIATE = {"CS1": (0.15, 0.25, 500), "CS2": (0.25, 0.45, 800)}
"""Spread of X2, strength of the shift, rows."""

TARGET = {"TS1": ((0.0, 1.0), 0.25, 1000), "TS2": ((0.2, 0.8), 0.15, 500)}
"""Means of X1 by label, its spread, rows."""


def dag_case(name: str, reading: Reading = "paper") -> Case:
    """Return ``CS1``, ``CS2``, ``TS1`` or ``TS2``.

    The readings differ in :math:`X_3` (:math:`-X_1^2` in the paper, :math:`-0.8 X_1^2` as
    released; labels ±1 or 0 and 1) and in the answer of :math:`X_1` (see `Shift`).
    """
    if reading not in ("paper", "released"):
        raise ParameterError(f"reading is 'paper' or 'released', got {reading!r}")
    if name in TARGET:
        means, spread, n = TARGET[name]
        return TargetCase(means, spread, n, -1.0 if reading == "paper" else 0.0)
    if name not in COVARIATE:
        raise ParameterError(f"no case {name!r}; {nearest(name, [*COVARIATE, *TARGET])}")
    spread, strength, n = COVARIATE[name]
    model = StructuralModel.from_mapping(
        {
            "x1": {"uniform": [-1.0, 1.0]},
            "x2": {"causes": {"x1": 1.2}, "normal": spread},
            "x3": {"causes": {"x1^2": -1.0 if reading == "paper" else -0.8}, "normal": 0.1},
        }
    )
    return CovariateCase(model, Shift("x1", strength, reading), n)


def truncated_normal(mean: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Return one draw per mean from the normal restricted to [0, 1], by its quantiles."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.0 - mean) / spread), ndtr((1.0 - mean) / spread)
    inner = ndtri(low + rng.random(len(mean)) * (high - low))
    return np.asarray(np.clip(mean + spread * inner, 0.0, 1.0), np.float64)


def _seen(people: Variables) -> Drawn:
    X = np.column_stack(list(people.values()))
    return X, np.where(people["x2"] > 0.0, 1.0, -1.0)
