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
    library_object,
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
TEMPERATURES = (0.2, 0.5, 1.0)


class TlsParameters(Parameters):
    """Files by which a scheduler and we know each other (PEM)."""

    describes: ClassVar = "countermove.execution:Tls"
    ca_file: Path
    cert: Path
    key: Path


class ExecutionParameters(Parameters):
    """Who works: this process, its threads, or a Dask cluster."""

    describes: ClassVar = "countermove.execution:Execution"
    engine: Literal["serial", "threads", "dask"] = "serial"
    workers: Count | None = None
    scheduler: str | None = None
    memory_per_worker: str | None = None
    host: str = "127.0.0.1"
    timeout: Positive = 10.0
    tls: TlsParameters | None = None
    rows_per_part: Count = 250000

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

    train: Probability = 0.5
    validation: Probability = 0.15
    calibration: Probability = 0.15
    test: Probability = 0.2

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

    split: SplitParameters = SplitParameters()
    seed: Seed | None = None
    balance: bool = False
    max_rows: Annotated[int, Field(ge=2)] | None = None
    divide_by_root_d: bool = False
    rows_per_part: Count = 100000

    def split_seed(self, run: int) -> int:
        """Return the seed of the split in a run with the seed ``run``."""
        return run if self.seed is None else self.seed


class RecourseParameters(Parameters):
    """What may be asked of a refused person, how sure the promise is, and what it may cost."""

    describes: ClassVar = "countermove.recourse:PromiseTerms"
    threshold: Probability = 0.5
    largest_action: Positive | None = None
    method: SearchName = "auto"
    miss_rate: Probability = 0.05
    failure_probability: Probability = 0.05
    groups: str | None = None
    after_response: bool = True
    measure: Literal["accuracy", "f1", "utility"] = "accuracy"
    loss: NotNegative = 1.0
    largest_loss: Probability | None = 0.02
    grid: Several[Probability] | None = None
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    ceiling: Positive | None = None
    max_features: Count | None = None
    max_steps: Count | None = None
    cost_share: Probability | None = 0.9
    phrase_file: str | None = None
    options: Count = 1
    causal_tolerance: NotNegative = 0.05
    digits: Count | None = 2
    confidence: Probability | None = 0.9

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


CLIMBERS: tuple[SingleResponseParameters, ...] = (
    *(AscentParameters(kind="ascent", temperature=value) for value in TEMPERATURES),
    NobodyMovesParameters(kind="none"),
)
"""Plausible responses to a score without a slope, which people can only climb."""
PLAUSIBLE: tuple[SingleResponseParameters, ...] = (
    BestParameters(),
    *(SmoothParameters(kind="smooth", temperature=value) for value in TEMPERATURES),
    NobodyMovesParameters(kind="none"),
)
"""Plausible responses to any other score."""


class TransferParameters(Parameters):
    """How the effect of deployment on the error is predicted."""

    describes: ClassVar = "countermove.transfer:TransferTerms"
    responses: Several[ModelOfPeopleParameters] = PLAUSIBLE
    labels: Several[Literal["kept", "follow"]] = ("kept", "follow")
    bins: Annotated[int, Field(ge=2)] = 6
    thresholds: Count = 20
    tolerated_outside: Share = 0.01


class EvaluationParameters(Parameters):
    """Under which responses a rule is judged, and at what level."""

    describes: ClassVar = "countermove.transfer:TransferTerms"
    failure_probability: Probability = 0.05
    transfer: TransferParameters = TransferParameters()

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
        plausible = CLIMBERS if serm.score.kind == "mlp" else self.transfer.responses
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
