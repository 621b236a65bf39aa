"""Under which responses a rule is judged, and at what level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters
from countermove.params.recourse import Probability
from countermove.params.serm import (
    AscentParameters,
    BestParameters,
    NobodyMovesParameters,
    RobustParameters,
    SermParameters,
    SingleResponseParameters,
    SmoothParameters,
)

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser
    from countermove.response import Response
    from countermove.transfer import TransferTerms


CLIMBERS: tuple[SingleResponseParameters, ...] = (
    *(AscentParameters(kind="ascent", temperature=value) for value in (0.2, 0.5, 1.0)),
    NobodyMovesParameters(kind="none"),
)
"""The plausible answers to a score without a slope, which people can only climb."""


class TransferParameters(Parameters):
    """How the effect of deployment on the error is foretold.

    ``responses`` are the plausible ones over which the worst case is taken, beside the one
    the rule was trained for (of a score without a slope, climbers instead); ``labels`` says
    what moving may do to a label (``kept``, ``follow`` or both); ``bins``, ``thresholds`` and
    ``tolerated_outside`` are those of `countermove.transfer.TransferTerms`.
    """

    responses: Annotated[tuple[SingleResponseParameters, ...], Field(min_length=1)] = (
        BestParameters(),
        SmoothParameters(kind="smooth", temperature=0.2),
        SmoothParameters(kind="smooth", temperature=0.5),
        SmoothParameters(kind="smooth", temperature=1.0),
        NobodyMovesParameters(kind="none"),
    )
    labels: Annotated[tuple[Literal["kept", "follow"], ...], Field(min_length=1)] = (
        "kept",
        "follow",
    )
    bins: Annotated[int, Field(ge=2)] = 6
    thresholds: Annotated[int, Field(ge=1)] = 20
    tolerated_outside: Annotated[float, Field(ge=0, le=1)] = 0.01


class EvaluationParameters(Parameters):
    """Parameters of the evaluation.

    ``failure_probability`` is the chance that a bound computed on the test rows is wrong.
    """

    failure_probability: Probability = 0.05
    transfer: TransferParameters = TransferParameters()

    def build(self) -> TransferTerms:
        """Return the terms of the transfer report."""
        from countermove.transfer import TransferTerms

        said = self.transfer
        return TransferTerms(
            failure_probability=self.failure_probability,
            labels=tuple(dict.fromkeys(said.labels)),
            bins=said.bins,
            thresholds=said.thresholds,
            tolerated_outside=said.tolerated_outside,
        )

    def responses(
        self, serm: SermParameters, schema: Schema, standardiser: Standardiser
    ) -> tuple[dict[str, Response], list[str]]:
        """Return the plausible responses by name, and the names of those trained for."""
        cost, actions = serm.cost.build(), serm.actions.build(schema, standardiser)
        given = serm.response
        trained: Sequence[SingleResponseParameters]
        trained = given.members if isinstance(given, RobustParameters) else [given]
        built: dict[str, Response] = {}
        plausible = CLIMBERS if serm.score.kind == "mlp" else self.transfer.responses
        for said in (*trained, *plausible):
            built.setdefault(_name(said), said.build(cost, actions))
        return built, list(dict.fromkeys(_name(said) for said in trained))


def _name(said: SingleResponseParameters) -> str:
    if isinstance(said, SmoothParameters | AscentParameters):
        return f"{said.kind}_{said.temperature:g}"
    return said.kind
