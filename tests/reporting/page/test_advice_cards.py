"""Cards show real rows: small and large changes, and those for whom there is none."""

from dataclasses import replace

from countermove.reporting.page.advice_cards import advice_section, chosen_rows, steps_of


def test_cheapest_and_dearest_ways_back_and_proven_dead_ends_are_shown(advice):
    rows = dict(chosen_rows(advice))
    assert rows[2] == "the smallest change"
    assert rows[1] == "a large change"
    assert rows[3] == "no way back: proven"
    assert rows[4] == "no way back found"
    assert 0 not in rows


def test_steps_are_told_apart_only_when_they_are_as_many_as_the_changes():
    assert steps_of("Raise a; lower b.", 2) == ["Raise a", "Lower b"]
    assert steps_of("Raise a; b; c.", 2) == ["Raise a; b; c."]


def test_what_people_are_told_is_escaped_and_linked(bare, advice):
    body = advice_section(replace(bare, advice=advice)).body
    assert "<script>" not in body
    assert "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;" in body
    assert "<i>e</i>" not in body
    assert 'href="../../07_model_output/tiny/advice.csv#row=4"' in body
    assert "&lt;loans&gt;" in body


def test_nobody_refused_needs_no_cards(bare, advice):
    body = advice_section(replace(bare, advice=advice[:1])).body
    assert "Nobody in the test rows is refused" in body
