"""The page of a bare run: every section, every missing stage, nothing that could run."""

import copy
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from countermove.people import ActionSet
from countermove.reporting.page import SECTIONS, report_page
from countermove.response import BestResponse, NoResponse, Population

MISSING = {
    "moves": "--pipeline=evaluation",
    "people": "--pipeline=recourse",
    "tradeoffs": "--pipeline=paper",
    "promise": "--pipeline=recourse",
    "advice": "--pipeline=recourse",
    "deployment": "--pipeline=evaluation",
    "beyond": "--pipeline=lookahead",
    "history": "--pipeline=training",
    "facts": "--pipeline=reporting",
}


def text_of(html):
    """Return what a reader sees: without tags, spaces and line breaks as one space."""
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", "", html))


def test_headline_says_who_is_right_more_often(bare):
    words = text_of(SECTIONS[1].body(bare))
    assert "right for 88.0\u202f% of them, 38.0 points more often than the blind rule" in words
    assert "Loses 40.0 points" in words
    assert "Gains 18.0 points" in words
    assert "1,234 test rows" in words


@pytest.mark.parametrize(
    ("blind", "words"), [(0.95, "7.0 points less often than"), (0.88, "as often as")]
)
def test_headline_admits_defeat(bare, blind, words):
    metrics = copy.deepcopy(bare.metrics)
    metrics["accuracy"]["after_response"]["blind"] = blind
    assert words in text_of(SECTIONS[1].body(replace(bare, metrics=metrics)))


def test_headline_says_who_is_assumed_to_move(bare):
    people = Population(
        [BestResponse(actions=ActionSet(immutable=[1])), NoResponse()],
        [0.75, 0.25],
        never=0.3,
        log_sd=0.5,
        log_price=[0.0, 0.2],
    )
    metrics = bare.metrics | {"response": people.describe()}
    text = text_of(report_page(replace(bare, metrics=metrics)))
    assert "respond by people who differ" in text
    wanted = (
        "Of the people assumed: 30.0 % never move; two thirds of the others pay between 0.61 and "
        "1.65 times the median price; 75.0 % of the others: best response; 25.0 % of the others: "
        "nobody moves; the price depends on where people stand."
    )
    assert wanted in text.replace("\u202f", " ")
    assert "Of the people assumed" not in text_of(report_page(bare))


def test_every_missing_stage_leaves_a_sentence_with_its_command(bare):
    found = {section.anchor: section.body(bare) for section in SECTIONS}
    for anchor, command in MISSING.items():
        body = found[anchor]
        assert 'class="absent"' in body, anchor
        assert command in text_of(body), anchor
    assert text_of(found["beyond"]).count("Make it with") == 3


def test_the_commands_named_are_pipelines_that_exist(bare):
    from countermove.pipeline_registry import register_pipelines

    named = set(re.findall(r"--pipeline=(\w+)", text_of(report_page(bare).split("</main>")[0])))
    assert named
    assert named <= set(register_pipelines())


def test_page_has_landmarks_headings_in_order_and_contents(bare):
    page = report_page(bare)
    head, body = page.split("</main>")[0], page.split("</main>")[1]
    for landmark in (
        "<header>",
        "<nav aria-label=",
        '<main id="main"',
        'class="skip" href="#main"',
    ):
        assert landmark in head
    assert "<footer>" in body
    levels = [int(level) for level in re.findall(r"<h([1-6])", head)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for anchor in re.findall(r'<li><a href="#([\w-]+)">', head):
        assert f'<section id="{anchor}"' in head
    names = re.findall(r' id="([^"]+)"', head)
    assert len(names) == len(set(names))


def test_page_carries_its_script_once_and_asks_nothing_of_the_network(bare):
    page = report_page(bare)
    assert page.count("* plotly.js (cartesian - minified) v") == 1
    assert len(page.encode()) < 2_000_000
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|img|link|iframe)[^>]+(src|href)=", page.split("<footer>")[0])


def test_names_from_the_data_are_escaped(bare):
    metrics = copy.deepcopy(bare.metrics) | {"dataset": "<script>alert(1)</script>"}
    page = report_page(replace(bare, metrics=metrics)).split("<footer>")[0]
    assert "<script>alert" not in page
    assert "<b>m" not in page


def test_a_page_is_the_same_each_time(bare):
    assert report_page(bare) == report_page(bare)
