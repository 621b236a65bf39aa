"""The published score, by ``kind``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from countermove.params.base import Parameters

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.people import ActionSet
    from countermove.scores import Score

Width = Annotated[int, Field(gt=0)]
Widths = Annotated[list[Width], Field(min_length=1)]
Smooth = Literal["tanh", "elu", "softplus"]


class LinearScoreParameters(Parameters):
    """One weight per model column."""

    kind: Literal["linear"] = "linear"

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return None: training starts from the class means."""


class PartlyLinearScoreParameters(Parameters):
    """Linear in what people can change, a network of what they cannot."""

    kind: Literal["partly_linear"]
    hidden: Widths = Field([16])
    activation: Smooth | Literal["relu"] = "tanh"

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score; what can change is what the actions let move."""
        import numpy as np

        from countermove.randomness import torch_generator
        from countermove.scores import PartlyLinearScore

        d = len(schema.feature_names)
        movable = np.flatnonzero(actions.for_response().movable_among(d)).tolist()
        start = torch_generator(seed, "start")
        return PartlyLinearScore(d, movable, self.hidden, start, self.activation)


class RecurrentScoreParameters(Parameters):
    """A recurrent network over the steps of a series; only the last step moves."""

    kind: Literal["recurrent"]
    width: Width = 10

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score of the schema's series."""
        from countermove.randomness import torch_generator
        from countermove.scores import RecurrentScore

        return RecurrentScore.of_schema(schema, self.width, torch_generator(seed, "start"))


class MLPScoreParameters(Parameters):
    """A network of everything; people climb it (``response: {kind: ascent}``)."""

    kind: Literal["mlp"]
    hidden: Widths = Field([16])
    activation: Smooth = "tanh"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score."""
        from countermove.randomness import torch_generator
        from countermove.scores import MLPScore

        start, d = torch_generator(seed, "start"), len(schema.feature_names)
        return MLPScore(d, self.hidden, self.activation, self.dropout, start)


ScoreParameters = Annotated[
    LinearScoreParameters
    | PartlyLinearScoreParameters
    | RecurrentScoreParameters
    | MLPScoreParameters,
    Field(discriminator="kind"),
]
