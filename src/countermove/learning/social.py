"""What a rule does to people, by hard measures: decisions after response and what moves cost.

They do not change when the score is rescaled, so a rule cannot look better
without being better. People whom no allowed move brings to approval have no
price: they are counted separately and never averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch

from countermove._types import Floats, Mask
from countermove.response import Population, Response
from countermove.response.response_set import members_of, rational, rational_people
from countermove.scores import Score


@dataclass(frozen=True)
class SocialMeasures:
    """Utility, burden and recourse of some people; of a population their expectations.

    Attributes
    ----------
    utility
        Mean of decision (±1) minus the cost of the move, once people have moved; None
        without people.
    burden
        Mean least cost of approval over people whose label is favourable and who can reach
        it, in units of the cost; None if nobody can.
    burden_unscaled
        The same as a squared distance, whatever the cost: the paper's form.
    recourse
        Share of the refused whom their own move brings to approval; None if nobody is refused.
    recourse_all
        Share of all people who are not both refused where they stand and refused after their
        move: the paper's form, in which approving somebody outright counts too.
    people, deserving, refused
        How many there are, how many with a favourable label, how many refused where they stand.
    cut_off, deserving_cut_off
        The refused whom no allowed move brings to approval at any price, and how many of them
        have a favourable label; None where that is not known.
    """

    utility: float | None
    burden: float | None
    burden_unscaled: float | None
    recourse: float | None
    recourse_all: float | None
    people: int
    deserving: int
    refused: int
    cut_off: int | None
    deserving_cut_off: int | None

    def to_json(self) -> dict[str, float | int | None]:
        """Return the measures by name."""
        return asdict(self)


@dataclass(frozen=True)
class Outcomes:
    """What a rule means for each person; every array has shape (n,)."""

    deserving: Mask
    refused: Mask
    # Of the nearest approval: zero where approved already, infinite where there is none, NaN where
    # it is unknown (the score is not affine in what moves); so is the price.
    squared_distance: Floats
    # Least cost of approval, chance of approval and cost of the move, expected over the types of a
    # population: one row per member, (m, n).
    price: Floats
    approved: Floats
    paid: Floats

    @property
    def known(self) -> bool:
        """Whether the least cost of approval is known for everybody."""
        return not bool(np.isnan(self.squared_distance).any())

    def summary(self, who: Mask | None = None) -> SocialMeasures:
        """Return the measures of the people ``who``; of several members the worst counts."""
        chosen = np.ones(len(self.refused), dtype=bool) if who is None else who
        refused, deserving = chosen & self.refused, chosen & self.deserving
        reachable, known = np.isfinite(self.squared_distance), self.known
        payoff = 2.0 * self.approved - 1.0 - self.paid
        return SocialMeasures(
            utility=_worst(payoff[:, chosen]),
            burden=_worst(self.price[:, deserving & reachable], highest=True),
            burden_unscaled=_worst(self.squared_distance[None, deserving & reachable]),
            recourse=_worst(self.approved[:, refused]),
            recourse_all=_worst(np.where(self.refused, self.approved, 1.0)[:, chosen]),
            people=int(chosen.sum()),
            deserving=int(deserving.sum()),
            refused=int(refused.sum()),
            cut_off=int((chosen & ~reachable).sum()) if known else None,
            deserving_cut_off=int((deserving & ~reachable).sum()) if known else None,
        )


def outcomes(score: Score, X: Floats, y: Floats, response: Response) -> Outcomes:
    """Let people respond to a rule; record what it decides and what it costs them."""
    members = members_of(response)
    with torch.no_grad():
        refused = (score(torch.from_numpy(X)) < 0.0).numpy()
    return Outcomes(
        deserving=y > 0,
        refused=refused,
        squared_distance=_least_cost(response, score, X, unscaled=True),
        price=np.stack([_least_cost(member, score, X) for member in members]),
        approved=np.stack([member.chance_after(score, X) for member in members]),
        paid=np.stack([member.expected_cost(score, X) for member in members]),
    )


def _least_cost(response: Response, score: Score, X: Floats, unscaled: bool = False) -> Floats:
    """Return what approval costs rational people at least; NaN where no closed form knows."""
    if isinstance(response, Population) and not unscaled:
        costs = [_least_cost(kind, score, X) for kind in response.kinds]
        return response.mean_factor * np.average(costs, axis=0, weights=response.shares)
    people = rational_people(response, score, X)
    if people is None:
        return np.full(len(X), np.nan)
    return rational(people.response, unscaled).crossing_cost(people.score, people.rows)


def social_measures(score: Score, X: Floats, y: Floats, response: Response) -> SocialMeasures:
    """Return utility, burden and recourse of a rule under a response."""
    return outcomes(score, X, y, response).summary()


def social_report(
    scores: Mapping[str, Score],
    X: Floats,
    y: Floats,
    groups: pd.DataFrame,
    response: Response,
) -> dict[str, Any]:
    """Return the measures of every rule, for all and for each value of each sensitive column."""
    found = {name: outcomes(score, X, y, response) for name, score in scores.items()}
    by_group = {
        str(column): {
            str(value): {
                name: outcome.summary(groups[column].astype(str).to_numpy() == value).to_json()
                for name, outcome in found.items()
            }
            for value in sorted(groups[column].astype(str).unique())
        }
        for column in groups
    }
    by_model = {name: outcome.summary().to_json() for name, outcome in found.items()}
    return {"by_model": by_model, "by_group": by_group}


def _worst(values: Floats, highest: bool = False) -> float | None:
    """Return the lowest (or highest) mean over members, shape (m, people)."""
    if not values.size:
        return None
    means = values.mean(axis=1)
    return float(means.max() if highest else means.min())
