"""Collective recourse: how people help somebody through a retraining, and what a platform sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.params import CollectiveParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.experiments.tables import Tables
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = Tables = Any


def prepare(tables: Tables, collective: CollectiveParameters, seed: int) -> pd.DataFrame:
    """Return the data subjects and their classes."""
    return collective.prepare().people(tables, seed)


def measure(
    people: pd.DataFrame, collective: CollectiveParameters, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the losses over budgets, where everybody stands at each, and the answers."""
    found = collective.build().measure(people, seed)
    return found.cells, found.beside.picture, found.beside.facts


def draw_losses(
    curves: pd.DataFrame,
    picture: pd.DataFrame,
    facts: dict[str, Any],
    collective: CollectiveParameters,
) -> Figure:
    """Draw the loss of the goal over budgets (Figure 2)."""
    from countermove.experiments import Measured
    from countermove.experiments.collective.recourse import Answers

    found = Measured(curves, Answers(facts, picture))
    return collective.build().figure(found, curves, facts["experiment"])


def draw_centroids(picture: pd.DataFrame, facts: dict[str, Any]) -> Figure:
    """Draw the centroids that move with the budget (Figure 1)."""
    from countermove.experiments.collective.figures import centroids_figure

    return centroids_figure(picture, facts)


def write_page(
    curves: pd.DataFrame,
    picture: pd.DataFrame,
    facts: dict[str, Any],
    losses: Figure,
    future: dict[str, Any] | None,
    collective: CollectiveParameters,
) -> str:
    """Write the threat to the rule, figures and answers as a page that needs nothing but itself."""
    from countermove.experiments import Measured
    from countermove.experiments.collective.recourse import Answers
    from countermove.experiments.protocol import opening

    said = opening(future, "collective_threat", collective.dataset, collective.label is None)
    found = Measured(curves, Answers(facts, picture))
    return collective.build().page(found, curves, losses, said)


def create_pipeline(**_: object) -> Pipeline:
    """Return the collective pipeline."""
    settings, seed, people = "params:collective", "params:seed", "collective_people"
    found = ["collective_curves", "collective_picture", "collective_facts"]
    losses, centroids = "collective_losses", "collective_centroids"
    shown, page = [*found, losses, "collective_future", settings], "collective_page"
    return Pipeline(
        [
            Node(prepare, ["tables", settings, seed], people, name="prepare_collective"),
            Node(measure, [people, settings, seed], found, name="measure_collective"),
            Node(draw_losses, [*found, settings], losses, name="draw_collective_losses"),
            Node(draw_centroids, found[1:], centroids, name="draw_centroids"),
            Node(write_page, shown, page, name="write_collective_page"),
        ],
        namespace="collective",
        prefix_datasets_with_namespace=False,
    )
