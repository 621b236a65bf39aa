"""Around training: where work is done, how rows are split, what is promised and reported."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from countermove.params.axes import (
    AscentParameters,
    BestParameters,
    ModelOfPeopleParameters,
    NobodyMovesParameters,
    PopulationResponseParameters,
    RobustParameters,
    SingleResponseParameters,
    SmoothParameters,
)
from countermove.params.base import (
    Count,
    NotNegative,
    Parameters,
    Positive,
    Probability,
    Seed,
    Several,
    Share,
    library,
    library_object,
    needed,
    part,
    setting,
)
from countermove.params.serm import SermParameters

if TYPE_CHECKING:
    from countermove.data.partitions import Partitions
    from countermove.data.schema import Schema
    from countermove.data.standardise import Standardiser
    from countermove.execution import Execution
    from countermove.recourse.advise import AdviceTerms
    from countermove.response import Response
    from countermove.transfer import TransferTerms

SearchName = Literal["auto", "linear_program", "gradient", "integer_program", "exhaustive"]
TEMPERATURES = "countermove.learning.evaluation:TEMPERATURES"
PARTS = "countermove.data.partitions:Partitions"
SPLIT = "countermove.data.splits:split_table"
ADVICE = "countermove.recourse.advise:AdviceTerms"


class TlsParameters(Parameters):
    """Files by which a scheduler and we know each other (PEM)."""

    describes: ClassVar = "countermove.execution:Tls"
    ca_file: Path = needed("the authority's certificate")
    cert: Path = needed("our certificate")
    key: Path = needed("our private key")


class ExecutionParameters(Parameters):
    """Who works: this process, its threads, or a Dask cluster."""

    describes: ClassVar = "countermove.execution:Execution"
    engine: Literal["serial", "threads", "dask"] = library("serial, threads, or dask (processes)")
    workers: Count | None = library("threads or processes of this machine; null: one per core")
    scheduler: str | None = library("address of a Dask scheduler; null: processes of this machine")
    memory_per_worker: str | None = library('limit of a local process, as in "2GB"')
    host: str = library("address on which local processes and their dashboard listen")
    timeout: Positive = library("seconds to wait for a scheduler and its first worker")
    tls: TlsParameters | None = library("certificates for a tls:// scheduler")
    rows_per_part: Count = library("rows of a table in parts that a worker holds at once", PARTS)

    def build(self, *args: Any, **given: Any) -> Execution:
        """Return where to work."""
        from countermove.execution import Execution

        own = self.model_dump(exclude={"rows_per_part", "tls"})
        return Execution(**own, tls=None if self.tls is None else self.tls.build())

    def cut(self, splits: Mapping[str, Partitions]) -> dict[str, Partitions]:
        """Return splits in parts of which workers hold ``rows_per_part`` rows at once."""
        return {
            name: replace(parts, rows_per_part=self.rows_per_part) for name, parts in splits.items()
        }


class SplitParameters(Parameters):
    """Shares of the rows; they sum to one."""

    train: Probability = setting(0.5, "rules are trained on these")
    validation: Probability = setting(0.15, "training stops by these, and thresholds are chosen")
    calibration: Probability = setting(0.15, "the promise of recourse is made on these")
    test: Probability = setting(0.2, "what is reported is measured on these")

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = sum(self.build().values())
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(
                f"the shares of train, validation, calibration and test must sum to 1, got {total}"
            )
        return self

    def build(self, *args: Any, **given: Any) -> dict[str, float]:
        """Return the shares by split."""
        return self.model_dump()


class IngestParameters(Parameters):
    """How a raw table becomes standardised splits."""

    split: SplitParameters = part(SplitParameters, "Shares of the rows; they sum to one.")
    seed: Seed | None = setting(None, "which rows are in which share; null: the seed of the run")
    balance: bool = library("draw as many rows of the larger class as the smaller one has", SPLIT)
    max_rows: Annotated[int, Field(ge=2)] | None = library("rows to draw at most after that", SPLIT)
    divide_by_root_d: bool = library(
        "divide standardised features by the root of their number",
        "countermove.data.standardise:Standardiser.fit",
    )
    rows_per_part: Count = library("rows held at once when a table is ingested in parts", PARTS)

    def split_seed(self, run: int) -> int:
        """Return the seed of the split in a run with the seed ``run``."""
        return run if self.seed is None else self.seed


class RecourseParameters(Parameters):
    """What may be asked of a refused person, how sure the promise is, and what it may cost."""

    describes: ClassVar = "countermove.recourse:PromiseTerms"
    threshold: Probability = library("probability asked for unless the promise needs a lower one")
    largest_action: Positive | None = library(
        "bound on every feature's move beside the schema's, in standardised units (PARE: 0.75)"
    )
    method: SearchName = library(
        "how recourse is searched for: auto (proven cheapest where the score is affine), "
        "linear_program, gradient, integer_program or exhaustive"
    )
    miss_rate: Probability = library("share of people who may be left without recourse")
    failure_probability: Probability = library("chance that the promise is wrong")
    groups: str | None = library("sensitive column, for a promise to each of its groups")
    after_response: bool = library(
        "promise to people who have responded to the rule, or as they were"
    )
    measure: Literal["accuracy", "f1", "utility"] = library(
        "what the threshold maximises among those that keep the promise: accuracy, f1 or utility"
    )
    loss: NotNegative = library("what utility takes off for a wrong approval")
    largest_loss: Probability | None = library(
        "how much of the measure the promise may cost before less is promised; null: anything"
    )
    grid: Several[Probability] | None = library(
        "thresholds to choose among, rising or falling; null: from the validation rows"
    )
    margin: Annotated[float, Field(ge=0, lt=1)] = library(
        "how far beyond the threshold advice goes where it can, in probability"
    )
    ceiling: Positive | None = library(
        "what nobody is advised to pay more than, and so the promise, in units of the cost; null: "
        "no ceiling"
    )
    max_features: Count | None = library(
        "how many features advice changes at most, and so the promise; null: any"
    )
    max_steps: Count | None = library(
        "how many steps along a history (months, say) advice asks for at most, and so the "
        "promise; null: any"
    )
    cost_share: Probability | None = library(
        "share of the refused for whom the price of recourse is promised; null: no such promise"
    )
    language: str = library("of the advice: en, de or the path of a template file", ADVICE)
    options: Count = library("ways to look for; up to two others are given in words", ADVICE)
    causal_tolerance: NotNegative = library(
        "how much more, as a share, advice may cost that leaves `causal: no` columns alone", ADVICE
    )
    digits: Count | None = library(
        "significant digits that amounts are rounded to, towards approval; null: not rounded",
        ADVICE,
    )
    confidence: Probability | None = library(
        "probability with which advice outlasts a refit of a linear rule to as many other rows, "
        "where it can; null: no such margin",
        ADVICE,
    )

    def build(self, *args: Any, **given: Any) -> Any:
        """Return the terms of the promise."""
        return library_object(self.describes)(**self.model_dump(exclude=set(self._said())))

    def advice(self) -> AdviceTerms:
        """Return how advice is chosen and said."""
        from countermove.recourse.advise import AdviceTerms

        return AdviceTerms(**{name: getattr(self, name) for name in self._said()})

    def _said(self) -> tuple[str, ...]:
        """Return the settings that are about advice, not about the promise."""
        from countermove.recourse.advise import AdviceTerms

        return tuple(field.name for field in fields(AdviceTerms))


def _climbers() -> tuple[SingleResponseParameters, ...]:
    """Return the plausible responses to a score without a slope, which people can only climb."""
    temperatures = library_object(TEMPERATURES)
    return (
        *(AscentParameters(kind="ascent", temperature=value) for value in temperatures),
        NobodyMovesParameters(kind="none"),
    )


def _plausible() -> tuple[SingleResponseParameters, ...]:
    """Return the plausible responses to any other score."""
    temperatures = library_object(TEMPERATURES)
    return (
        BestParameters(),
        *(SmoothParameters(kind="smooth", temperature=value) for value in temperatures),
        NobodyMovesParameters(kind="none"),
    )


class TransferParameters(Parameters):
    """How the effect of deployment on the error is predicted."""

    describes: ClassVar = "countermove.transfer:TransferTerms"
    responses: Several[ModelOfPeopleParameters] = part(
        _plausible,
        "the worst case is taken over these and the one trained for (climbers for a score of "
        "kind mlp)",
    )
    labels: Several[Literal["kept", "follow"]] = library(
        "what moving may do to a label: kept, follow or both"
    )
    bins: Annotated[int, Field(ge=2)] = library("score bins for importance weights, at most")
    thresholds: Count = library("thresholds that compete for the best rule after deployment")
    tolerated_outside: Share = library("share of people beyond the source up to which weights hold")


class EvaluationParameters(Parameters):
    """Under which responses a rule is judged, and at what level."""

    describes: ClassVar = "countermove.transfer:TransferTerms"
    failure_probability: Probability = library("chance that a bound from the test rows is wrong")
    transfer: TransferParameters = part(
        TransferParameters, "How the effect of deployment on the error is predicted."
    )

    def build(self, *args: Any, **given: Any) -> TransferTerms:
        """Return the terms of the transfer report."""
        from countermove.transfer import TransferTerms

        own = self.transfer.model_dump(exclude={"responses", "labels"})
        labels = tuple(dict.fromkeys(self.transfer.labels))
        return TransferTerms(self.failure_probability, labels, **own)

    def responses(
        self, serm: SermParameters, schema: Schema, standardiser: Standardiser
    ) -> tuple[dict[str, Response], list[str]]:
        """Return the plausible responses by name, and the names of those trained for."""
        actions = serm.actions.build(schema, standardiser)
        cost = actions.priced(serm.cost.build())
        given = serm.response
        trained: Sequence[ModelOfPeopleParameters]
        trained = given.members if isinstance(given, RobustParameters) else [given]
        built: dict[str, Response] = {}
        plausible = _climbers() if serm.score.kind == "mlp" else self.transfer.responses
        if serm.score.kind == "trees":  # trees rise in steps, and a smooth response needs a slope
            plausible = tuple(each for each in plausible if each.kind in ("best", "none"))
        for place, each in enumerate(trained):
            several = isinstance(each, PopulationResponseParameters) and _name(each) in built
            name = f"{_name(each)}_{place + 1}" if several else _name(each)
            built.setdefault(name, serm.actions.bind(each.build(cost, actions)))
        stated = list(built)
        for each in plausible:
            built.setdefault(_name(each), serm.actions.bind(each.build(cost, actions)))
        return built, stated


def _name(response: ModelOfPeopleParameters) -> str:
    if isinstance(response, SmoothParameters | AscentParameters):
        return f"{response.kind}_{response.temperature:g}"
    return response.kind
