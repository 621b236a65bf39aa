"""The interval plot and its section say what the report holds."""

import copy
import re

import pytest

from countermove.reporting.page import SECTIONS, Findings
from countermove.reporting.transfer import QUANTITIES, line_names, transfer_figure, worst_bounds


def interval(value):
    return {"value": value, "low": value - 0.02, "high": value + 0.02}


def after(values):
    return {
        "predicted": dict(zip(("best", "smooth_0.5", "none"), map(interval, values), strict=True)),
        "best_threshold": {"best": {"loss": {"words": "no detectable difference"}}},
        "worst_response": "best",
    }


def entry(name, value, kind="certificate", **more):
    bound = {
        "name": name,
        "value": value,
        "kind": kind,
        "applicable": value is not None,
        "direction": "lower" if "lower" in name else "upper",
        "reference": "Theorem 3.1",
        "reason": "" if value is not None else "not applicable: people <left>",
        "model": "blind",
        "response": "best",
        "labels": "kept",
    }
    return bound | more


REPORT = {
    "dataset": "tiny",
    "responses": ["best", "smooth_0.5", "none"],
    "stated": ["best"],
    "terms": {"labels": ["kept", "follow"], "failure_probability": 0.05},
    "rows": {"chosen_on": 100, "judged_on": 1200},
    "models": {
        "blind": {"source": interval(0.2), "kept": after((0.3, 0.25, 0.2)),
                  "follow": after((0.22, 0.21, 0.2))},
    },
    "bounds": [
        entry("theorem_3_1", 0.7), entry("theorem_3_1", 0.6, "estimate"),
        entry("theorem_3_2", 1.2), entry("theorem_4_2", None),
        *(entry(f"worst_case_direct_{side}", value, response="worst case", labels=labels)
          for labels in ("kept", "follow") for side, value in (("lower", 0.17), ("upper", 0.34))),
    ],
}  # fmt: skip


def section(report):
    """Return the report's section on deployment; its whitespace is that of a reader."""
    (deployment,) = [one for one in SECTIONS if one.anchor == "deployment"]
    found = Findings({"dataset": "tiny"}, [], transfer=report)
    return re.sub(r"[ \n]+", " ", deployment.body(found))


def test_lines_name_the_response_trained_for_and_leave_out_nobody_moves():
    assert line_names(REPORT) == [
        "any of these, or nobody moves",
        "after: smoothed step, temperature 0.5",
        "after: best response (assumed)",
        "before deployment",
    ]


def test_figure_draws_every_interval():
    figure = transfer_figure(REPORT)
    before, kept, follow = figure.data
    assert list(before.x) == [0.2]
    assert list(kept.x) == [0.25, 0.3, 0.3]
    assert [round(v, 3) for v in kept.error_x.array] == [0.02, 0.02, 0.04]
    assert [round(v, 3) for v in kept.error_x.arrayminus] == [0.02, 0.02, 0.13]
    assert len(follow.x) == 3
    assert figure.layout.xaxis.range[1] == pytest.approx(1.15 * 0.34)
    assert worst_bounds(REPORT, "blind", "kept") == (0.17, 0.34)


def test_without_a_report_the_figure_says_how_to_make_it():
    (words,) = transfer_figure(None).layout.annotations
    assert "kedro run --pipeline=evaluation" in words.text


def test_one_reading_of_labels_stands_on_its_line():
    alone = copy.deepcopy(REPORT)
    alone["terms"]["labels"] = ["kept"]
    assert list(transfer_figure(alone).data[1].y) == [1.0, 2.0, 0.0]


def test_section_shows_numbers_and_reasons_and_escapes():
    page = section(REPORT)
    words = re.sub("<[^>]*>", "", page)
    for shown in ("0.300 (0.280 to 0.320)", "no detectable difference", "0.340", "0.700", "1,200"):
        assert shown in words
    assert "says nothing" in words
    assert "people &lt;left&gt;" in page


def test_several_assumed_responses_are_named():
    several = copy.deepcopy(REPORT) | {"stated": ["best", "smooth_0.5"]}
    for labels in ("kept", "follow"):
        best = several["models"]["blind"][labels]["best_threshold"]
        best["smooth_0.5"] = best["best"]
    page = section(several)
    assert "blind, smoothed step, temperature 0.5, moving changes no label" in page


def test_every_theorem_has_words():
    from countermove.transfer.bounds import Setting, all_bounds, choose
    from countermove.transfer.sample import Pair, Sample

    people = Sample([-1.0, 1.0, -2.0, 2.0], [-1.0, 1.0, 1.0, -1.0])
    pair = Pair(people, people, "follow", paired=True)
    found = {claim.name for claim in all_bounds(Setting(pair, pair, choose(pair, pair, 0.0)))}
    assert found == set(QUANTITIES)
