"""Tables are escaped, have headings a screen reader finds, and scroll in a box of their own."""

from countermove.reporting.page import html_table
from countermove.reporting.page.markup import Markup, absent, command, name


def test_cells_are_escaped_unless_they_are_markup():
    table = html_table(["<h>", "b"], [["<r>", Markup("<em>1</em>")]])
    assert "&lt;h&gt;" in table
    assert "&lt;r&gt;" in table
    assert "<em>1</em>" in table


def test_headings_have_a_scope():
    table = html_table(["a", "b"], [["r", "1"]])
    assert '<th scope="col">a</th>' in table
    assert '<th scope="row">r</th>' in table
    assert '<td class="number">1</td>' in table


def test_a_captioned_table_is_a_region_the_keyboard_reaches():
    table = html_table(["a"], [["r"]], 'Who "pays"')
    assert "<caption><span>Who &quot;pays&quot;</span></caption>" in table
    assert 'role="region" tabindex="0" aria-label="Who &quot;pays&quot;"' in table
    assert "tabindex" not in html_table(["a"], [["r"]])


def test_long_names_may_break_between_their_words():
    assert name("MaxBillAmount_6") == "Max<wbr>Bill<wbr>Amount_<wbr>6"
    assert name("<b>") == "&lt;b&gt;"


def test_a_missing_stage_names_its_command():
    said = absent("Nothing.", "kedro run --pipeline=x")
    assert said.startswith('<p class="absent">Nothing. Make it with <code>')
    assert command("a <b>").count("&lt;b&gt;") == 1
