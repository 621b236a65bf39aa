"""People who help each other through the retraining: curves, a picture, answers, a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from countermove.params import CollectiveParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def prepare(tables: Tables, collective: CollectiveParameters, seed: int) -> pd.DataFrame:
    """Return the data subjects and their classes."""
    return collective.prepare().people(tables, seed)


def follow_budgets(people: pd.DataFrame, collective: CollectiveParameters) -> pd.DataFrame:
    """Return what the query loses at every budget, alone and together."""
    return collective.build().curves(people)


def place_everybody(
    people: pd.DataFrame, collective: CollectiveParameters, seed: int
) -> pd.DataFrame:
    """Return where everybody stands at every budget."""
    return collective.build().picture(people, seed)


def answer(
    people: pd.DataFrame, curves: pd.DataFrame, collective: CollectiveParameters, seed: int
) -> dict[str, Any]:
    """Return least budgets, break-even, who should help, side effects and the audit."""
    return collective.build().facts(people, curves, seed)


def draw_losses(curves: pd.DataFrame, facts: dict[str, Any]) -> Figure:
    """Draw the loss of the goal over budgets (Figure 2)."""
    from countermove.experiments.collective.figures import losses_figure

    return losses_figure(curves, facts)


def draw_centroids(picture: pd.DataFrame, facts: dict[str, Any]) -> Figure:
    """Draw the centroids that move with the budget (Figure 1)."""
    from countermove.experiments.collective.figures import centroids_figure

    return centroids_figure(picture, facts)


def write_page(losses: Figure, centroids: Figure, facts: dict[str, Any]) -> str:
    """Write figures and answers as a page that needs nothing but itself."""
    from countermove.experiments.collective.figures import collective_page

    return collective_page(losses, centroids, facts)
