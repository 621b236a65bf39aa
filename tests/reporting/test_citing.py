"""A number and its address come from one look-up."""

import pandas as pd
import pytest
from markupsafe import escape

from countermove.reporting.citing import Cited, CitedTable
from countermove.reporting.words import number, points, share

CITED = Cited("facts.json", {"a": {"smooth_0.5": [0.25, 3]}, "odd/key~<": 1, "none": None})


def test_a_link_shows_the_value_and_points_at_it():
    link = escape(CITED.link("a", "smooth_0.5", 0, by=share))
    assert 'href="facts.json#/a/smooth_0.5/0"' in link
    assert 'title="facts.json: a.smooth_0.5.0"' in link
    assert ">25.0\u202f%</a>" in link


def test_keys_are_escaped_as_pointers_and_as_html():
    link = escape(CITED.link("odd/key~<"))
    assert "#/odd~1key~0%3C" in link
    assert "odd/key~&lt;" in link


def test_a_value_that_is_not_there_cannot_be_linked():
    with pytest.raises(KeyError):
        CITED.link("b")
    with pytest.raises(KeyError):
        CITED.linked("text", "a", "b")


def test_a_missing_number_is_a_dash():
    assert ">–</a>" in escape(CITED.link("none"))


def test_a_cell_is_linked_by_its_row_in_the_file():
    table = CitedTable("cells.csv", pd.DataFrame({"x": [0.5, 0.75]}))
    link = escape(table.link(1, "x"))
    # The heading is row 1 (RFC 7111), so the second row of cells is row 3.
    assert 'href="cells.csv#row=3"' in link
    assert ">0.750</a>" in link


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (float("nan"), "–"), (12345, "12,345"), (-0.5, "−0.500"), (False, "no")],
)
def test_numbers_in_words(value, text):
    assert number(value) == text


def test_points_agree_with_the_shares_a_reader_subtracts():
    assert points(0.80666, 0.78317) == 2.4
    assert (share(0.80666), share(0.78317)) == ("80.7\u202f%", "78.3\u202f%")
