"""What was learned about people, with intervals and doubts, and how to use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countermove.errors import CalibrationError
from countermove.learning.people_estimation._candidates import Candidate, Interval
from countermove.learning.people_estimation._diagnostics import GoodnessOfFit
from countermove.learning.people_estimation._movement import Movement, reach_of
from countermove.learning.people_estimation._noise import Noise
from countermove.learning.people_estimation._report import verdict
from countermove.learning.people_estimation.observation import Observation
from countermove.people import ActionSet, Cost, cost_from_description
from countermove.response.base import NoResponse, Response
from countermove.response.named import named_response
from countermove.response.response_set import RobustResponse

NOBODY = 0.005
"""Share of non-movers below which a training run need not know of them."""
CLOSE = 6.0
"""Schwarz's criterion: models nearer than this to the best one stay in the uncertainty set."""
COLD = 0.02
"""Temperature, as a share of the reach, at which a smoothed step is a hard one."""


@dataclass(frozen=True)
class WeightEstimate:
    """The price of one feature: cost per squared unit of its move."""

    name: str
    value: float
    low: float
    high: float
    # False where the rule gave no reason to move it, or nobody did: only ``low`` is then known.
    identified: bool
    per_original_unit: float | None = None


@dataclass(frozen=True)
class Compared:
    """One line of the comparison of candidate models; ``weight`` is exp(-BIC/2), normalised."""

    name: str
    criterion: float
    weight: float
    log_likelihood: float
    parameters: int
    scale: float | None
    temperature: float | None


@dataclass(frozen=True)
class PeopleEstimate:
    r"""How people responded to a rule, and what a move costs them.

    Attributes
    ----------
    response
        ``best``, ``smooth``, ``none`` or ``drift``: the model chosen.
    cost
        In standardised units; None where the rows do not show it.
    scale, scale_interval
        Price of an advance of one unit along the rule; for all features alike the
        :math:`t` of :math:`t\lVert\delta\rVert^2`.
    temperature, temperature_interval
        Of the smoothed step, units of distance; None for best responders.
    non_movers, non_movers_interval
        Share of people who do not respond to rules.
    noise
        All four kinds.
    weights
        One per feature, where they were estimated.
    comparison
        The candidates, best first.
    fit
        Test of the chosen model.
    identified, reasons
        Whether the rows identify the cost, and why not.
    warnings
        What speaks against the model, and what else the reader should know.
    verdict
        All of it in words.
    n, n_after, matched, level
        Rows, whether they were paired, level of the intervals.
    picture
        Observed and predicted by gap, for the figure.
    actions
        What was allowed.
    """

    response: str
    cost: Cost | None
    scale: float | None
    scale_interval: Interval | None
    temperature: float | None
    temperature_interval: Interval | None
    non_movers: float
    non_movers_interval: Interval
    noise: Noise
    weights: tuple[WeightEstimate, ...]
    comparison: tuple[Compared, ...]
    fit: GoodnessOfFit
    identified: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]
    verdict: str
    n: int
    n_after: int
    matched: bool
    level: float
    picture: dict[str, Any] = field(repr=False)
    actions: ActionSet = field(repr=False)

    @property
    def misspecified(self) -> bool:
        """Whether the chosen model does not fit the rows."""
        return self.fit.rejected

    def population(self) -> Response:
        """Return the people as estimated: movers, mixed with non-movers in their share.

        Raises
        ------
        CalibrationError
            If the rows do not identify the cost; the message says why.
        """
        movers = self._movers(self._known_cost(), self.temperature)
        if self.non_movers < NOBODY:
            return movers
        return RobustResponse(
            [movers, NoResponse(movers.cost, self.actions)],
            [1.0 - self.non_movers, self.non_movers],
        )

    def uncertainty_set(self) -> list[Response]:
        """Return the responses the rows leave possible, for robust training.

        The ends of the interval of the scale (for the smoothed step, with both ends
        of the temperature's), and the other kind of people where it is nearly as
        likely. Non-movers are a known share, not a doubt: they are in `population`.
        """
        cost, described = self._known_cost(), []
        for kind, scale, temperature in self._corners():
            described.append(self._movers(_scaled(cost, scale / self._scale), temperature, kind))
        return described

    def serm_parameters(self, robust: bool = False) -> dict[str, Any]:
        """Return the ``serm`` group of parameters for the next training run."""
        cost = self._known_cost()
        if robust:
            members = [_said(member, with_cost=True) for member in self.uncertainty_set()]
            return {"cost": cost.describe(), "response": {"kind": "robust", "members": members}}
        people = self.population()
        if isinstance(people, RobustResponse) and people.weights is not None:
            members = [_said(member) for member in people.members]
            said = {"kind": "robust", "members": members, "weights": list(people.weights)}
            return {"cost": cost.describe(), "response": said}
        return {"cost": cost.describe(), "response": _said(people)}

    def to_json(self) -> dict[str, Any]:
        """Return everything, JSON-ready (open ends of intervals are None)."""
        from countermove.learning.people_estimation._report import estimate_json

        return estimate_json(self)

    def to_yaml(self, dataset: str | None = None, robust: bool = False) -> str:
        """Return a run configuration that trains on the estimate: ``kedro run --config <file>``.

        Where the cost is not identified, the text says why, and a run with it is refused.
        """
        from countermove.learning.people_estimation._report import estimate_yaml

        return estimate_yaml(self, dataset, robust)

    @property
    def _scale(self) -> float:
        if self.scale is None:
            raise CalibrationError(self.verdict)
        return self.scale

    def _known_cost(self) -> Cost:
        if not self.identified or self.cost is None:
            raise CalibrationError(
                f"the cost is not identifiable from these rows: {'; '.join(self.reasons)}"
            )
        return self.cost

    def _movers(self, cost: Cost, temperature: float | None, kind: str | None = None) -> Response:
        return named_response(kind or self.response, cost, self.actions, temperature or 0.5)

    def _corners(self) -> list[tuple[str, float, float | None]]:
        """Return (kind, scale, temperature) at the ends of what is possible."""
        corners: list[tuple[str, float, float | None]] = []
        scales, heats = self.scale_interval, self.temperature_interval
        assert scales is not None
        for scale in (scales.low, scales.high):
            for heat in (None,) if heats is None else (heats.low, heats.high):
                corners.append((self.response, scale, heat))
        for rival in self.comparison[1:]:
            near = rival.criterion - self.comparison[0].criterion < CLOSE
            coldest = COLD * reach_of(scales.high)
            cold = rival.temperature is not None and rival.temperature < coldest
            if near and rival.scale is not None and not cold:
                corners.append((rival.name, rival.scale, rival.temperature))
        return corners


def _scaled(cost: Cost, factor: float) -> Cost:
    described = cost.describe()
    for name in ("scale", "weights"):
        if name in described:
            described[name] = (np.asarray(described[name]) * factor).tolist()
            return cost_from_description(described)
    raise CalibrationError(f"a cost of kind {described['kind']!r} has no scale")


def _said(response: Response, with_cost: bool = False) -> dict[str, Any]:
    """Return what a YAML file says about a response."""
    said: dict[str, Any] = {"kind": response.name}
    if response.name == "smooth":
        said["temperature"] = float(getattr(response, "temperature"))  # noqa: B009
    return said | ({"cost": response.cost.describe()} if with_cost else {})


def assemble(
    observed: Observation,
    ranked: Sequence[Candidate],
    movement: Movement,
    reasons: tuple[str, ...],
    warnings: tuple[str, ...],
    fit: GoodnessOfFit,
    weights: tuple[WeightEstimate, ...],
    level: float,
    picture: dict[str, Any],
    n_effective: float,
) -> PeopleEstimate:
    """Put everything into one result."""
    chosen = ranked[0]
    return PeopleEstimate(
        response=chosen.name,
        cost=None if chosen.scale is None else movement.cost(chosen.scale),
        scale=chosen.scale,
        scale_interval=chosen.scale_interval,
        temperature=chosen.temperature,
        temperature_interval=chosen.temperature_interval,
        non_movers=chosen.noise.non_movers,
        non_movers_interval=chosen.non_movers_interval,
        noise=chosen.noise,
        weights=weights,
        comparison=_compared(ranked, n_effective),
        fit=fit,
        identified=not reasons,
        reasons=reasons,
        warnings=warnings,
        verdict=verdict(chosen, reasons, warnings, fit, weights, level),
        n=len(observed.X),
        n_after=len(observed.X_after),
        matched=observed.matched,
        level=level,
        picture=picture,
        actions=observed.actions,
    )


def _compared(ranked: Sequence[Candidate], n: float) -> tuple[Compared, ...]:
    marks = [model.criterion(n) for model in ranked]
    odds = [math.exp(-0.5 * min(mark - marks[0], 1400.0)) for mark in marks]
    return tuple(
        Compared(
            name=model.name,
            criterion=mark,
            weight=share / sum(odds),
            log_likelihood=model.log_likelihood,
            parameters=model.parameters,
            scale=model.scale,
            temperature=model.temperature,
        )
        for model, mark, share in zip(ranked, marks, odds, strict=True)
    )
