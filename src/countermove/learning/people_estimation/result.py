"""What was learned about people, with intervals and doubts, and how to use it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from countermove.errors import CalibrationError, ParameterError
from countermove.learning.people_estimation._candidates import Candidate, Interval, Noise, Overshoot
from countermove.learning.people_estimation._fit_tests import GoodnessOfFit
from countermove.learning.people_estimation._moves import Movement, WeightEstimate, reach_of
from countermove.learning.people_estimation._report import run_configuration, verdict
from countermove.learning.people_estimation.observation import Observation
from countermove.people import ActionSet, Cost
from countermove.response.base import Response
from countermove.response.named import named_response
from countermove.response.population import Population
from countermove.response.response_set import ConfidenceSet

NOBODY = 0.005
"""Share of non-movers below which a training run need not know of them."""
MOST, MOST_SPREAD = 1.0 - 1e-6, 6.0
"""Share of never-movers at which somebody still moves; log-sd of prices where its end is open."""
CONFIDENCE = 0.975
"""Of the confidence set in a settings file: half of the default failure probability is left."""
OPEN = 1e6
"""Factor on the price that an open end stands for."""
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
    _at_level: Callable[[float], Candidate] | None = field(default=None, repr=False, compare=False)

    @property
    def misspecified(self) -> bool:
        """Whether the chosen model does not fit the rows."""
        return self.fit.rejected

    def population(self, force: bool = False, confidence: float | None = None) -> Response:
        """Return the people as estimated: a `Population` unless they are all alike.

        Parameters
        ----------
        force
            Also if the estimate does not fit.
        confidence
            Joint level of a `confidence_set` the people bring with them: promises of recourse
            then hold over all of it. None: they bring none.

        Raises
        ------
        CalibrationError
            If the rows do not identify the cost, or the model does not fit them; the message
            says why.
        """
        self._check_fit(force)
        movers = self._movers(self.response, self._known_cost(), self.temperature)
        people = _people(movers, self.non_movers, self.log_sd)
        if confidence is not None:
            people.confidence = self.confidence_set(confidence, force)
        return people

    def confidence_set(self, level: float | None = None, force: bool = False) -> ConfidenceSet:
        r"""Return what the rows leave possible, for all numbers of the people together.

        Parameters
        ----------
        level
            Probability that *all* numbers of the people lie in their intervals (Bonferroni);
            the estimate's own by default. A procedure that must hold for the true people at
            :math:`1-\delta` may use a set of level :math:`1-\delta/2` and spend the rest.
        force
            Also if the estimate does not fit.
        """
        self._check_fit(force)
        asked = self.level if level is None else level
        if not 0.5 <= asked < 1.0:
            raise ParameterError(f"level lies in [0.5, 1), got {level!r}")
        cost = self._known_cost()
        assert self._at_level is not None
        # Between two samples any two numbers hold together at the level, else each one alone.
        numbers = 3 if self.matched else 1 + (self.temperature is not None)
        found = self._at_level(1.0 - (1.0 - asked) / numbers)
        price, heats = found.scale_interval, found.temperature_interval
        spread = found.log_sd_interval or Interval(0.0, 0.0)
        assert price is not None
        # At an open end nobody, or everybody, can pay.
        factors = np.clip([price.low / self._scale, price.high / self._scale], 1.0 / OPEN, OPEN)
        never = found.non_movers_interval
        return ConfidenceSet(
            self._movers(self.response, cost, self.temperature),
            asked,
            (float(factors[0]), float(factors[1])),
            (never.low, min(never.high, MOST)),
            (spread.low, min(spread.high, MOST_SPREAD)),
            None if heats is None else (heats.low, heats.high),
        )

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
            movers = self._movers(kind, cost.times(scale / self._scale), temperature)
            spread = self.log_sd if kind == self.response else 0.0
            described.append(_people(movers, 0.0, spread))
        return described

    def serm_parameters(
        self, robust: bool = False, force: bool = False, confidence: float = CONFIDENCE
    ) -> dict[str, Any]:
        """Return the ``serm`` group of parameters for the next training run."""
        response = _said(self.population(force))
        if robust:
            members = [_said(member, with_cost=True) for member in self.uncertainty_set(force)]
            response = {"kind": "robust", "members": members}
        held = self.confidence_set(confidence, force)
        possible = {
            "kind": held.movers.name,
            "level": held.level,
            "price": list(held.price),
            "never": list(held.never),
            "log_sd": list(held.log_sd),
        }
        if held.temperature is not None:
            possible["temperature"] = list(held.temperature)
        cost = self._known_cost().describe()
        known = {"people": {"known": "estimated"}}
        return {"cost": cost, "response": response, "confidence_set": possible} | known

    def to_json(self) -> dict[str, Any]:
        """Return everything, JSON-ready (open ends of intervals are None)."""
        from countermove.learning.people_estimation._report import estimate_json

        return estimate_json(self)

    def to_yaml(
        self,
        dataset: str | None = None,
        robust: bool = False,
        force: bool = False,
        confidence: float = CONFIDENCE,
    ) -> str:
        """Return a run configuration that trains on the estimate: ``kedro run --config <file>``.

        Where the cost is not identified, the text says why, and a run with it is refused.
        Promises of recourse of the run hold over the confidence set of level ``confidence``,
        whose complement is part of their failure probability.

        Raises
        ------
        CalibrationError
            If the model does not fit, unless ``force``; `settings` writes a file that says so.
        """
        if self.identified:
            self._check_fit(force)
        return self.settings(dataset, robust, force, confidence)

    def settings(
        self,
        dataset: str | None = None,
        robust: bool = False,
        force: bool = False,
        confidence: float = CONFIDENCE,
    ) -> str:
        """Return the same, or, where that raises, a file that says why and that a run refuses."""
        # A response of these kinds does not exist: a run with such a file stops at once.
        if not self.identified or self.cost is None:
            serm: dict[str, Any] = {"response": {"kind": "not_identified"}}
        elif self.misspecified and not force:
            serm = {"response": {"kind": "does_not_fit"}}
        else:
            serm = self.serm_parameters(robust, force, confidence)
        return run_configuration(self.verdict, dataset, serm)

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

    def _movers(self, kind: str, cost: Cost, temperature: float | None) -> Response:
        return named_response(kind, cost, self.actions, temperature or 0.5)

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


def _people(movers: Response, never: float, log_sd: float) -> Response:
    if never < NOBODY and log_sd == 0.0:
        return movers
    return Population(movers, never=never if never >= NOBODY else 0.0, log_sd=log_sd)


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
        _at_level=chosen.at_level,
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
