r"""Retraining round after round until the model no longer moves.

.. math:: \theta_{t+1} = A(D(\theta_t)), \qquad \theta^* = A(D(\theta^*)) \text{ is stable}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from countermove._types import Floats
from countermove.dynamics.learners import Learner
from countermove.dynamics.retraining.populations import PerformativePopulation
from countermove.dynamics.retraining.stability import MeasuredRate, PromisedRate, measured, promise
from countermove.dynamics.retraining.updates import DeployedModel, Update, named_update
from countermove.errors import DivergedError, NotConvergedError, ParameterError, SolverError

if TYPE_CHECKING:
    import pandas as pd


Status = Literal["stable", "moving", "diverged", "failed"]
OnDivergence = Literal["raise", "report"]


@dataclass(frozen=True, eq=False)
class Retraining:
    r"""A trajectory of deployed models.

    Parameters
    ----------
    method
        Name of the update.
    thetas
        Deployed models, the first one first, shape (T + 1, p).
    gaps
        :math:`|\theta_{t+1} - \theta_t|_2`, shape (T,).
    risks
        Risk of every model on the people who responded to it, shape (T + 1,); NaN where a model was
        not deployed any more.
    status
        ``stable``: the last gap is within the tolerance. ``moving``: the rounds were used up.
        ``diverged``: models ran away. ``failed``: a fit failed; ``reason`` says how.
    measured, promise
        The rate at which gaps fell in the end, and what the theory promises.
    refit_gap
        :math:`|A(D(\theta)) - \theta|` of the last model: how far a fit would still move it, which
        is what stability is about. Updates that seek the lowest risk after response rest where it
        is not 0. None where it was not asked for.
    reason
        Why it stopped, where it did not become stable.
    """

    method: str
    thetas: Floats
    gaps: Floats
    risks: Floats
    status: Status
    measured: MeasuredRate
    promise: PromisedRate | None = None
    refit_gap: float | None = None
    reason: str = ""

    @property
    def theta(self) -> Floats:
        """The last model."""
        last: Floats = self.thetas[-1]
        return last

    @property
    def stable(self) -> bool:
        """Whether the model no longer moved."""
        return self.status == "stable"

    @property
    def ratios(self) -> Floats:
        """Each gap over the one before, shape (T - 1,); NaN after a gap of 0."""
        before = np.where(self.gaps[:-1] > 0.0, self.gaps[:-1], np.nan)
        found: Floats = self.gaps[1:] / before
        return found

    @property
    def words(self) -> str:
        """What happened, in a few sentences."""
        rounds = len(self.gaps)
        last = f"{self.gaps[-1]:.3g}" if rounds else "none"
        summary = {
            "stable": f"stable after {rounds} rounds (last gap {last})",
            "moving": f"not stable after {rounds} rounds (last gap {last})",
            "diverged": f"diverged after {rounds} rounds (last gap {last}): {self.reason}",
            "failed": f"a fit failed after {rounds} rounds: {self.reason}",
        }[self.status]
        if self.measured.rate is not None:
            summary += f"; gaps fell by the factor {self.measured.rate:.3g} a round in the end"
        return summary if self.promise is None else f"{summary}. {self.promise.words}"

    def table(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return one row per deployed model: round, gap to the next, risk, parameters.

        Parameters
        ----------
        names
            Of the parameters; by default ``theta_0``, ``theta_1`` …
        """
        import pandas as pd

        p = self.thetas.shape[1]
        listed = [f"theta_{j}" for j in range(p)] if names is None else list(names)
        if len(listed) != p:
            raise ParameterError(f"{len(listed)} names for {p} parameters")
        gaps = np.append(self.gaps, np.nan)
        found = {"round": np.arange(len(self.thetas)), "gap": gaps, "risk": self.risks}
        return pd.DataFrame(found | dict(zip(listed, self.thetas.T, strict=True)))

    def save(self, path: Path, names: Sequence[str] | None = None) -> None:
        """Write the trajectory as CSV, whole or not at all."""
        from countermove.data.storage import replace_file

        replace_file(Path(path), self.table(names).to_csv(index=False).encode())


def retrain_until_stable(
    learner: Learner,
    population: PerformativePopulation,
    start: Floats | None = None,
    *,
    method: Update | str = "risk_minimisation",
    rounds: int = 50,
    tolerance: float = 1e-9,
    runaway: float = 1e6,
    on_divergence: OnDivergence = "raise",
    theory: bool = True,
) -> Retraining:
    r"""Deploy, let people respond, retrain; until the model no longer moves.

    >>> import numpy as np
    >>> from countermove.dynamics import Crowd, LogisticLearner, RespondingPopulation
    >>> from countermove.dynamics import retrain_until_stable
    >>> from countermove.people import QuadraticCost
    >>> from countermove.response import GainResponse
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> people = RespondingPopulation(Crowd(X, X[:, 0] > 0.0), GainResponse(QuadraticCost(2.0)))
    >>> retrain_until_stable(LogisticLearner(penalty=0.1), people).status
    'stable'

    Parameters
    ----------
    learner
        The platform: `LogisticLearner`, `RidgeLearner`, our trainer (`TrainedLearner`) …
    population
        The people: `RespondingPopulation`, `LevelKPopulation` …
    start
        The first model deployed, shape (p,); None: fitted to the people as they are while no
        model is deployed.
    method
        The update, or its name: ``risk_minimisation``, ``gradient_descent``, ``proximal``
        (RegRRM), ``performative_descent``, ``derivative_free``.
    rounds
        Most models trained after the first.
    tolerance
        A gap :math:`|\theta_{t+1} - \theta_t|` at most this large counts as stable, in units of the
        model; 0 goes on until nothing changes at all.
    runaway
        Models further from the first one than this multiple of :math:`1 + |\theta_0|` have
        diverged.
    on_divergence
        ``"raise"`` a `DivergedError` whose ``trajectory`` is the result so far, or ``"report"``
        it by the status. Rounds that merely run out are always reported.
    theory
        Whether to estimate the theory's constants (a few dozen responses of the population).

    Returns
    -------
    Retraining
    """
    _check(rounds, tolerance, runaway, on_divergence)
    update = named_update(method) if isinstance(method, str) else method
    first = learner.fit(population.base) if start is None else np.array(start, dtype=np.float64)
    run = _retrain(learner, population, first, update, rounds, tolerance, runaway)
    thetas = np.array(run.thetas)
    settled = run.status in ("stable", "moving")
    result = Retraining(
        method=update.name,
        thetas=thetas,
        gaps=np.linalg.norm(np.diff(thetas, axis=0), axis=1),
        risks=np.array(run.risks),
        status=run.status,
        measured=measured(thetas),
        promise=promise(learner, population, thetas) if theory and settled else None,
        refit_gap=_refit_gap(learner, population, thetas, update) if theory and settled else None,
        reason=run.reason,
    )
    if not settled and on_divergence == "raise":
        raise DivergedError(
            f"retraining {result.words}; the models up to there are in `trajectory` (or pass "
            "on_divergence='report'). Weaker responses, a larger penalty, or method='proximal' "
            "may settle it",
            trajectory=result,
        )
    return result


@dataclass
class _Trajectory:
    """Models and risks so far, and how it ended."""

    thetas: list[Floats]
    risks: list[float]
    status: Status = "moving"
    reason: str = ""


def _retrain(
    learner: Learner,
    population: PerformativePopulation,
    start: Floats,
    update: Update,
    rounds: int,
    tolerance: float,
    runaway: float,
) -> _Trajectory:
    """Retrain until stable, diverged, failed or out of rounds; nothing seen is lost."""
    run = _Trajectory([start], [])
    limit = runaway * (1.0 + float(np.linalg.norm(start)))
    for number in range(rounds + 1):
        theta = run.thetas[-1]
        try:
            crowd = population.answer(theta, learner)
            run.risks.append(learner.risk(theta, crowd))
            if run.status == "stable" or number == rounds:
                return run
            following = update.next(DeployedModel(learner, population, theta, crowd, number))
        except (NotConvergedError, SolverError) as error:
            run.status, run.reason = "failed", str(error)
            break
        gap = float(np.linalg.norm(following - theta))
        if not np.isfinite(gap) or float(np.linalg.norm(following - start)) > limit:
            run.status = "diverged"
            run.reason = f"the next model is further than {limit:.3g} from the first"
            if np.isfinite(gap):
                run.thetas.append(following)
            break
        run.thetas.append(following)
        if gap <= tolerance:
            run.status = "stable"
    run.risks += [float("nan")] * (len(run.thetas) - len(run.risks))
    return run


def _refit_gap(
    learner: Learner, population: PerformativePopulation, thetas: Floats, update: Update
) -> float | None:
    """Return how far a fit would move the last model; of risk minimisation the last gap says it."""
    if update.name == "risk_minimisation" and len(thetas) > 1:
        return float(np.linalg.norm(thetas[-1] - thetas[-2]))
    theta = thetas[-1]
    try:
        fitted = learner.fit(population.answer(theta, learner), start=theta)
    except (NotConvergedError, SolverError):
        # The learner has no model of these people, so nothing is known about the distance.
        return None
    return float(np.linalg.norm(fitted - theta))


def _check(rounds: int, tolerance: float, runaway: float, on_divergence: str) -> None:
    if rounds < 1 or not tolerance >= 0.0 or not runaway > 0.0:
        raise ParameterError(
            "retraining needs rounds >= 1, tolerance >= 0 and runaway > 0; got "
            f"{rounds}, {tolerance} and {runaway}"
        )
    if on_divergence not in ("raise", "report"):
        raise ParameterError(f"on_divergence is 'raise' or 'report', got {on_divergence!r}")
