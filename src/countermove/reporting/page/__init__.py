"""Pages for people: the report of a run, and the tables and style of the simpler ones."""

from countermove.reporting.page.findings import Findings
from countermove.reporting.page.plain import STYLE, figure_page, html_table
from countermove.reporting.page.report import report_page

__all__ = ["STYLE", "Findings", "figure_page", "html_table", "report_page"]
