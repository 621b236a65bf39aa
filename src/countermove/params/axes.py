"""The kinds of cost, score, regulariser and response, as settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from countermove.params.base import (
    Count,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Several,
    library_object,
)

if TYPE_CHECKING:
    from countermove.data.schema import Schema
    from countermove.learning.trees import TreeTraining
    from countermove.people import ActionSet, Cost
    from countermove.response import Response
    from countermove.response.response_set import ConfidenceSet
    from countermove.scores import Score

Widths = Several[Count]
WIDTHS = "neurons of each hidden layer"
STRENGTH = "weight of the regulariser beside the loss"
OWN_COST = "these people's own cost; null: serm.cost"
TEMPERATURE = "how blurred the step is that people see, in units of distance"


class QuadraticCostParameters(Parameters):
    """Scale times the squared length of the move, in standardised units."""

    describes: ClassVar = "countermove.people:QuadraticCost"
    kind: Literal["quadratic"] = "quadratic"
    scale: Positive = 1.0


class WeightedQuadraticCostParameters(Parameters):
    """One price per feature."""

    describes: ClassVar = "countermove.people:WeightedQuadraticCost"
    kind: Literal["weighted_quadratic"]
    weights: list[Positive]


class MahalanobisCostParameters(Parameters):
    """A positive definite matrix of prices."""

    describes: ClassVar = "countermove.people:MahalanobisCost"
    kind: Literal["mahalanobis"]
    matrix: list[list[float]]


class LinearCostParameters(Parameters):
    """max(0, direction · move); needs bounds on what can be moved."""

    describes: ClassVar = "countermove.people:LinearCost"
    kind: Literal["linear"]
    direction: list[float]


class MixtureCostParameters(Parameters):
    """scale · ((1 − gamma) · linear + gamma · quadratic)."""

    describes: ClassVar = "countermove.people:MixtureCost"
    kind: Literal["mixture"]
    direction: list[float]
    gamma: Annotated[float, Field(gt=0, le=1)]
    scale: Positive = 1.0


class OwnCostParameters(Parameters):
    """A cost that your function makes."""

    kind: Literal["own"]
    function: str
    arguments: dict[str, float | list[float] | str | bool] = {}

    def build(self, *args: Any, **given: Any) -> Cost:
        """Return the cost."""
        from countermove.people.own import own_cost

        return own_cost(self.function, self.arguments)


CostParameters = Annotated[
    QuadraticCostParameters
    | WeightedQuadraticCostParameters
    | MahalanobisCostParameters
    | LinearCostParameters
    | MixtureCostParameters
    | OwnCostParameters,
    Field(discriminator="kind"),
]


class LinearScoreParameters(Parameters):
    """One weight per model column."""

    kind: Literal["linear"] = "linear"

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return None: training starts from the class means."""


class PartlyLinearScoreParameters(Parameters):
    """Linear in what people can change, a network of what they cannot."""

    describes: ClassVar = "countermove.scores:PartlyLinearScore"
    kind: Literal["partly_linear"]
    hidden: Widths = (16,)
    activation: Literal["tanh", "elu", "softplus", "relu"] = "tanh"

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score; what can change is what the actions let move."""
        import numpy as np

        from countermove.randomness import torch_generator

        d = len(schema.feature_names)
        movable = np.flatnonzero(actions.for_response().movable_among(d)).tolist()
        start = torch_generator(seed, "start")
        score: Score = super().build(n_features=d, movable=movable, generator=start)
        return score


class RecurrentScoreParameters(Parameters):
    """A recurrent network over the steps of a series; only the last step moves."""

    describes: ClassVar = "countermove.scores:RecurrentScore"
    kind: Literal["recurrent"]
    width: Count = 10

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score of the schema's series."""
        from countermove.randomness import torch_generator

        made = library_object(self.describes).of_schema
        score: Score = made(schema, self.width, torch_generator(seed, "start"))
        return score


class MLPScoreParameters(Parameters):
    """A network of everything; people climb it (response: {kind: ascent})."""

    describes: ClassVar = "countermove.scores:MLPScore"
    kind: Literal["mlp"]
    hidden: Widths = (16,)
    activation: Literal["tanh", "elu", "softplus"] = "tanh"
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> Score | None:
        """Return the score."""
        from countermove.randomness import torch_generator

        start = torch_generator(seed, "start")
        score: Score = super().build(n_features=len(schema.feature_names), generator=start)
        return score


class TreesScoreParameters(Parameters):
    """Boosted trees of an index of what people can change, for best responders."""

    describes: ClassVar = "countermove.learning.trees:TreeTraining"
    kind: Literal["trees"]
    n_trees: Count = 60
    leaves: Annotated[int, Field(ge=2)] = 8
    learning_rate: Positive = 0.1
    min_leaf: Count = 20

    def build(self, schema: Schema, actions: ActionSet, seed: int) -> TreeTraining:
        """Return how trees are boosted."""
        made: TreeTraining = super().build()
        return made


ScoreParameters = Annotated[
    LinearScoreParameters
    | PartlyLinearScoreParameters
    | RecurrentScoreParameters
    | MLPScoreParameters
    | TreesScoreParameters,
    Field(discriminator="kind"),
]


class NoRegulariserParameters(Parameters):
    """Accuracy is the only aim."""

    kind: Literal["none"] = "none"

    def build(self, *args: Any, **given: Any) -> None:
        """Return None."""


class L2Parameters(Parameters):
    """Half the squared length of the slope."""

    describes: ClassVar = "countermove.learning:L2"
    kind: Literal["l2"]
    strength: NotNegative = 0.001


class UtilityParameters(Parameters):
    """People's payoff: the decision as they see it, minus what the move cost."""

    describes: ClassVar = "countermove.learning:ExpectedUtility"
    kind: Literal["utility"]
    strength: NotNegative = 0.01


class BurdenParameters(Parameters):
    """What the deserving must pay."""

    describes: ClassVar = "countermove.learning:SocialBurden"
    kind: Literal["burden"]
    strength: NotNegative = 0.01
    unscaled: bool = False


class RecourseAimParameters(Parameters):
    """Who is refused and stays refused."""

    describes: ClassVar = "countermove.learning:Recourse"
    kind: Literal["recourse"]
    strength: NotNegative = 0.01
    temperature: Positive = 0.5


Social = UtilityParameters | BurdenParameters | RecourseAimParameters
SocialParameters = Annotated[Social, Field(discriminator="kind")]
RegulariserParameters = Annotated[
    NoRegulariserParameters | L2Parameters | Social, Field(discriminator="kind")
]


class ResponseModel(Parameters):
    """What every kind of response shares."""

    named: ClassVar[dict[str, str]] = {}

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response; a cost of these people's own goes before the common one."""
        own = getattr(self, "cost", None)
        paid = cost if own is None else actions.priced(own.build())
        response: Response = super().build(cost=paid, actions=actions, **self.named)
        return response


class BestParameters(ResponseModel):
    """Fully rational people who see the decision as it is."""

    describes: ClassVar = "countermove.response:BestResponse"
    kind: Literal["best"] = "best"
    cost: CostParameters | None = None


class SmoothParameters(ResponseModel):
    """People who climb a blurred step."""

    describes: ClassVar = "countermove.response:ScalarResponse"
    kind: Literal["smooth"]
    temperature: Positive = 0.5
    start: Literal["global", "stay"] = "global"
    cost: CostParameters | None = None


class PublishedParameters(ResponseModel):
    """The SERM paper's simulated people; for comparison only."""

    describes: ClassVar = "countermove.response:named_response"
    named: ClassVar = {"name": "published"}
    kind: Literal["published"]
    temperature: Positive = 0.5


class NobodyMovesParameters(ResponseModel):
    """Nobody moves."""

    describes: ClassVar = "countermove.response:NoResponse"
    kind: Literal["none"]


class AscentParameters(ResponseModel):
    """People who climb the blurred step of a score without a slope: a local maximum."""

    describes: ClassVar = "countermove.response:AscentResponse"
    kind: Literal["ascent"]
    temperature: Positive = 0.5
    random_starts: Annotated[int, Field(ge=0)] = 3


SingleResponse = (
    BestParameters
    | SmoothParameters
    | PublishedParameters
    | NobodyMovesParameters
    | AscentParameters
)
SingleResponseParameters = Annotated[SingleResponse, Field(discriminator="kind")]


class PriceByParameters(Parameters):
    """Prices that depend on a column nobody can change."""

    describes: ClassVar = "countermove.response.named:price_by_column"
    column: str
    factors: dict[str, Positive] | None = None
    log_price: float | None = None


class PopulationResponseParameters(Parameters):
    """People who differ: some never move, the others by kind and price."""

    describes: ClassVar = "countermove.response:Population"
    kind: Literal["population"]
    kinds: Several[SingleResponseParameters] = (BestParameters(),)
    shares: list[NotNegative] | None = None
    never: Annotated[float, Field(ge=0, lt=1)] = 0.0
    log_sd: NotNegative = 0.0
    nodes: Count = 8
    price_by: PriceByParameters | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        by = self.price_by
        if by is not None and (by.factors is None) == (by.log_price is None):
            raise ValueError("price_by needs either factors or log_price")
        if self.shares is None and len(self.kinds) > 1:
            raise ValueError(
                f"{len(self.kinds)} kinds need shares that sum to 1; for the worst of several "
                "responses use kind: robust"
            )
        _check_shares(self.shares, len(self.kinds), "kinds", "shares")
        return self

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the population."""
        kinds = [kind.build(cost, actions) for kind in self.kinds]
        people = library_object(self.describes)(
            kinds, self.shares, never=self.never, log_sd=self.log_sd, nodes=self.nodes
        )
        response: Response = people if self.price_by is None else self.price_by.build(people)
        return response


ModelOfPeople = SingleResponse | PopulationResponseParameters
ModelOfPeopleParameters = Annotated[ModelOfPeople, Field(discriminator="kind")]


class RobustParameters(Parameters):
    """Several responses at once; the worst of them is minimised."""

    describes: ClassVar = "countermove.response:RobustResponse"
    kind: Literal["robust"]
    members: Annotated[list[ModelOfPeopleParameters], Field(min_length=2)]
    weights: list[NotNegative] | None = None

    @model_validator(mode="after")
    def _shares(self) -> Self:
        _check_shares(self.weights, len(self.members), "members", "weights")
        return self

    def build(self, cost: Cost, actions: ActionSet) -> Response:
        """Return the response."""
        built = [member.build(cost, actions) for member in self.members]
        response: Response = super().build(members=built)
        return response


ResponseParameters = Annotated[ModelOfPeople | RobustParameters, Field(discriminator="kind")]


NotAll = Annotated[float, Field(ge=0, lt=1)]


class ConfidenceSetParameters(Parameters):
    """What estimated people may be, as estimate_people writes it; pairs are (from, to)."""

    describes: ClassVar = "countermove.response.response_set:ConfidenceSet"
    kind: Literal["best", "smooth"] = "best"
    level: Probability
    price: tuple[Positive, Positive]
    never: tuple[NotAll, NotAll] = (0.0, 0.0)
    log_sd: tuple[NotNegative, NotNegative] = (0.0, 0.0)
    temperature: tuple[Positive, Positive] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for name in ("price", "never", "log_sd", "temperature"):
            ends = getattr(self, name)
            if ends is not None and ends[0] > ends[1]:
                raise ValueError(f"{name} goes from {ends[0]:g} up to {ends[1]:g}: not an interval")
        return self

    def build(self, cost: Cost, actions: ActionSet) -> ConfidenceSet:
        """Return the set around people with that cost."""
        from countermove.response import named_response

        held: ConfidenceSet = super().build(movers=named_response(self.kind, cost, actions))
        return held


def _check_shares(shares: list[float] | None, count: int, of: str, what: str) -> None:
    if shares is not None and (len(shares) != count or abs(sum(shares) - 1.0) > 1e-6):
        raise ValueError(f"{count} {of} need as many {what} that sum to 1, got {shares}")
