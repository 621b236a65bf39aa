"""What the experiments on collectives of the look-ahead paper vary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Field

from countermove.params.base import Parameters, Positive
from countermove.params.sweep import Count
from countermove.params.transfer_experiments import NotNegative, Seeds

if TYPE_CHECKING:
    from countermove.experiments.lookahead.coordination import CoordinationExperiment
    from countermove.experiments.lookahead.scaling import ScalingExperiment
    from countermove.experiments.lookahead.size import SizeExperiment

Share = Annotated[float, Field(gt=0, le=1)]
Shares = Annotated[tuple[Share, ...], Field(min_length=1)]
Columns = tuple[str, ...]


class CoordinationParameters(Parameters):
    """Figure 2: the benefit of coordination, by how much members mind the model's length.

    ``published: true`` moves and computes what the paper's code does.
    """

    kind: Literal["figure_2"]
    columns: Columns = ()
    penalties: Annotated[tuple[NotNegative, ...], Field(min_length=1)] = tuple(
        np.linspace(0.0, 1.0, 10).tolist()
    )
    dropped: Columns = ()
    reach: Positive = 1.0
    copies: tuple[Positive, ...] = (1.0, 10.0, 100.0)
    max_steps: Count = 20
    published: bool = False

    def build(self) -> CoordinationExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.coordination import CoordinationExperiment

        return CoordinationExperiment(**self.model_dump(exclude={"kind"}))


class SizeParameters(Parameters):
    """Figure 3: what collectives of each size gain against the learner.

    ``published: true`` moves and computes what the paper's code does.
    """

    kind: Literal["figure_3"]
    columns: Columns = ()
    participation: Shares = tuple(np.linspace(0.01, 0.99, 10).tolist())
    seeds: Seeds = Field(default=[0])
    reach: Positive = 2.5
    dropped: Columns = ()
    max_steps: Count = 30
    tolerance: Positive = 1e-4
    published: bool = False

    def build(self) -> SizeExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.size import SizeExperiment

        return SizeExperiment(**self.model_dump(exclude={"kind"}))


class ScalingParameters(Parameters):
    """Figure 4: fixed strategies at growing size.

    ``published: true`` draws members as the paper's code does.
    """

    kind: Literal["figure_4"]
    columns: Columns = ()
    strengths: Annotated[tuple[float, ...], Field(min_length=1)] = (0.559, 0.34, 0.2159)
    participation: Shares = tuple(np.linspace(0.1, 0.99, 20).tolist())
    target_participation: Share = 0.3
    target_strength: float = 0.552
    dropped: Columns = ()
    outliers: Positive = 10.0
    published: bool = False
    trials: Count = 3

    def build(self) -> ScalingExperiment:
        """Return the experiment."""
        from countermove.experiments.lookahead.scaling import ScalingExperiment

        return ScalingExperiment(**self.model_dump(exclude={"kind"}))
