"""The report of a run: one page that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from countermove.reporting._move_map import move_map_facts
from countermove.reporting._people import advice_facts, people_facts
from countermove.reporting._promise import promise_facts, tradeoffs_facts
from countermove.reporting._run import beyond_facts, future_facts, run_facts
from countermove.reporting._summary import summary_facts
from countermove.reporting.accuracy import headline_facts, history_facts
from countermove.reporting.citing import Cited
from countermove.reporting.rendering import render
from countermove.reporting.transfer import deployment_facts

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
    comparison
        Of an audit: what the model was compared with.
    summary, future
        ``summary.json``: what a committee asks first; ``future.json``: what will happen to the
        rule.
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
    comparison: Facts | None = None
    summary: Facts | None = None
    future: Facts | None = None

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
        if self.adopted:
            return f"../../../07_model_output/{self.dataset}/audit"
        return f"../../07_model_output/{self.dataset}"

    @property
    def adopted(self) -> bool:
        """Whether the rule is a model of somebody else."""
        return bool(self.metrics.get("adopted"))

    def command(self, pipeline: str) -> str:
        """Return the command that makes a stage for this table."""
        return f"kedro run --pipeline={pipeline} --params dataset={self.dataset}"


@dataclass(frozen=True)
class Section:
    """One part of the report: anchor, heading, name in the contents, and what its template shows.

    The template is ``templates/report/<anchor>.html``.
    """

    anchor: str
    title: str
    short: str
    facts: Callable[[Findings], dict[str, Any]]

    def body(self, found: Findings) -> Markup:
        """Return the section's HTML without its heading."""
        common = {"dataset": found.dataset, "metrics": found.cited, "run": found.command}
        return Markup(render(f"report/{self.anchor}.html", **common, **self.facts(found)))


SECTIONS = (
    Section("summary", "Decision summary", "Summary", summary_facts),
    Section("headline", "How often the rule is right", "Headline", headline_facts),
    Section("moves", "Who moves, and where to", "Move map", move_map_facts),
    Section("people", "Who moves and who pays", "People", people_facts),
    Section("tradeoffs", "What is traded against what", "Trade-offs", tradeoffs_facts),
    Section("promise", "What is promised", "Promise", promise_facts),
    Section("advice", "Advice to refused people", "Advice", advice_facts),
    Section("deployment", "What deployment will do to the error", "Deployment", deployment_facts),
    Section("future", "What will happen to this rule", "Future", future_facts),
    Section("beyond", "Beyond one response to one rule", "Beyond", beyond_facts),
    Section("history", "How training went", "Training", history_facts),
    Section("facts", "The data and the run", "Data and run", run_facts),
)
"""In the order of the page."""
OF_TRAINING = ("beyond", "history")
"""Sections that say nothing of a model that is only audited."""


def report_page(found: Findings) -> str:
    """Return the page of a run.

    Parameters
    ----------
    found
        What the run left. A stage that left nothing has a sentence in its place that names
        the command which makes it.

    Returns
    -------
    str
        HTML that asks nothing of the network: style, plotting script and data are inside.
        The files its numbers link to lie beside it.
    """
    shown = [part for part in SECTIONS if not (found.adopted and part.anchor in OF_TRAINING)]
    return render(
        "report.html",
        dataset=found.dataset,
        sections=shown,
        bodies={section.anchor: section.body(found) for section in shown},
        made_by=found.metrics["versions"]["countermove"],
    )
