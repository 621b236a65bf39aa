"""Strategic training: one object per axis (score, cost, actions, response, regulariser)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from countermove.errors import ParameterError
from countermove.params.axes import (
    BestParameters,
    ConfidenceSetParameters,
    CostParameters,
    LinearScoreParameters,
    NoRegulariserParameters,
    QuadraticCostParameters,
    RegulariserParameters,
    ResponseParameters,
    ScoreParameters,
)
from countermove.params.base import Count, NotNegative, Parameters, Positive, Several

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser
    from countermove.learning.least_regret import Payoff, PlausiblePeople
    from countermove.learning.trees import TreeTraining
    from countermove.people import ActionSet
    from countermove.response import Response
    from countermove.scores import Score


class ActionsParameters(Parameters):
    """Which moves are allowed."""

    kind: Literal["schema", "columns", "free"] = "schema"
    responses: Literal["auto", "obey", "relax"] = "auto"

    def build(self, schema: Schema, standardiser: Standardiser) -> ActionSet:
        """Return the action set in standardised units."""
        from countermove.people import ActionSet

        if self.kind == "free":
            return ActionSet()
        allowed = ActionSet.from_schema(schema, standardiser, possible=self.kind == "schema")
        return allowed.obeyed_in_responses(self.responses != "relax")

    def bind(self, people: Response) -> Response:
        """Return people whose responses obey the set as far as they can."""
        from countermove.response.response_set import obeying

        return obeying(people, strictly=self.responses == "obey")


class TrainingParameters(Parameters):
    """How to optimise."""

    describes: ClassVar = "countermove:StrategicClassifier"
    loss: Literal["hinge", "logistic"] = "logistic"
    optimiser: Literal["auto", "newton", "adam", "lbfgs"] = "auto"
    learning_rate: Positive = 0.05
    batch_size: Count = 64
    max_epochs: Count = 50
    patience: Count = 7
    selection: Literal["guarded", "least_regret", "none"] = "guarded"
    allow_no_recourse: bool = False
    refits: Annotated[int, Field(ge=0)] = 0


class AccuracyParameters(Parameters):
    """Every wrong decision is worth as much as any other."""

    kind: Literal["accuracy"] = "accuracy"

    def build(self, *args: Any, **given: Any) -> Payoff:
        """Return what decisions are worth."""
        from countermove.learning.least_regret import Payoff

        return Payoff()


class PayoffParameters(Parameters):
    """What decisions are worth; refusing somebody unfavourable is worth 0."""

    describes: ClassVar = "countermove.learning.least_regret:Payoff"
    kind: Literal["payoff"]
    favourable: float = 1.0
    unfavourable: float = -1.0
    refused: float = 0.0


class PeopleParameters(Parameters):
    """What is known of how people respond, and what not knowing it may cost."""

    known: Literal["unknown", "assumed", "estimated"] = "unknown"
    assumed_by: str | None = None
    prices: Several[Positive] = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0)
    tolerated_regret: NotNegative = 0.01

    @model_validator(mode="after")
    def _somebody_signs(self) -> Self:
        if (self.known == "assumed") != bool(self.assumed_by):
            raise ValueError(
                "people are assumed if and only if somebody signs for their response: expected "
                "known: assumed together with assumed_by: NAME"
            )
        return self

    def plausible(self, stated: Response) -> PlausiblePeople:
        """Return who people may be, given the response that is stated."""
        from countermove.learning.least_regret import PlausiblePeople

        if self.known == "unknown" and stated.confidence is not None:
            raise ParameterError(
                "serm.people.known is unknown, but serm.confidence_set says who people are; "
                "expected serm.people.known: estimated, as kedro run --pipeline=estimate_people "
                "writes it"
            )
        if self.known == "assumed":
            return PlausiblePeople.assumed(stated, str(self.assumed_by))
        if self.known == "estimated":
            return PlausiblePeople.estimated(stated)
        return PlausiblePeople.unknown(stated, self.prices)


class SermParameters(Parameters):
    """The five axes of strategic training, and how to train."""

    score: ScoreParameters = LinearScoreParameters()
    cost: CostParameters = QuadraticCostParameters()
    actions: ActionsParameters = ActionsParameters()
    response: ResponseParameters = BestParameters()
    confidence_set: ConfidenceSetParameters | None = None
    regulariser: RegulariserParameters = NoRegulariserParameters()
    training: TrainingParameters = TrainingParameters()
    people: PeopleParameters = PeopleParameters()
    objective: Annotated[AccuracyParameters | PayoffParameters, Field(discriminator="kind")] = (
        AccuracyParameters()
    )

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
        """Return the response people are assumed to give, with what else they may be."""
        actions = self.actions.build(schema, standardiser)
        cost = actions.priced(self.cost.build())
        people = self.actions.bind(self.response.build(cost, actions))
        if self.confidence_set is not None:
            people.confidence = self.confidence_set.build(cost, actions)
        return people

    def build_score(
        self, schema: Schema, standardiser: Standardiser, seed: int
    ) -> Score | TreeTraining | None:
        """Return the score training starts from, or how trees are boosted; None: linear."""
        series = schema.series
        if self.score.kind == "recurrent" and series is not None and series.steps < 2:
            raise ParameterError(
                f"the series of schema {schema.name!r} keeps the last step alone, so a recurrent "
                "score has no history to read: ask for more in the schema, as in `series: {…, "
                "steps: 4, shorter: repeat_first}` (shorter says what becomes of entities with "
                "fewer steps)"
            )
        return self.score.build(schema, self.actions.build(schema, standardiser), seed)

    def build_training(
        self, schema: Schema, standardiser: Standardiser, seed: int
    ) -> dict[str, Any]:
        """Return how to optimise and the score to start from, as `StrategicClassifier` takes it."""
        settings = self.training.model_dump()
        if self.training.selection == "least_regret":
            from countermove.learning.least_regret import RegretSelection

            settings["selection"] = RegretSelection(self.objective.build(), self.people.prices)
        return settings | {"score": self.build_score(schema, standardiser, seed)}

    @model_validator(mode="after")
    def _score_has_a_response(self) -> Self:
        members = getattr(self.response, "members", [self.response])
        kinds = [kind for member in members for kind in getattr(member, "kinds", [member])]
        closed = [kind.kind for kind in kinds if kind.kind not in ("ascent", "none")]
        if self.score.kind == "mlp" and closed:
            raise ValueError(
                f"a score of kind mlp has no slope, so people of kind {closed[0]} have no closed "
                "form; let them climb it: serm.response: {kind: ascent, temperature: 0.5}"
            )
        others = [kind.kind for kind in kinds if kind.kind not in ("best", "none")]
        if self.score.kind == "trees" and others:
            raise ValueError(
                f"trees are trained for people who respond best, not for those of kind {others[0]}"
                ": serm.response: {kind: best}, or a population of such people"
            )
        return self
