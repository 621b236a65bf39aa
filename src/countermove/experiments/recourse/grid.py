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
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.rows import design_matrix
from countermove.data.standardise import Standardiser
from countermove.errors import NotEnoughRowsError, ParameterError, nearest
from countermove.execution import Mapper, map_ordered
from countermove.experiments.protocol import Experiment, Measured, Sources, over_splits
from countermove.experiments.recourse.figures import recourse_figure, recourse_page
from countermove.experiments.recourse.measures import (
    COLUMNS,
    Part,
    RecourseParts,
    advised_by,
    examples_of,
    measures,
)
from countermove.experiments.recourse.thresholds import HighestF1, ThresholdRows, ThresholdRule
from countermove.experiments.tables import Sampling, Table, Tables, present
from countermove.people import ActionSet
from countermove.recourse.causal import CausalModel
from countermove.recourse.classifier import RecourseClassifier
from countermove.recourse.pare import reach_of
from countermove.recourse.performance import scores_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

logger = logging.getLogger(__name__)

Direction = Literal["up", "down", "both"]
PLACE = ("dataset", "split", "recourse_weight", "largest_action", "rule")
"""Columns that name a cell."""
Row = dict[str, Any]
Cell = tuple[Row, Row, list[Row]]
"""Which cell, its figures and its examples."""
HELD_OUT = 0.2
"""Share of the rows that test rows are drawn from, as published."""


@dataclass(frozen=True)
class TableCase:
    """One table and how it is used.

    Parameters
    ----------
    train, selection, calibration, test
        Rows of each part, drawn at random; the rest is left out.
    actions
        Which features people can change, and in which direction.
    settings
        Arguments of `RecourseClassifier` that differ from the experiment's.
    group, reference
        Sensitive column to compare groups by, and the group compared with.
    causal
        What follows from what, as `CausalModel.from_mapping` reads it; None: nothing.
    """

    train: int
    selection: int
    calibration: int
    test: int
    actions: Mapping[str, Direction]
    settings: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    reference: str | None = None
    causal: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class RecourseExperiment(Experiment[Sources]):
    r"""What varies, and what does not.

    Parameters
    ----------
    cases
        The tables by name.
    splits
        Seeds, one split and one start of the network each.
    weights
        :math:`\lambda` of the recourse term; 0 is plain training.
    largest_actions
        :math:`\delta_{max}`: no feature moves further, in standard deviations.
    rules
        Ways to set the threshold.
    methods
        Searches for recourse, each measured.
    promised_by
        The search that promises are calibrated with.
    audited, margins
        A search whose actions are also tested against noise and for plausibility, and
        margins of probability with which they are tested once more.
    examples
        How many people per cell are shown with what the first search advises them.
    settings
        Arguments of `RecourseClassifier`.
    skip_missing
        Leave out, with a warning, tables that are not there.
    axis
        What the figure is drawn against: ``recourse_weight``, ``largest_action`` or ``threshold``.
    """

    cases: Mapping[str, TableCase]
    splits: Sequence[int] = (0, 21, 42)
    weights: Sequence[float] = (0.0, 0.8)
    largest_actions: Sequence[float] = (0.75,)
    rules: Sequence[ThresholdRule] = (HighestF1(),)
    methods: Sequence[str] = ("linear_program", "gradient", "exhaustive")
    promised_by: str = "linear_program"
    audited: str | None = None
    margins: Sequence[float] = ()
    examples: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    skip_missing: bool = False
    axis: str = "recourse_weight"

    def cells(self, source: Sources, seed: int, mapper: Mapper | None = None) -> pd.DataFrame:
        """Return one row per table, split, weight, size of actions and rule."""
        return self.measure(source, seed, mapper).cells

    def measure(self, source: Sources, seed: int, mapper: Mapper | None = None) -> Measured:
        """Train every model and measure it; the splits are the seeds. Beside: examples."""
        return run_recourse_experiment(self, source.tables, mapper)

    def means(self, cells: pd.DataFrame) -> pd.DataFrame:
        """Return averages over splits."""
        return over_splits(cells, ["dataset", "rule", "recourse_weight", "largest_action"])

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw performance and recourse against the axis."""
        return recourse_figure(found.cells, self.axis, title)

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write figure, means and examples as a page."""
        return recourse_page(figure, means, found.beside)


def run_recourse_experiment(
    experiment: RecourseExperiment, tables: Tables, mapper: Mapper | None = None
) -> Measured:
    """Train every model and measure it: a cell per table, split, weight, size of actions and rule.

    Columns of the cells: dataset, split, recourse_weight, largest_action, rule, threshold; n, f1,
    accuracy, auc and more of `Performance`; always_positive_f1; refused; per method its
    recourse_neg and recourse_all; where ``exhaustive`` is among the methods, the share of
    the recourse it finds that another method finds too; of an audit or of groups,
    what they measure; seconds of training. Models are given to the ``mapper``'s workers; trained
    here, one after the other, by default.
    """
    sampling = Sampling(datasets=list(experiment.cases), skip_missing=experiment.skip_missing)
    known = dict(present(sampling, tables))
    if not known:
        raise ParameterError(
            f"none of the tables of this experiment is there ({', '.join(experiment.cases)}); "
            "fetch them or name other datasets"
        )
    places = product(known, experiment.splits, experiment.largest_actions, experiment.weights)
    models = map_ordered(judge_model, list(places), (experiment, known), mapper, "models")
    found = [cell for cells in models for cell in cells]
    shown = [place | example for place, _, examples in found for example in examples]
    return Measured(
        pd.DataFrame([place | figures for place, figures, _ in found]),
        pd.DataFrame(shown, columns=[*PLACE, *COLUMNS]),
    )


def judge_model(
    shared: tuple[RecourseExperiment, Mapping[str, Table]], place: tuple[str, int, float, float]
) -> list[Cell]:
    """Train the model of one table, split, size of actions and weight; judge it by every rule."""
    (experiment, tables), (name, seed, largest, weight) = shared, place
    case = experiment.cases[name]
    parts = make_parts(case, tables[name], seed)
    actions = paper_actions(case.actions, largest, parts.names)
    started = time.perf_counter()
    settings = {**experiment.settings, **case.settings}
    model = RecourseClassifier(
        actions=actions, recourse_weight=weight, random_state=seed, **settings
    ).fit(parts.train.X, parts.train.y, validation=(parts.selection.X, parts.selection.y))
    spent = {"seconds": time.perf_counter() - started}
    logger.info("%s, split %d, weight %g: trained", name, seed, weight)
    return [
        (dict(zip(PLACE, (name, seed, weight, largest, rule), strict=True)), spent | figures, told)
        for rule, figures, told in _judged(experiment, case, model, parts, seed)
    ]


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
        advised = advised_by(
            model,
            parts.test.X,
            threshold,
            experiment.methods,
            causal=_causal(case, parts),
            seed=seed,
        )
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
    """Return the four parts of a table, standardised by the training rows.

    Test rows are drawn as the published experiments draw theirs (a fifth of the rows is
    cut off by the seed, and divided by the same seed), so that on the same table they
    are the same people; the other parts share what is left.
    """
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
