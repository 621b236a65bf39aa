"""Numbers, responses and outcomes as people read them."""

import pytest

from countermove.reporting.words import (
    accuracy_rows,
    called,
    left_out_lines,
    promise_line,
    share,
    summary_lines,
)

METRICS = {
    "dataset": "tiny",
    "accuracy": {
        "nobody_moves": {"blind": 0.9, "strategic": 0.7},
        "after_response": {"blind": 0.5, "strategic": 0.88},
        "sensitivity": {
            "none": {"blind": 0.9, "strategic": 0.7},
            "best": {"blind": 0.5, "strategic": 0.88},
            "smooth_0.5": {"blind": 0.6, "strategic": 0.81},
        },
        "uncalibrated": {"strategic": 0.89},
    },
    "threshold": 0.45,
    "response": {"kind": "best"},
    "rows": {"test": 1234},
    "seed": 7,
    "versions": {"countermove": "0.1.0"},
    "data_hash": "a" * 64,
}


def test_stated_response_comes_second_and_only_once():
    names = [name for name, *_ in accuracy_rows(METRICS)]
    assert names == [
        "nobody moves",
        "best response (trained for)",
        "smoothed step, temperature 0.5",
    ]


def test_summary_columns_line_up():
    lines = summary_lines(METRICS)
    assert len({len(line) for line in lines}) == 1
    assert lines[2].endswith("0.500      0.880")


def test_promise_that_gave_way_says_what_was_asked():
    facts = {
        "led_by": "promise",
        "certificate": {"words": "at least 75 %"},
        "terms": {"miss_rate": 0.05, "largest_loss": 0.02, "measure": "accuracy"},
    }
    assert promise_line(facts) == "at least 75 %"
    line = promise_line(facts | {"led_by": "performance"})
    assert line.endswith("(0.95 was asked, and would have cost more than 0.02 of accuracy)")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ("best", "best response"),
        ("smooth_0.5", "smoothed step, temperature 0.5"),
        ("published", "as the SERM paper simulates"),
        ("population", "people who differ"),
        ("population_2", "people who differ, member 2"),
    ],
)
def test_a_response_is_named_in_words_with_its_temperature(response, words):
    assert called(response) == words


def test_what_was_not_evaluated_is_listed_once_per_reason():
    left = {"smooth_0.5": "too slow", "conic": "too slow", "best": "no cost"}
    lines = left_out_lines({"not_evaluated": left})
    assert lines == ["smoothed step, temperature 0.5; conic: too slow", "best response: no cost"]
    assert left_out_lines({}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.8066, "80.7\u202f%"), (-0.012, "−1.2\u202f%"), (None, "–"), (1.0, "100.0\u202f%")],
)
def test_a_share_is_written_in_per_cent_with_a_true_minus_sign(value, text):
    assert share(value) == text
