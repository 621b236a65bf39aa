"""What a person reads: every number of the metrics, nothing that could run."""

import copy

import pytest

from countermove.reporting.figures import accuracy_figure
from countermove.reporting.page import report_page
from countermove.reporting.tables import accuracy_rows, promise_line, summary_lines

SOCIAL = {
    "utility": 0.1,
    "burden": 0.4,
    "burden_unscaled": 0.4,
    "recourse": None,
    "recourse_all": 0.6,
    "deserving_cut_off": 3,
}
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
    "social": SOCIAL
    | {
        "by_model": dict.fromkeys(("blind", "strategic", "calibrated"), SOCIAL),
        "by_group": {},
    },
    "threshold": 0.45,
    "response": {"kind": "best"},
    "rows": {"test": 1234},
    "seed": 7,
    "versions": {"countermove": "0.1.0"},
    "data_hash": "a" * 64,
}
CERTIFICATES = [
    {"name": "recourse_miss_rate", "direction": "upper", "value": 0.05, "level": 0.95, "n": 100}
]


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


def test_page_shows_every_accuracy_and_certificate():
    page = report_page(METRICS, CERTIFICATES, accuracy_figure(METRICS))
    for shown in ("0.880", "0.810", "at most 0.050", "95%", "1,234", "nobody"):
        assert shown in page


def test_promise_that_gave_way_says_what_was_asked():
    facts = {
        "led_by": "promise",
        "certificate": {"words": "at least 75 %"},
        "terms": {"miss_rate": 0.05, "largest_loss": 0.02, "measure": "accuracy"},
    }
    assert promise_line(facts) == "at least 75 %"
    line = promise_line(facts | {"led_by": "performance"})
    assert line.endswith("(0.95 was asked, and would have cost more than 0.02 of accuracy)")


def test_withdrawn_and_group_promises_say_so():
    claim = CERTIFICATES[0]
    withdrawn = claim | {"value": None, "reason": "too few <rows>"}
    group = claim | {"name": "recourse_miss_rate[Sex=1]"}
    page = report_page(METRICS, [withdrawn, group], accuracy_figure(METRICS))
    assert "not promised: too few &lt;rows&gt;" in page
    assert "(Sex=1)" in page


def test_page_needs_no_network():
    page = report_page(METRICS, CERTIFICATES, accuracy_figure(METRICS))
    assert 'src="http' not in page
    assert "<link" not in page


def test_names_are_escaped():
    spoilt = copy.deepcopy(METRICS) | {"dataset": "<script>alert(1)</script>"}
    assert "<h1>Countermove: <script>" not in report_page(spoilt, [], accuracy_figure(METRICS))


@pytest.mark.parametrize("place", [0, 1])
def test_figure_draws_the_table(place):
    bars = accuracy_figure(METRICS).data[place]
    assert list(bars.y) == [row[1 + place] for row in accuracy_rows(METRICS)]
