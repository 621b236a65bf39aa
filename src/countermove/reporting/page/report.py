"""The report of a run: one page that needs nothing but itself."""

from __future__ import annotations

from countermove.reporting.page.advice_cards import advice_section
from countermove.reporting.page.beyond import beyond_section
from countermove.reporting.page.deployment import deployment_section
from countermove.reporting.page.facts import facts_section, foot
from countermove.reporting.page.findings import Findings
from countermove.reporting.page.headline import headline
from countermove.reporting.page.history import history_section
from countermove.reporting.page.layout import document
from countermove.reporting.page.markup import paragraph
from countermove.reporting.page.move_map import move_map_section
from countermove.reporting.page.people import people_section
from countermove.reporting.page.promise import promise_section
from countermove.reporting.page.tradeoffs import tradeoffs_section

SECTIONS = (
    headline,
    move_map_section,
    people_section,
    tradeoffs_section,
    promise_section,
    advice_section,
    deployment_section,
    beyond_section,
    history_section,
    facts_section,
)
"""In the order of the page."""


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
    lead = paragraph(
        "Publish a rule and people move in answer to it. What this rule does to people, and what "
        "people do to this rule.",
        kind="lead",
    )
    title = f"Report on {found.dataset}"
    return document(title, lead, [make(found) for make in SECTIONS], foot(found))
