"""The experiments of the recourse paper: datasets × splits × weights × sizes of actions.

One model per cell, trained on its training rows, its epoch and threshold chosen
on selection rows, its promise calibrated on calibration rows, everything reported
on test rows; the four do not overlap.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.rows import design_matrix
from countermove.data.standardise import Standardiser
from countermove.errors import NotEnoughRowsError, ParameterError, nearest
from countermove.experiments.protocol import Experiment, Measured, Row, Sources, over_splits
from countermove.experiments.recourse._figures import (
    examples_table,
    means_tables,
    recourse_figure,
)
from countermove.experiments.recourse._measures import (
    COLUMNS,
    Part,
    RecourseParts,
    examples_of,
    measures,
)
from countermove.experiments.recourse.thresholds import HighestF1, ThresholdRows, ThresholdRule
from countermove.experiments.tables import Table, some_present
from countermove.people import ActionSet
from countermove.recourse.causal import CausalModel
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.pare import reach_of
from countermove.recourse.performance import scores_of
from countermove.recourse.recommend import recommend

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

Direction = Literal["up", "down", "both"]
PLACE = ("dataset", "split", "recourse_weight", "largest_action", "rule")
"""Columns that name a cell."""
Place = tuple[str, int, float, float]
"""Table, split, largest action and weight of the recourse term."""
HELD_OUT = 0.2
"""Share of the rows that test rows are drawn from, as published."""


@dataclass(frozen=True)
class TableCase:
    """One table: the rows of its parts, drawn at random, and what people can change."""

    train: int
    selection: int
    calibration: int
    test: int
    actions: Mapping[str, Direction]
    training: Mapping[str, Any] = field(default_factory=dict)  # where it differs
    group: str | None = None  # sensitive column to compare groups by
    reference: str | None = None  # the group compared with
    causal: Mapping[str, Any] | None = None  # as `CausalModel.from_mapping` reads it


@dataclass(frozen=True, kw_only=True)
class RecourseExperiment(Experiment[Sources]):
    """Tables × splits × sizes of actions × weights of the recourse term, judged by every rule."""

    what: ClassVar[str] = "models"

    cases: Mapping[str, TableCase]
    splits: Sequence[int] = (0, 21, 42)
    weights: Sequence[float] = (0.0, 0.8)
    largest_actions: Sequence[float] = (0.75,)  # no feature moves further, in deviations
    rules: Sequence[ThresholdRule] = (HighestF1(),)
    methods: Sequence[str] = ("linear_program", "gradient", "exhaustive")
    promised_by: str = "linear_program"
    audited: str | None = None  # a search whose actions are tested against noise
    margins: Sequence[float] = ()
    examples: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)  # of `RecourseClassifier`
    skip_missing: bool = False
    axis: str = "recourse_weight"

    def given(self, source: Sources, seed: int) -> dict[str, Table]:
        """Return the tables that are there; the splits are the seeds."""
        return some_present(self.cases, source.tables, self.skip_missing)

    def places(self, given: dict[str, Table]) -> list[Place]:
        """Return tables, splits, sizes of actions and weights."""
        return list(product(given, self.splits, self.largest_actions, self.weights))

    def measured_at(
        self, place: Place, seed: int, given: dict[str, Table]
    ) -> tuple[list[Row], list[Row]]:
        """Return one row per rule for a model trained here; beside: examples of its advice."""
        name, split, largest, weight = place
        case = self.cases[name]
        parts = make_parts(case, given[name], split)
        actions = paper_actions(case.actions, largest, parts.names)
        started = time.perf_counter()
        settings = {**self.training, **case.training}
        model = RecourseClassifier(
            actions=actions,
            recourse_weight=weight,
            random_state=split,
            optimiser="adam",
            standardise=False,
            **settings,
        ).fit(parts.train.X, parts.train.y, validation=(parts.selection.X, parts.selection.y))
        spent = {"seconds": time.perf_counter() - started}
        logger.info("%s, split %d, weight %g: trained", name, split, weight)
        cells, examples = [], []
        for rule, figures, shown in _judged(self, case, model, parts, split):
            where = dict(zip(PLACE, (name, split, weight, largest, rule), strict=True))
            cells.append(where | spent | figures)
            examples += [where | example for example in shown]
        return cells, examples

    def beside(self, parts: Sequence[list[Row]]) -> pd.DataFrame:
        """Return the examples of all models."""
        shown = [example for part in parts for example in part]
        return pd.DataFrame(shown, columns=[*PLACE, *COLUMNS])

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over splits."""
        return over_splits(cells, ["dataset", "rule", "recourse_weight", "largest_action"])

    def draw(self, found: Measured, means: pd.DataFrame) -> Figure:
        """Draw the mean over splits of every measure against the axis, with standard errors."""
        return recourse_figure(found.cells, self.axis)

    def shown(self, found: Measured, means: pd.DataFrame) -> Row:
        """Show examples of advice if there are any, and every mean."""
        splits = int(means["splits"].max())
        rows = f"averaged over {splits} splits" if splits > 1 else "one split"
        examples = [] if found.beside.empty else [examples_table(found.beside)]
        return {"tables": [*examples, *means_tables(means)], "lead": f"Test rows, {rows}."}


def _judged(
    experiment: RecourseExperiment,
    case: TableCase,
    model: RecourseClassifier,
    parts: RecourseParts,
    seed: int,
) -> Iterator[tuple[str, Row, list[Row]]]:
    """Yield what one model is worth under every rule, and examples of its advice."""
    seen = ThresholdRows(
        scores=scores_of(model.score_, parts.selection.X),
        favourable=parts.selection.y > 0,
        reach=reach_of(model, method=experiment.promised_by)(parts.calibration.X),
    )
    for rule in experiment.rules:
        threshold = rule.threshold(seen)
        advised = {
            method: recommend(
                model,
                parts.test.X,
                method,
                threshold,
                causal=_causal(case, parts) if method == "causal" else None,
                seed=seed,
            )
            for method in experiment.methods
        }
        figures = measures(
            model,
            parts,
            threshold,
            advised,
            audited=experiment.audited,
            margins=experiment.margins,
            group=case.group,
            reference=case.reference,
            seed=seed,
        )
        first = advised[experiment.methods[0]]
        examples = examples_of(first, parts.test.X, parts, experiment.examples)
        yield rule.name, {"threshold": threshold} | figures, examples


def _causal(case: TableCase, parts: RecourseParts) -> CausalModel | None:
    if case.causal is None:
        return None
    model = CausalModel.from_mapping(case.causal, parts.names, parts.standardiser)
    return model.fitted(parts.train.X)


def make_parts(case: TableCase, table: Table, seed: int) -> RecourseParts:
    """Return the four parts of a table, standardised by the training rows."""
    # Test rows are drawn as the published experiments draw theirs (a fifth of the rows is cut off
    # by the seed, and divided by the same seed), so that on the same table they are the same
    # people; the other parts share what is left.
    from sklearn.model_selection import train_test_split

    typed, schema = table
    people = design_matrix(typed, schema)
    n = len(people.X)
    wanted = case.train + case.selection + case.calibration + case.test
    if wanted > n or case.test >= HELD_OUT * n:
        raise NotEnoughRowsError(
            f"the parts of {schema.name!r} ask for {wanted:,} rows of {n:,}, {case.test:,} of them "
            f"to test on, which has to be less than {HELD_OUT:.0%}; make them smaller"
        )
    known, held = train_test_split(np.arange(n), test_size=HELD_OUT, random_state=seed)
    rest, test = train_test_split(held, test_size=case.test, random_state=seed)
    others = np.concatenate([rest, known])
    ends = np.cumsum([case.calibration, case.train, case.selection])
    calibration, train, selection = np.split(others[: ends[-1]], ends[:-1])
    unit = Standardiser.fit(people.X[train], schema.feature_names)

    def part(rows: NDArray[np.int64]) -> Part:
        groups = people.groups.iloc[rows].reset_index(drop=True)
        return Part(unit.transform(people.X[rows]), people.y[rows], groups)

    return RecourseParts(
        train=part(train),
        selection=part(selection),
        calibration=part(calibration),
        test=part(test),
        schema=schema,
        standardiser=unit,
    )


def paper_actions(
    directions: Mapping[str, Direction], largest: float, names: Sequence[str]
) -> ActionSet:
    """Return the box of the paper: the named features move by ``largest``, the others not."""
    lower, upper = np.zeros(len(names)), np.zeros(len(names))
    for name, direction in directions.items():
        if name not in names:
            raise ParameterError(f"no feature {name!r} to act on; {nearest(name, names)}")
        column = list(names).index(name)
        lower[column] = 0.0 if direction == "up" else -largest
        upper[column] = 0.0 if direction == "down" else largest
    return ActionSet(lower=lower, upper=upper)
