"""Estimate people: cost and behaviour, from what people did after the last deployment."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pandas as pd
from kedro.pipeline import Node, Pipeline

from countermove.data.schema import Schema
from countermove.params import EstimatePeopleParameters, RecourseParameters, SermParameters

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from countermove.scores.storage import PublishedModel
else:  # Kedro resolves annotations at start-up, and these are slow to import.
    Figure = PublishedModel = Any

logger = logging.getLogger(__name__)


def estimate(
    model: PublishedModel,
    before: pd.DataFrame,
    after: pd.DataFrame,
    schema: Schema,
    serm: SermParameters,
    recourse: RecourseParameters,
    estimate_people: EstimatePeopleParameters,
) -> tuple[dict[str, Any], str, str]:
    """Estimate behaviour and cost; write facts, and settings for a plain and a robust run."""
    from countermove.learning.people_estimation.estimation import estimate_from_tables

    actions = serm.actions.build(schema, model.standardiser)
    settings = estimate_people.model_dump()
    found = estimate_from_tables(model, before, after, schema, actions, **settings)
    logger.info(found.verdict)
    # Half of the failure probability of a promise is for the people, half for its test.
    level = 1.0 - recourse.failure_probability / 2.0
    written = [found.settings(schema.name, robust, confidence=level) for robust in (False, True)]
    return found.to_json(), written[0], written[1]


def draw(facts: dict[str, Any]) -> Figure:
    """Draw what was seen and what the model says."""
    from countermove.reporting.people_estimate import people_figure

    return people_figure(facts)


def write_page(facts: dict[str, Any], figure: Figure) -> str:
    """Write the verdict and the figure as a page that needs nothing but itself."""
    from countermove.reporting.people_estimate import people_page

    return people_page(facts, figure)


def create_pipeline(**_: object) -> Pipeline:
    """Return the estimate-people pipeline."""
    facts, figure = "people_estimate", "people_estimate_figure"
    settings = ["people_estimate_settings", "people_estimate_robust_settings"]
    return Pipeline(
        [
            Node(
                estimate,
                [
                    "recourse_model",
                    "people_before",
                    "people_after",
                    "schema",
                    "params:serm",
                    "params:recourse",
                    "params:estimate_people",
                ],
                [facts, *settings],
                name="estimate_people",
            ),
            Node(draw, facts, figure, name="draw_people_estimate"),
            Node(
                write_page,
                [facts, figure],
                "people_estimate_page",
                name="write_people_estimate_page",
            ),
        ],
        namespace="estimate_people",
        prefix_datasets_with_namespace=False,
    )
