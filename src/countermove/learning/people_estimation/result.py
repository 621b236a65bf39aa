"""What was learned about people, with intervals and doubts, and how to use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countermove.errors import CalibrationError, ParameterError
from countermove.learning.people_estimation._candidates import Candidate, Interval, Noise
from countermove.learning.people_estimation._misfit import GoodnessOfFit
from countermove.learning.people_estimation._moves import Movement, WeightEstimate, reach_of
from countermove.learning.people_estimation._overshoot import Overshoot
from countermove.learning.people_estimation._price_fit import PriceFit
from countermove.learning.people_estimation._report import verdict
from countermove.learning.people_estimation.observation import Observation
from countermove.people import ActionSet, Cost, cost_from_description
from countermove.response.base import Response
from countermove.response.named import named_response
from countermove.response.population import Population

NOBODY = 0.005
"""Share of non-movers below which a training run need not know of them."""
MOST = 1.0 - 1e-6
"""Share of never-movers at which somebody still moves."""
CLOSE = 6.0
"""Schwarz's criterion: models nearer than this to the best one stay in the uncertainty set."""
COLD = 0.02
"""Temperature, as a share of the reach, at which a smoothed step is a hard one."""


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
class ConfidenceSet:
    """Populations between which the true one lies, number by number, with that probability."""

    populations: tuple[Response, ...]
    level: float


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
        Test of the chosen model; ``fit.misfits`` names what speaks against it.
    log_sd, log_sd_interval
        Standard deviation of the logarithm of prices among those who move; the scale is then
        their median price. 0 where equal prices are not refuted.
    overshoot
        How far beyond the boundary movers go.
    drift
        What everybody's record did, rule or no rule: constant, and per unit of gap.
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
    log_sd: float = 0.0
    log_sd_interval: Interval | None = None
    overshoot: Overshoot = field(default_factory=Overshoot)
    drift: tuple[float, float] = (0.0, 0.0)
    _prices: PriceFit | None = field(default=None, repr=False, compare=False)

    @property
    def misspecified(self) -> bool:
        """Whether the chosen model does not fit the rows."""
        return self.fit.rejected

    def population(self, force: bool = False) -> Response:
        """Return the people as estimated: a `Population` unless they are all alike.

        Parameters
        ----------
        force
            Also if the estimate does not fit.

        Raises
        ------
        CalibrationError
            If the rows do not identify the cost, or the model does not fit them; the message
            says why.
        """
        self._check_fit(force)
        return self._people(self._known_cost(), self.temperature, self.non_movers, self.log_sd)

    def confidence_set(self, level: float | None = None, force: bool = False) -> ConfidenceSet:
        r"""Return populations at the corners of what the rows leave possible, jointly.

        Parameters
        ----------
        level
            Probability that *all* numbers of the people lie between the corners' (Bonferroni);
            the estimate's own by default. A procedure that must hold for the true people at
            :math:`1-\delta` may use a set of level :math:`1-\delta/2` and spend the rest.
        force
            Also if the estimate does not fit.
        """
        self._check_fit(force)
        cost, (scales, spreads, shares, joint) = self._known_cost(), self._joint(level)
        if not scales.closed:
            raise CalibrationError(f"at level {joint:g} the scale has an open end")
        heats = self.temperature_interval
        corners = {
            (scale, never, spread, heat)
            for scale in (scales.low, scales.high)
            for never in (shares.low, min(shares.high, MOST))
            for spread in (spreads.low, spreads.high)
            for heat in ((None,) if heats is None else (heats.low, heats.high))
        }
        members = tuple(
            self._people(_scaled(cost, scale / self._scale), heat, never, spread)
            for scale, never, spread, heat in sorted(corners, key=repr)
        )
        return ConfidenceSet(members, joint)

    def _joint(self, level: float | None) -> tuple[Interval, Interval, Interval, float]:
        """Return intervals of scale, log-sd and never-movers, and their joint level."""
        asked = self.level if level is None else level
        if not 0.5 <= asked < 1.0:
            raise ParameterError(f"level lies in [0.5, 1), got {level!r}")
        if self._prices is not None:
            return *self._prices.intervals(1.0 - (1.0 - asked) / 3.0), asked
        if asked != self.level:
            raise ParameterError(
                f"the intervals of this estimate are known at its own level, {self.level:g}; "
                f"estimate again with level={asked:g}"
            )
        assert self.scale_interval is not None
        # Between two samples any two numbers hold together at the level, else each one alone.
        numbers = 2 if self.temperature is None else 3
        spent = numbers - 1 if not self.matched else numbers
        joint = 1.0 - spent * (1.0 - asked)
        return self.scale_interval, Interval(0.0, 0.0), self.non_movers_interval, joint

    def uncertainty_set(self, force: bool = False) -> list[Response]:
        """Return the responses the rows leave possible, for robust training.

        The ends of the interval of the scale (for the smoothed step, with both ends
        of the temperature's), and the other kind of people where it is nearly as
        likely. Never-movers and the spread of prices are taken as estimated; see
        `confidence_set` for their ends.
        """
        self._check_fit(force)
        cost, described = self._known_cost(), []
        for kind, scale, temperature in self._corners():
            one = _scaled(cost, scale / self._scale)
            spread = self.log_sd if kind == self.response else 0.0
            described.append(self._people(one, temperature, 0.0, spread, kind))
        return described

    def serm_parameters(self, robust: bool = False, force: bool = False) -> dict[str, Any]:
        """Return the ``serm`` group of parameters for the next training run."""
        self._check_fit(force)
        cost = self._known_cost()
        if robust:
            members = [_said(member, with_cost=True) for member in self.uncertainty_set(force)]
            return {"cost": cost.describe(), "response": {"kind": "robust", "members": members}}
        return {"cost": cost.describe(), "response": _said(self.population(force))}

    def to_json(self) -> dict[str, Any]:
        """Return everything, JSON-ready (open ends of intervals are None)."""
        from countermove.learning.people_estimation._report import estimate_json

        return estimate_json(self)

    def to_yaml(self, dataset: str | None = None, robust: bool = False, force: bool = False) -> str:
        """Return a run configuration that trains on the estimate: ``kedro run --config <file>``.

        Where the cost is not identified, the text says why, and a run with it is refused.

        Raises
        ------
        CalibrationError
            If the model does not fit, unless ``force``; `settings` writes a file that says so.
        """
        if self.identified:
            self._check_fit(force)
        return self.settings(dataset, robust, force)

    def settings(
        self, dataset: str | None = None, robust: bool = False, force: bool = False
    ) -> str:
        """Return the same, or, where that raises, a file that says why and that a run refuses."""
        from countermove.learning.people_estimation._report import estimate_yaml

        return estimate_yaml(self, dataset, robust, force)

    def _check_fit(self, force: bool) -> None:
        if self.misspecified and not force:
            named = "; ".join(misfit.words for misfit in self.fit.misfits)
            named = named or f"{self.fit.misplaced:.1%} of the people stand elsewhere"
            raise CalibrationError(
                f"the estimate does not fit the people (p = {self.fit.p_value:.2g}): {named}. "
                "Training on it would count on people who do not exist; look at the verdict, or "
                "pass force=True to use it all the same"
            )

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

    def _people(
        self,
        cost: Cost,
        temperature: float | None,
        never: float,
        log_sd: float,
        kind: str | None = None,
    ) -> Response:
        movers = named_response(kind or self.response, cost, self.actions, temperature or 0.5)
        if never < NOBODY and log_sd == 0.0:
            return movers
        return Population(movers, never=never if never >= NOBODY else 0.0, log_sd=log_sd)

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
    if isinstance(response, Population):
        kinds = [_said(kind, with_cost) for kind in response.kinds]
        numbers = {"never": response.never, "log_sd": response.log_sd}
        return {"kind": response.name, "kinds": kinds} | numbers
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
        log_sd=chosen.log_sd,
        log_sd_interval=chosen.log_sd_interval,
        overshoot=Overshoot() if chosen.prices is None else chosen.prices.overshoot,
        drift=chosen.drift if chosen.prices is None else chosen.prices.drift,
        _prices=chosen.prices,
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
