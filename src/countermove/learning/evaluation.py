"""Accuracy, always under a named response.

An accuracy without the name of the response it was measured under means
nothing, so every figure names it and the sensitivity table shows the others.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from countermove._types import Floats
from countermove.errors import NotEnoughRowsError, ParameterError
from countermove.people import ActionSet, Cost
from countermove.response.base import NoResponse, Response
from countermove.response.response_set import RobustResponse, kinds_of, members_of, obeying
from countermove.scores import Score
from countermove.training._labels import checked_weights

if TYPE_CHECKING:
    import pandas as pd


TEMPERATURES = (0.2, 0.5, 1.0)
"""Temperatures of the smooth responses in every report."""
NOT_AFFINE = (
    "the score is not affine in what people can change, so the best response has no closed form"
)
STEPS = "trees rise in steps and a black box shows no slope, which a smooth response follows"
"""Why a report leaves responses out."""


@dataclass(frozen=True)
class AccuracyUnderResponse:
    """Share of people decided correctly once they have responded to the rule.

    Attributes
    ----------
    response
        Name of the response.
    accuracy
        Share of rows whose decision after the move equals their label; of a population the
        mean chance of it.
    accepted
        Share of rows with the favourable decision after the move, or its mean chance.
    n
        Number of rows.
    """

    response: str
    accuracy: float
    accepted: float
    n: int


@dataclass(frozen=True)
class SensitivityTable:
    """Accuracies of named models under named responses.

    Attributes
    ----------
    entries
        ``entries[response][model]``.
    """

    entries: Mapping[str, Mapping[str, AccuracyUnderResponse]]

    def accuracies(self) -> dict[str, dict[str, float]]:
        """Return ``{response: {model: accuracy}}``, ready for ``metrics.json``."""
        return {
            response: {model: entry.accuracy for model, entry in models.items()}
            for response, models in self.entries.items()
        }

    def worst(self, model: str) -> AccuracyUnderResponse:
        """Return the entry under which a model does worst."""
        column = [models[model] for models in self.entries.values()]
        return min(column, key=lambda entry: entry.accuracy)

    def to_frame(self) -> pd.DataFrame:
        """Return responses as rows, models as columns."""
        import pandas as pd

        return pd.DataFrame.from_dict(self.accuracies(), orient="index").rename_axis("response")


def accuracy_after(
    score: Score, X: Floats, y: Floats, response: Response, sample_weight: Floats | None = None
) -> AccuracyUnderResponse:
    """Measure a score under one response.

    Parameters
    ----------
    score
        The published rule.
    X
        People before they move, shape (n, d), standardised units.
    y
        Labels in {-1, +1}, +1 favourable, shape (n,).
    response
        How people respond.
    sample_weight
        How much each person counts, shape (n,); None: all alike.
    """
    labels = np.asarray(y)
    if labels.shape != (len(X),):
        raise ParameterError(f"{len(X)} people need as many labels, got shape {labels.shape}")
    if not len(labels):
        raise NotEnoughRowsError("an accuracy needs at least one row")
    chance = response.chance_after(score, X)
    correct = np.where(labels > 0, chance, 1.0 - chance)
    return AccuracyUnderResponse(
        response=response.name,
        accuracy=float(np.average(correct, weights=sample_weight)),
        accepted=float(np.average(chance, weights=sample_weight)),
        n=len(labels),
    )


def judged_accuracy(
    score: Score,
    X: Floats,
    y: Floats,
    members: Sequence[Response],
    weights: Sequence[float] | None = None,
    sample_weight: Any = None,
) -> float:
    """Return the accuracy of the worst member, or the mean by the members' weights."""
    counted = checked_weights(sample_weight, len(y))
    found = [accuracy_after(score, X, y, one, counted).accuracy for one in members]
    return min(found) if weights is None else float(np.dot(weights, found))


def sensitivity(
    scores: Mapping[str, Score], X: Floats, y: Floats, responses: Mapping[str, Response]
) -> SensitivityTable:
    """Measure every score under every response."""
    return SensitivityTable(
        {
            name: {model: accuracy_after(score, X, y, response) for model, score in scores.items()}
            for name, response in responses.items()
        }
    )


def worst_accuracy(score: Score, X: Floats, y: Floats, responses: Sequence[Response]) -> float:
    """Return the lowest accuracy over the responses."""
    return min(accuracy_after(score, X, y, response).accuracy for response in responses)


def stated_chance(score: Score, X: Floats, y: Floats, response: Response) -> Floats:
    """Return everybody's chance of approval after a response, shape (n,).

    Of a robust set: the mean over its members where shares are known, else that of the member
    under which the rule is right least often.
    """
    found = [member.chance_after(score, X) for member in members_of(response)]
    if isinstance(response, RobustResponse) and response.weights is not None:
        return np.average(found, axis=0, weights=response.weights)
    return min(found, key=lambda chance: float(np.where(y > 0, chance, 1.0 - chance).mean()))


def stated_accuracy(score: Score, X: Floats, y: Floats, response: Response) -> float:
    """Return the accuracy under a response, its members as in `stated_chance`."""
    chance = stated_chance(score, X, y, response)
    return float(np.where(y > 0, chance, 1.0 - chance).mean())


def usual_responses(
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    temperatures: Sequence[float] = TEMPERATURES,
    **extra: Response,
) -> dict[str, Response]:
    """Return the populations every report shows: nobody moves, best, smooth, published."""
    from countermove.response import named_response

    def made(name: str, temperature: float) -> Any:
        return named_response(name, cost, actions, temperature)

    responses: dict[str, Response] = {"none": NoResponse(), "best": made("best", 0.5)}
    responses |= {f"smooth_{value:g}": made("smooth", value) for value in temperatures}
    responses["published"] = made("published", 0.2)
    return responses | extra


def usual_responses_to(score: Score, response: Response) -> dict[str, Response]:
    """Return the populations of a report on a score, with a response's cost and actions."""
    from countermove.response import AscentResponse, RepresentationResponse

    usual = usual_responses(response.cost, response.actions)
    if isinstance(kinds_of(response)[0], RepresentationResponse):
        # People who move in a representation do so under every name.
        return {name: RepresentationResponse(inner) for name, inner in usual.items()}
    if score.slope() is not None:
        return usual
    if not score.differentiable:
        return {name: each for name, each in usual.items() if each.answers(score)}
    # Other scores without a slope can only be climbed, column by column.
    boxed = obeying(AscentResponse(response.cost, response.actions)).actions
    climbing = {
        f"ascent_{value:g}": AscentResponse(response.cost, boxed, value) for value in TEMPERATURES
    }
    return {"none": NoResponse(), **climbing}


def not_evaluated(evaluated: Collection[str]) -> dict[str, str]:
    """Return the usual populations missing among those evaluated, each with the reason."""
    if "best" in evaluated:
        return dict.fromkeys(sorted(set(usual_responses()) - set(evaluated)), STEPS)
    stands_in = f"{NOT_AFFINE}; responses by ascent are shown instead, each at a local maximum"
    missing = dict.fromkeys(set(usual_responses()) - set(evaluated), stands_in)
    cheapest = f"{NOT_AFFINE}: the least cost of approval is that of rational people"
    return dict(sorted(missing.items())) | {"burden": cheapest}
