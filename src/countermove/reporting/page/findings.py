"""Everything a run may have left, each document with its address beside the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from countermove.reporting.page.citing import Cited, CitedTable

if TYPE_CHECKING:
    import pandas as pd

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Findings:
    """What a run found; None is a stage that has left nothing.

    Attributes
    ----------
    metrics, certificates
        ``metrics.json`` and ``certificates.json``: without them there is no report.
    calibration, frontier, audit, advice
        What the recourse pipeline left; ``advice`` is one row per person.
    transfer, move_map, history, sheet
        ``transfer_report.json``, ``move_map.json``, ``training_history.json`` and
        ``table_sheet.json``.
    tradeoff, lookahead, collective, population
        What the pipelines of these names left; the rows of ``tradeoff`` may be of other tables.
    """

    metrics: Facts
    certificates: Sequence[Facts]
    calibration: Facts | None = None
    frontier: pd.DataFrame | None = None
    audit: Facts | None = None
    advice: pd.DataFrame | None = None
    transfer: Facts | None = None
    move_map: Facts | None = None
    history: Facts | None = None
    sheet: Facts | None = None
    tradeoff: pd.DataFrame | None = None
    lookahead: Facts | None = None
    collective: Facts | None = None
    population: Facts | None = None

    @property
    def dataset(self) -> str:
        """Name of the table."""
        return str(self.metrics["dataset"])

    @property
    def cited(self) -> Cited:
        """The metrics, to be linked to."""
        return Cited("metrics.json", self.metrics)

    @property
    def output(self) -> str:
        """Where the run's outputs about people lie, seen from the page."""
        return f"../../07_model_output/{self.dataset}"

    def command(self, pipeline: str) -> str:
        """Return the command that makes a stage for this table."""
        return f"kedro run --pipeline={pipeline} --params dataset={self.dataset}"

    def advised(self) -> CitedTable | None:
        """Return the advice, to be linked to."""
        if self.advice is None:
            return None
        return CitedTable(f"{self.output}/advice.csv", self.advice)
