"""Deployments whose answer is known: for tests, for power calculations, for trying things out."""

from __future__ import annotations

import numpy as np
import torch

from countermove._types import Floats
from countermove.learning.people_estimation.noise import Noise
from countermove.response.action_plan import ActionPlan, slope_of
from countermove.response.base import Response
from countermove.scores import Score


def simulate_deployment(
    rule: Score, X: Floats, response: Response, noise: Noise | None = None, seed: int = 0
) -> Floats:
    """Return where people are seen after they have answered a rule.

    Parameters
    ----------
    rule
        The published score.
    X
        People before, shape (n, d), standardised units.
    response
        How they answer it.
    noise
        What blurs the picture, as `Noise` names it: the optimisation error scales a
        person's whole move; measurement noise is added to every feature of the record
        after, so that it has the stated deviation along the rule; strays draw a move
        of the size of the gaps' spread along the rule.
    seed
        Of the noise.
    """
    from countermove.randomness import generator

    noise = Noise() if noise is None else noise
    rng = generator(seed, "simulated deployment")
    n, d = X.shape
    action = response.respond(rule, X).x_new - X
    errors = noise.optimisation_error * rng.standard_normal((n, 1))
    action = action * (1.0 + errors)
    action[rng.random(n) < noise.non_movers] = 0.0
    plan = ActionPlan(response.actions, d)
    weight = slope_of(rule).detach().numpy()
    along = plan.usable(weight) / np.linalg.norm(plan.usable(weight))
    with torch.no_grad():
        gaps = rule(torch.from_numpy(X)).numpy() / np.linalg.norm(plan.usable(weight))
    stray = np.flatnonzero(rng.random(n) < noise.strays)
    action[stray] = rng.standard_normal((len(stray), 1)) * gaps.std() * along
    # The record blurs movable features alike; along the rule that is the stated deviation.
    moving = weight * plan.ones
    blur = noise.measurement * np.linalg.norm(plan.usable(weight)) / np.linalg.norm(moving)
    record: Floats = X + action + blur * rng.standard_normal((n, d))
    return record
