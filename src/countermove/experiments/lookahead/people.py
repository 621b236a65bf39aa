"""The people of the look-ahead experiments, as a crowd with named columns.

As the paper prepares give-me-some-credit, or any table as the chain cleans it. The
label here is 1 for the favourable outcome, no default; the paper's is its opposite,
which turns the sign of a model and leaves every gap, loss and norm as published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.checks import column_problems, raise_all, rows_problem
from countermove.data.parsing import numbers
from countermove.data.rows import design_matrix
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.dynamics.crowd import Crowd
from countermove.dynamics.learners import LogisticLearner
from countermove.errors import NotEnoughRowsError, ParameterError, nearest
from countermove.experiments._drawing import BELOW
from countermove.experiments.lookahead.published import PublishedQuasiNewton
from countermove.experiments.protocol import Experiment
from countermove.experiments.tables import Tables
from countermove.people import ActionSet, QuadraticCost
from countermove.response.score_seeking import GainResponse

PAPER_TABLE = "give-me-some-credit"
LABEL = "SeriousDlqin2yrs"
FEATURES = (
    "RevolvingUtilizationOfUnsecuredLines",
    "age",
    "NumberOfTime30-59DaysPastDueNotWorse",
    "DebtRatio",
    "MonthlyIncome",
    "NumberOfOpenCreditLinesAndLoans",
    "NumberOfTimes90DaysLate",
    "NumberRealEstateLoansOrLines",
    "NumberOfTime60-89DaysPastDueNotWorse",
    "NumberOfDependents",
)
"""In the order of the published file. The published code drops the first one for its Figures 2
to 5 and keeps the old numbers, so that its names are off by one."""
STRATEGIC = (
    "RevolvingUtilizationOfUnsecuredLines",
    "NumberOfOpenCreditLinesAndLoans",
    "NumberRealEstateLoansOrLines",
)
"""What people can change in the paper's Figure 1."""
OTHERS = 10_000
"""How many people without default the paper keeps: the first ones of the file."""
CONSTANTS = ("constant", "intercept", "bias", "1")
"""What somebody may call the column of ones that the published code appends."""


@dataclass(frozen=True, eq=False)
class LookaheadTable:
    """People in standardised units; labels are 1 for the favourable outcome, else 0."""

    crowd: Crowd  # without a column of ones, which a learner adds itself
    names: tuple[str, ...]
    changeable: tuple[str, ...] = ()  # what people can change where an experiment names nothing

    def columns(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the positions of columns people can change, by name."""
        if not names or len(set(names)) < len(names):
            raise ParameterError(f"name at least one column, each once; got {list(names)}")
        for name in names:
            if name not in self.names and str(name).lower() in CONSTANTS:
                raise ParameterError(
                    f"{name!r} is the learner's constant, which nobody can change; "
                    f"choose among the columns: {', '.join(self.names)}"
                )
            if name not in self.names:
                raise ParameterError(f"no column {name!r}; {nearest(str(name), self.names)}")
        return tuple(self.names.index(name) for name in names)

    def only(self, names: Sequence[str] = ()) -> ActionSet:
        """Return the actions of people who can change these columns (none: all ``changeable``)."""
        free = self.columns(names or self.changeable)
        return ActionSet(immutable=tuple(j for j in range(len(self.names)) if j not in free))

    def of_rows(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> LookaheadTable:
        """Return some of the people."""
        return replace(self, crowd=self.crowd.of_rows(rows))


def lookahead_table(
    tables: Tables,
    raw: Tables,
    dataset: str = PAPER_TABLE,
    preparation: Literal["paper", "chain"] | None = None,
) -> LookaheadTable:
    """Return the people of a dataset, prepared as in the paper or as the chain does."""
    chosen = preparation or ("paper" if dataset == PAPER_TABLE else "chain")
    if chosen == "chain":
        return prepared_table(*tables(dataset))
    if dataset != PAPER_TABLE:
        raise ParameterError(
            f"the paper prepares {PAPER_TABLE} only, got {dataset!r}; use preparation: chain"
        )
    return paper_table(raw(dataset)[0])


def paper_table(raw: pd.DataFrame) -> LookaheadTable:
    """Return give-me-some-credit as the paper prepares it."""
    # Rows with an empty cell are dropped, the rest standardised, and only then balanced: all who
    # defaulted and the first 10,000 who did not, in the order of the file.
    expected = (LABEL, *FEATURES)
    surplus = [str(column) for column in raw.columns if column not in expected]
    raise_all(column_problems(raw.columns, expected, surplus), PAPER_TABLE)
    read = {column: numbers(raw[column]) for column in expected}
    raise_all(
        [
            problem
            for column, (_, _, strange) in read.items()
            for problem in rows_problem(f"column {column!r}: not a number", strange)
        ],
        PAPER_TABLE,
    )
    cells = np.column_stack([values for values, _, _ in read.values()])
    cells = cells[np.isfinite(cells).all(axis=1)]
    repaid = cells[:, 0] == 0.0
    if not repaid.any() or repaid.all():
        raise NotEnoughRowsError(
            f"table {PAPER_TABLE!r}: of {len(cells)} rows without empty cells {repaid.sum()} "
            f"have {LABEL} = 0; both outcomes are needed"
        )
    X = Standardiser.fit(cells[:, 1:], FEATURES).transform(cells[:, 1:])
    kept = ~repaid | (np.cumsum(repaid) <= OTHERS)
    return LookaheadTable(Crowd(X[kept], repaid[kept].astype(np.float64)), FEATURES, STRATEGIC)


def prepared_table(typed: pd.DataFrame, schema: Schema) -> LookaheadTable:
    """Return a typed table, standardised, with everybody in it; one-hot columns stay."""
    arrays = design_matrix(typed, schema)
    names = tuple(schema.feature_names)
    X = Standardiser.fit(arrays.X, names).transform(arrays.X)
    changeable = tuple(
        column.name
        for column in schema.model_features()
        if column.change != "immutable" and column.group is None
    )
    return LookaheadTable(Crowd(X, (arrays.y > 0.0).astype(np.float64)), names, changeable)


CONSTANT = "constant"
"""The column of ones that the published code appends and, by its numbers, lets people change."""


def narrowed(people: LookaheadTable, dropped: Sequence[str]) -> LookaheadTable:
    """Return the people without some columns (the paper's Figures 2 to 4 leave out the first)."""
    gone = people.columns(dropped) if dropped else ()
    kept = [j for j in range(len(people.names)) if j not in gone]
    crowd = people.crowd
    return LookaheadTable(
        Crowd(crowd.X[:, kept], crowd.y, crowd.weight),
        tuple(people.names[j] for j in kept),
        tuple(name for name in people.changeable if name not in dropped),
    )


def chosen(columns: Sequence[str], people: LookaheadTable) -> tuple[str, ...]:
    """Return the columns named, or all that people can change; each checked to be one."""
    names = tuple(columns or people.changeable)
    people.columns(names)
    return names


def with_constant(people: LookaheadTable) -> LookaheadTable:
    """Return the people with a last column of ones, as the published code has them."""
    X = np.column_stack([people.crowd.X, np.ones(people.crowd.n)])
    return LookaheadTable(people.crowd.moved(X), (*people.names, CONSTANT))


def moved_in_code(name: str, people: LookaheadTable, narrow: LookaheadTable) -> str:
    """Return the column that the published code moves where the paper names another."""
    # It drops the first column and keeps the numbers of the others, so that each name stands for
    # its neighbour to the right, and the last one for the constant.
    position = people.columns([name])[0]
    return (*narrow.names, CONSTANT)[position]


Solver = Literal["exact", "published"]


def gain_response(people: LookaheadTable, columns: Any, strength: float) -> GainResponse:
    r"""Return people who move by :math:`\epsilon w_S`: the strength, on the columns S."""
    return GainResponse(QuadraticCost(1.0 / (2.0 * strength)), people.only(tuple(columns or ())))


def platform(
    people: LookaheadTable,
    solver: Solver = "exact",
    penalty: float | None = None,
    penalise_intercept: bool = True,
) -> LogisticLearner:
    """Return the learner: exact, or as the paper's code fits; by default with penalty 1/n."""
    strength = 1.0 / people.crowd.n if penalty is None else penalty
    if solver == "published":
        return PublishedQuasiNewton(strength, penalise_intercept=penalise_intercept)
    return LogisticLearner(strength, penalise_intercept=penalise_intercept)


def share_words(shares: Mapping[int, float]) -> str:
    """Return a mixture in words: ``0.9 level 1, 0.1 level 2``."""
    return ", ".join(f"{share:g} level {level}" for level, share in sorted(shares.items()))


def accuracy(scores: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> float:
    """Return the share of people whose decision is their label in {0, 1}."""
    return float(np.mean((scores >= 0.0) == (y > 0.5)))


class LookaheadExperiment(Experiment[LookaheadTable]):
    """An experiment on one table of people."""

    layout: ClassVar[dict[str, Any]] = {"legend": BELOW}
    digits: ClassVar[str] = ".4g"  # small numbers keep theirs

    def titled(self, title: str) -> str:
        """Return the name of the results as a title."""
        return title.replace("_", " ").capitalize().replace("Lookahead", "Look-ahead")


def lookahead_facts(
    people: LookaheadTable, means: pd.DataFrame, settings: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return what was run, on whom, and what came out, JSON-ready (None for no number)."""
    rows = means.astype(object).where(pd.notna(means), None)
    return {
        "experiment": dict(settings["experiment"]),
        "name": settings["name"],
        "dataset": settings["dataset"],
        "preparation": settings["preparation"],
        "people": people.crowd.n,
        "favourable": float(people.crowd.mean(people.crowd.y)),
        "columns": list(people.names),
        "seed": seed,
        "results": rows.to_dict("records"),
    }
