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
from countermove.params.base import Count, Parameters, Positive, library, part, setting

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser
    from countermove.learning.trees import TreeTraining
    from countermove.people import ActionSet
    from countermove.response import Response
    from countermove.scores import Score


class ActionsParameters(Parameters):
    """Which moves are allowed."""

    kind: Literal["schema", "columns", "free"] = setting(
        "schema",
        "as the schema says; each column by itself, without relations, histories and usual "
        "ranges (columns); or everything (free)",
    )
    responses: Literal["auto", "obey", "relax"] = setting(
        "auto",
        "whether relations, histories and usual ranges bind responses too: where that is fast "
        "(auto), however long it takes (obey), or not (relax); recourse always obeys them",
    )

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
    loss: Literal["hinge", "logistic"] = library("what is minimised; logistic gives probabilities")
    optimiser: Literal["auto", "newton", "adam", "lbfgs"] = library(
        "auto: newton, to the optimum, for linear scores and the logistic loss; else adam"
    )
    learning_rate: Positive = library("size of a step of adam")
    batch_size: Count = library("rows per step of adam")
    max_epochs: Count = library("passes over the training rows, at most")
    patience: Count = library("passes without a better validation accuracy before it stops")
    selection: Literal["guarded", "none"] = library(
        "guarded: published only if better than simple rules in cross-validation; none: always"
    )
    allow_no_recourse: bool = library(
        "whether a simple rule nobody can move under may be published"
    )
    refits: Annotated[int, Field(ge=0)] = library(
        "fits to rows drawn with replacement, for recourse.confidence of a network: 0 or about 20"
    )


class SermParameters(Parameters):
    """The five axes of strategic training, and how to train."""

    score: ScoreParameters = part(LinearScoreParameters, "The score that is published.")
    cost: CostParameters = part(QuadraticCostParameters, "What a move costs people.")
    actions: ActionsParameters = part(ActionsParameters, "Which moves are allowed.")
    response: ResponseParameters = part(BestParameters, "How people respond to the rule.")
    confidence_set: ConfidenceSetParameters | None = setting(
        None, "what else estimated people may be; promises of recourse hold over all of it"
    )
    regulariser: RegulariserParameters = part(
        NoRegulariserParameters, "What training aims at beside accuracy."
    )
    training: TrainingParameters = part(TrainingParameters, "How to optimise.")

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
        return self.training.model_dump() | {"score": self.build_score(schema, standardiser, seed)}

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
