"""Strategic training: one object per axis, and how long to train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from countermove.errors import ParameterError
from countermove.params.base import Parameters
from countermove.params.people import CostParameters, Positive, QuadraticCostParameters
from countermove.params.regularisers import NoRegulariserParameters, RegulariserParameters
from countermove.params.scores import LinearScoreParameters, ScoreParameters

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser
    from countermove.people import ActionSet, Cost
    from countermove.response import Response
    from countermove.scores import Score


class ActionsParameters(Parameters):
    """Which moves are allowed: what the ``schema`` says, or everything (``free``)."""

    kind: Literal["schema", "free"] = "schema"

    def build(self, schema: Schema, standardiser: Standardiser) -> ActionSet:
        """Return the action set in standardised units."""
        from countermove.people import ActionSet

        if self.kind == "free":
            return ActionSet()
        return ActionSet.from_schema(schema, standardiser)


class BestParameters(Parameters):
    """Fully rational people and the hard decision; ``cost``, if given, is these people's own."""

    kind: Literal["best"] = "best"
    cost: CostParameters | None = None

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import BestResponse

        return BestResponse(cost if self.cost is None else self.cost.build(), actions)


class SmoothParameters(Parameters):
    """People who climb a blurred step; ``temperature`` in distance units, ``cost`` as for best."""

    kind: Literal["smooth"]
    temperature: Positive = 0.5
    start: Literal["global", "stay"] = "global"
    cost: CostParameters | None = None

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import ScalarResponse

        own = cost if self.cost is None else self.cost.build()
        return ScalarResponse(own, actions, temperature=self.temperature, start=self.start)


class PublishedParameters(Parameters):
    """The SERM paper's simulated people; for comparison only."""

    kind: Literal["published"]
    temperature: Positive = 0.5

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import named_response

        return named_response("published", cost, actions, self.temperature)


class NobodyMovesParameters(Parameters):
    """Nobody moves."""

    kind: Literal["none"]

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import NoResponse

        return NoResponse(cost, actions)


class AscentParameters(Parameters):
    """People who climb the blurred step of a score without a slope: a local maximum."""

    kind: Literal["ascent"]
    temperature: Positive = 0.5
    random_starts: Annotated[int, Field(ge=0)] = 3

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import AscentResponse

        starts = self.random_starts
        return AscentResponse(cost, actions, self.temperature, random_starts=starts)


SingleResponseParameters = Annotated[
    BestParameters
    | SmoothParameters
    | PublishedParameters
    | NobodyMovesParameters
    | AscentParameters,
    Field(discriminator="kind"),
]


class RobustParameters(Parameters):
    """Several response models at once; the worst of them is minimised.

    With ``weights``, the shares of people who answer like each member, their mean is.
    """

    kind: Literal["robust"]
    members: Annotated[list[SingleResponseParameters], Field(min_length=2)]
    weights: list[Annotated[float, Field(ge=0)]] | None = None

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.weights is None:
            return self
        if len(self.weights) != len(self.members) or abs(sum(self.weights) - 1.0) > 1e-6:
            raise ValueError(
                f"{len(self.members)} members need as many weights that sum to 1, "
                f"got {self.weights}"
            )
        return self

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        from countermove.response import RobustResponse

        built = [member.build(cost, actions) for member in self.members]
        return RobustResponse(built, self.weights)


ResponseParameters = Annotated[
    BestParameters
    | SmoothParameters
    | PublishedParameters
    | NobodyMovesParameters
    | AscentParameters
    | RobustParameters,
    Field(discriminator="kind"),
]


class TrainingParameters(Parameters):
    """How to optimise; the defaults serve every embedded table.

    The loss is logistic because the chain reads the score as log-odds: it reports
    probabilities and calibrates a threshold on them.
    """

    loss: Literal["hinge", "logistic"] = "logistic"
    optimiser: Literal["adam", "lbfgs"] = "adam"
    learning_rate: Positive = 0.05
    batch_size: Annotated[int, Field(gt=0)] = 64
    max_epochs: Annotated[int, Field(gt=0)] = 50
    patience: Annotated[int, Field(gt=0)] = 7


class SermParameters(Parameters):
    """The five axes: score × cost × allowed actions × response × regulariser; and training."""

    score: ScoreParameters = LinearScoreParameters()
    cost: CostParameters = QuadraticCostParameters()
    actions: ActionsParameters = ActionsParameters()
    response: ResponseParameters = BestParameters()
    regulariser: RegulariserParameters = NoRegulariserParameters()
    training: TrainingParameters = TrainingParameters()

    @field_validator("score", mode="before")
    @classmethod
    def _score_of_features(cls, score: Any) -> Any:
        if isinstance(score, Mapping) and score.get("kind") == "representation":
            raise ValueError(
                "people who move in a representation end at places that are nobody's features, so "
                "a run could give no advice, no recourse and no transfer bound; train it in Python "
                "(RepresentationScore with RepresentationResponse in StrategicClassifier), or let "
                "people climb the network in their own features: serm.score: "
                "{kind: mlp}, serm.response: {kind: ascent}"
            )
        return score

    def build(self, schema: Schema, standardiser: Standardiser) -> Response:
        """Return the response people are assumed to give."""
        return self.response.build(self.cost.build(), self.actions.build(schema, standardiser))

    def build_score(self, schema: Schema, standardiser: Standardiser, seed: int) -> Score | None:
        """Return the score training starts from; None: linear."""
        series = schema.series
        if self.score.kind == "recurrent" and series is not None and series.steps < 2:
            raise ParameterError(
                f"the series of schema {schema.name!r} keeps the last step alone, so a recurrent "
                "score has no history to read: ask for more in the schema, as in `series: {…, "
                "steps: 4, shorter: repeat_first}` (shorter says what becomes of entities with "
                "fewer steps)"
            )
        return self.score.build(schema, self.actions.build(schema, standardiser), seed)

    @model_validator(mode="after")
    def _score_can_be_answered(self) -> Self:
        members = getattr(self.response, "members", [self.response])
        closed = [member.kind for member in members if member.kind not in ("ascent", "none")]
        if self.score.kind == "mlp" and closed:
            raise ValueError(
                f"a score of kind mlp has no slope, so people of kind {closed[0]} have no closed "
                "form; let them climb it: serm.response: {kind: ascent, temperature: 0.5}"
            )
        return self
