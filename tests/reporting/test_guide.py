"""The guide to the report names what is on the page."""

from pathlib import Path

from countermove.reporting.page import SECTIONS

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "report.md"


def test_the_guide_names_every_section_in_order():
    text = GUIDE.read_text(encoding="utf-8")
    places = [text.index(f"| {section.title} |") for section in SECTIONS]
    assert places == sorted(places)
