"""What the new table says about the people: an updated cost, and people who would explain it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from countermove.errors import CountermoveError
from countermove.learning.people_estimation import (
    Noise,
    PeopleEstimate,
    estimate_people,
    simulate_deployment,
)
from countermove.learning.people_estimation.observation import LEAST_PAIRS, Key
from countermove.people import ActionSet
from countermove.production.drift._samples import (
    DriftSamples,
    PeopleTable,
    ScoredSample,
    scored_sample,
    shared_ids,
)
from countermove.randomness import seed_of
from countermove.response import Population, Response, named_response
from countermove.response.reduction import ActionPlan, slope_of
from countermove.scores import Score

UNSEEN = 0.01
"""Optimisation error below which movers of two samples stand on the boundary itself."""


@dataclass(frozen=True)
class PeopleUpdate:
    """The estimate, or why there is none.

    ``configured`` is the price of one unit of advance along the rule under our own response,
    None where it has no such number; ``changed`` says in what the estimate contradicts us.
    """

    estimate: PeopleEstimate | None
    configured: float | None
    changed: tuple[str, ...] = ()
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether there are people to predict with: identified, and their model not refused."""
        found = self.estimate
        return found is not None and found.identified and not found.misspecified

    @property
    def priced(self) -> bool:
        """Whether the estimate is of best responders with a price for every feature."""
        found = self.estimate
        return found is not None and found.response == "best" and bool(found.weights)

    def to_json(self) -> dict[str, Any]:
        """Return the update, JSON-ready."""
        found = self.estimate
        facts = None if found is None else found.to_json()
        if facts is not None:
            del facts["picture"]
        return {
            "configured_scale": self.configured,
            "changed": list(self.changed),
            "reason": self.reason,
            "estimate": facts,
        }


def update_people(
    samples: DriftSamples,
    reference: PeopleTable,
    observed: PeopleTable,
    score: Score,
    response: Response,
    level: float,
    cost: str = "auto",
) -> PeopleUpdate:
    """Estimate how people responded, matched by id where enough people are in both tables."""
    if score.slope() is None:
        return PeopleUpdate(None, None, reason="the deployed score is not linear in what moves")
    configured = configured_scale(score, response)
    try:
        tables, key, actions = _tables(samples, reference, observed, response)
        found = estimate_people(
            score, *tables, key=key, actions=actions, cost=cost, level=1.0 - level
        )
    except CountermoveError as error:
        return PeopleUpdate(None, configured, reason=str(error))
    return PeopleUpdate(found, configured, _contradictions(found, configured, response))


def _tables(
    samples: DriftSamples, reference: PeopleTable, observed: PeopleTable, response: Response
) -> tuple[tuple[pd.DataFrame, pd.DataFrame], Key, ActionSet]:
    """Return pairs where there are enough, else the two samples."""
    first, second = shared_ids(reference, observed)
    both = np.hstack([reference.X[first], observed.X[second]])
    whole = np.isfinite(both).all(axis=1)
    first, second = first[whole], second[whole]
    tables, actions = (samples.reference.X, samples.observed.X), samples.response.actions
    key: Key = None
    if len(first) >= LEAST_PAIRS:
        tables, actions = (reference.X[first], observed.X[second]), response.actions.of_rows(first)
        key = (first, first)
    names = list(reference.names or ())
    before, after = (pd.DataFrame(table, columns=names) for table in tables)
    return (before, after), key, actions


def configured_scale(score: Score, response: Response) -> float | None:
    r"""Return what one unit of advance along the rule costs at least under a quadratic cost.

    .. math:: 1 \big/ \tilde w^\top Q^{-1} \tilde w, \qquad \tilde w = w / \|w\|
        \text{ over what can move}

    None for people who never move, and for costs with a kink or a shape of their own.
    """
    d = score.n_features
    shape = None if response.name == "none" else response.cost.canonical(d)
    if shape is None or shape.kink is not None:
        return None
    usable = ActionPlan(response.actions, d).usable(slope_of(score).detach().numpy())
    unit = usable / (float(np.linalg.norm(usable)) or 1.0)
    if shape.matrix is not None:
        solved = np.linalg.solve(shape.matrix.detach().numpy(), unit)
    else:
        assert shape.weights is not None
        solved = unit / shape.weights.detach().numpy()
    easy = float(unit @ solved)
    return None if easy <= 0.0 else 1.0 / easy


def _contradictions(
    found: PeopleEstimate, configured: float | None, response: Response
) -> tuple[str, ...]:
    """Return in what an identified estimate contradicts our own response."""
    if not found.identified or found.scale_interval is None:
        return ()
    ends, texts = found.scale_interval, []
    if configured is None or not ends.contains(configured):
        ours = "no such price" if configured is None else f"{configured:.4g}"
        texts.append(
            f"a unit of advance costs {found.scale:.4g} ({ends.low:.4g} to {ends.high:.4g}), "
            f"ours {ours}"
        )
    if found.response != response.name and response.name in ("best", "smooth", "none"):
        texts.append(f"people respond as {found.response!r}, ours is {response.name!r}")
    if found.non_movers_interval.low > UNSEEN:
        texts.append(f"{found.non_movers:.1%} of those with a reason to move do not")
    return (*texts, *_prices(found, response))


def _prices(found: PeopleEstimate, response: Response) -> tuple[str, ...]:
    """Return the features whose price is not ours."""
    shape = response.cost.canonical(max(len(found.weights), 1))
    if shape is None or shape.weights is None or shape.kink is not None:
        return ()
    ours = shape.weights.detach().numpy().tolist()
    return tuple(
        f"{weight.name} costs {weight.value:.3g} ({weight.low:.3g} to {weight.high:.3g}), "
        f"ours {price:.3g}"
        for weight, price in zip(found.weights, ours, strict=False)
        if weight.identified and not weight.low <= price <= weight.high
    )


def estimated_people(
    update: PeopleUpdate, samples: DriftSamples, score: Score, seed: int
) -> ScoredSample | None:
    """Return where the people as estimated would stand, from the same reference; None without."""
    found = update.estimate
    if not update.usable or found is None or found.cost is None:
        return None
    heat = 0.5 if found.temperature is None else found.temperature
    movers = named_response(found.response, found.cost, samples.response.actions, heat)
    error = found.noise.optimisation_error
    noise = Noise(found.non_movers, error if error > UNSEEN else 0.0)
    draw = seed_of(seed, "people as estimated") % 2**32
    if found.log_sd > 0.0:
        movers = Population(movers, log_sd=found.log_sd).with_seed(draw)
    x_new = simulate_deployment(score, samples.reference.X, movers, noise, draw)
    still = np.abs(x_new - samples.reference.X) < 1e-12
    x_new[still] = samples.reference.X[still]
    return scored_sample(score, x_new, samples.reference.y)
