"""What the experiments of the look-ahead paper share: the people they read, titles, facts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.experiments.lookahead.people import LookaheadTable
from countermove.experiments.protocol import Experiment, Measured, experiment_page, means_table

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class LookaheadExperiment(Experiment[LookaheadTable]):
    """An experiment on one table of people."""

    @abstractmethod
    def draw(self, cells: pd.DataFrame, means: pd.DataFrame) -> Figure:
        """Draw the experiment, without title and legend."""

    def figure(self, found: Measured, means: pd.DataFrame, title: str) -> Figure:
        """Draw the experiment."""
        return self.draw(found.cells, means).update_layout(
            title=title.replace("_", " ").capitalize().replace("Lookahead", "Look-ahead"),
            template="plotly_white",
            legend={"orientation": "h", "y": -0.2},
        )

    def page(self, found: Measured, means: pd.DataFrame, figure: Figure) -> str:
        """Write figure and means as a page; small numbers keep their digits."""
        return experiment_page([figure], [means_table(means, ".4g")])


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
