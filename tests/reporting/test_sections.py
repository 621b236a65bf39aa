"""Each section says what its document holds, and draws it."""

import copy
import json
import re
from dataclasses import replace
from html import unescape
from urllib.parse import unquote

import pandas as pd
import pytest

from countermove.reporting.page import SECTIONS


def text_of(html):
    """Return what a reader sees: without tags, spaces and line breaks as one space."""
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", "", html))


def body(anchor, found):
    """Return the HTML of one section."""
    (section,) = [one for one in SECTIONS if one.anchor == anchor]
    return section.body(found)


def figures(html):
    found = re.findall(r'class="plot-data">(.*?)</script>', html)
    return [json.loads(spec) for spec in found]


def record(epoch, accuracy):
    return {
        "epoch": epoch,
        "train_loss": 1.0 / (1 + epoch),
        "validation_loss": 2.0 / (1 + epoch),
        "validation_accuracy": accuracy,
        "seconds": 0.1,
    }


HISTORY = {
    rule: {"records": [record(i, 0.5 + 0.1 * i) for i in range(n)], "best_epoch": n - 1}
    | {"stopped_early": n == 3}
    for rule, n in (("blind", 3), ("strategic", 4))
}


def test_history_names_the_epoch_that_was_kept_and_draws_every_one(bare):
    html = body("history", replace(bare, history=HISTORY))
    assert "Blind rule: epoch 2 of 2 kept, right for 70.0\u202f%" in text_of(html)
    assert "Strategic rule: epoch 3 of 3 kept" in text_of(html)
    accuracy, loss = figures(html)
    assert [len(line["x"]) for line in accuracy["data"][:2]] == [3, 4]
    assert len(loss["data"]) == 4
    assert 'href="training_history.json#/strategic/records/3/validation_accuracy"' in html


def entry(scale, accuracy):
    moved = {"who": [1], "x": [0.0], "y": [0.4]} if scale == 1.0 else {"who": [], "x": [], "y": []}
    cost = 0.5 if moved["who"] else None
    facts = {"scale": scale, "share_moved": 0.5 if cost else 0.0, "mean_cost": cost}
    return facts | {"approved": 0.9, "accuracy": accuracy} | moved


MAP = {
    "dataset": "tiny",
    "response": "best",
    "cost": {"kind": "quadratic"},
    "rows": {"test": 2, "measured": 2, "shown": 2},
    "projection": "linear",
    "boundaries": {"strategic": [1.0, 0.0, 0.0], "blind": [0.3, 1.0, 0.2]},
    "people": {"row_id": ["</script>", "b"], "label": [1.0, -1.0], "x": [1.0, -2.0], "y": [0, 1]},
    "rules": {
        "strategic": [entry(1.0, 0.8), entry(2.0, 0.7)],
        "blind": [entry(1.0, 0.6), entry(2.0, 0.65)],
    },
}


def test_the_map_has_a_native_slider_and_numbers_before_any_script_runs(bare):
    html = body("moves", replace(bare, move_map=MAP))
    assert re.search(r'<input type="range" id="map-scale" min="0" max="1" step="1" value="0"', html)
    assert '<label class="top" for="map-scale">' in html
    assert 'role="status" aria-live="polite"' in html
    assert "50.0\u202f% of people move, at a mean cost of 0.500" in text_of(html)
    assert 'href="move_map.json#/rules/blind/1/accuracy"' in html


def test_data_for_the_script_cannot_end_its_element(bare):
    html = body("moves", replace(bare, move_map=MAP))
    held = re.search(r'class="map-data">(.*?)</script>', html).group(1)
    assert json.loads(held)["people"]["row_id"][0] == "</script>"


def test_the_frame_holds_everybody_and_the_boundary(bare):
    def frame(facts):
        html = body("moves", replace(bare, move_map=facts))
        held = re.search(r'class="map-data">(.*?)</script>', html).group(1)
        return json.loads(held)["range"]["x"]

    low, high = frame(MAP)
    assert low < -2.0
    assert high > 1.0
    behind = MAP | {"people": MAP["people"] | {"x": [-3.0, -2.0]}}
    assert frame(behind)[1] > 0.0


@pytest.mark.parametrize("kind", ["linear", "parallel", "scores", "shifted"])
def test_the_axes_are_given_in_words(bare, kind):
    html = body("moves", replace(bare, move_map=MAP | {"projection": kind}))
    assert "the wrong side" in text_of(html)


def test_a_map_of_some_people_says_whose_numbers_it_shows(bare):
    few = MAP | {"rows": {"test": 50, "measured": 2, "shown": 2}}
    html = text_of(body("moves", replace(bare, move_map=few)))
    assert "those of the 2 people drawn alone" in html


def test_groups_are_drawn_with_every_measure_and_listed(bare):
    html = body("people", bare)
    (spec,) = figures(html)
    assert len(spec["data"]) == 6
    assert spec["data"][0]["x"] == [0.4, 0.4]
    assert 'href="metrics.json#/social/by_group/Sex/f/calibrated/burden"' in html
    assert "&lt;b&gt;m" in html


def test_a_table_without_groups_says_so(bare):
    metrics = bare.metrics | {"social": bare.metrics["social"] | {"by_group": {}}}
    html = body("people", replace(bare, metrics=metrics))
    assert "No column of the table is marked sensitive" in html


FRONTIER = pd.DataFrame(
    {
        "threshold": [0.1, 0.3, 0.5],
        "miss_bound": [0.01, 0.02, 0.2],
        "accuracy": [0.7, 0.75, 0.8],
        "approved": [0.9, 0.8, 0.7],
    }
)
CALIBRATION = {
    "threshold": 0.3,
    "led_by": "promise",
    "terms": {"miss_rate": 0.05, "largest_loss": 0.02, "measure": "accuracy"},
    "certificate": {"words": "at least 95 % <all>", "n": 100},
}


def test_the_frontier_marks_the_threshold_chosen(bare):
    found = replace(bare, frontier=FRONTIER, calibration=CALIBRATION)
    html = body("tradeoffs", found)
    (spec,) = figures(html)
    assert spec["data"][0]["y"] == [0.99, 0.98, 0.8]
    assert spec["data"][-1]["x"] == [0.3, 0.3]
    assert spec["data"][-1]["y"] == [0.98, 0.75]
    assert "the threshold chosen is 0.300, with an accuracy of 75.0\u202f%" in text_of(html)
    assert 'href="recourse_frontier.csv#row=3"' in html


def points(dataset):
    rows = {"dataset": dataset, "split": 0, "response": "best", "training": "usual"}
    measured = {"test_accuracy": 0.8, "test_burden": 0.3, "test_recourse_all": float("nan")}
    return [rows | measured | {"strength": s, "chosen": s > 0} for s in (0.0, 0.1)]


def test_curves_are_those_of_this_table_alone(bare):
    table = pd.DataFrame(points("other") + points("tiny"))
    html = body("tradeoffs", replace(bare, tradeoff=table))
    burden, approved = figures(html)
    assert burden["data"][0]["x"] == [0.8, 0.8]
    assert approved["data"][0]["y"] == [None, None]
    assert 'href="../tradeoff/points.csv#row=4"' in html
    assert 'href="../tradeoff/points.csv#row=2"' not in html
    others = body("tradeoffs", replace(bare, tradeoff=pd.DataFrame(points("other"))))
    assert "paper.experiment.datasets=[tiny]" in text_of(others)


def test_the_promise_is_given_in_words_and_every_claim_with_its_level(bare):
    claim = bare.certificates[0]
    withdrawn = claim | {"value": None, "reason": "too few <rows>"}
    group = claim | {"name": "recourse_miss_rate[Sex=1]"}
    found = replace(bare, calibration=CALIBRATION, certificates=[claim, withdrawn, group])
    html = body("promise", found)
    assert "At least 95 % &lt;all&gt;." in html
    assert "not promised: too few &lt;rows&gt;" in html
    assert "(Sex=1)" in html
    assert "at most 0.050" in text_of(html)
    assert 'href="certificates.json#/2/level"' in html


def test_what_claims_assume_is_listed_once(bare):
    assumption = {"statement": "rows are draws", "supported": None, "evidence": ""}
    claim = bare.certificates[0] | {"assumptions": [assumption]}
    html = body("promise", replace(bare, certificates=[claim, claim]))
    assert html.count("rows are draws (not tested here)") == 1


SHEET = {
    "name": "tiny",
    "description": "made up",
    "source": "file",
    "terms": None,
    "rows": 4,
    "favourable_share": 0.75,
    "label": {"column": "good", "favourable": 1},
    "sensitive": [],
    "schema_digest": "b" * 64,
    "columns": [
        {"name": "income", "kind": "numeric", "change": "up", "unit": "EUR"}
        | {"lowest": 1.0, "median": 2500.0, "highest": 9.0},
        {"name": "school", "kind": "ordered", "change": "immutable", "unit": ""}
        | {"values": {"none": 3, "some": 1}},
    ],
}


AUDIT = {
    "recourse": {
        "refused": 4,
        "recourse_neg": {"count": 3, "value": 0.75},
        "within_ceiling": {"value": 0.5},
        "mean_cost": 1.25,
        "features_touched": 2.5,
    },
    "groups": {
        "Sex": [
            {"group": "f", "refused": 3, "recourse_neg": {"value": 1.0}, "mean_cost": 1.5},
            {"group": "<script>", "refused": 1, "recourse_neg": {"value": 0.0}, "mean_cost": None},
        ]
    },
}
LOOKAHEAD = {
    "experiment": {"kind": "figure_1"},
    "people": 240,
    "results": [{"mixture": "<all>", "round": 0, "gap": None}],
}
COLLECTIVE = {
    "query": {"start": "2", "goal": "1"},
    "least_budget": {"individual": None, "collective": 7.5},
    "side_effects": {"changed": 0.035},
}
POPULATION = {"people": 10, "rules": {"blind": {"accuracy": 0.5}}, "words": "left out"}


@pytest.fixture
def whole(bare, advice):
    """A run of which every stage is left, but for the error after deployment."""
    return replace(
        bare,
        calibration=CALIBRATION,
        frontier=FRONTIER,
        audit=AUDIT,
        advice=advice,
        move_map=MAP,
        history=HISTORY,
        sheet=SHEET,
        tradeoff=pd.DataFrame(points("tiny")),
        lookahead=LOOKAHEAD,
        collective=COLLECTIVE,
        population=POPULATION,
    )


def documents(found):
    """Return what the links of a page lead to, by file."""
    output = "../../07_model_output/tiny"
    return {
        "metrics.json": found.metrics,
        "certificates.json": found.certificates,
        f"{output}/recourse_calibration.json": found.calibration,
        "recourse_frontier.csv": found.frontier,
        "recourse_audit.json": found.audit,
        f"{output}/advice.csv": found.advice,
        "move_map.json": found.move_map,
        "training_history.json": found.history,
        "table_sheet.json": found.sheet,
        "../tradeoff/points.csv": found.tradeoff,
        "lookahead.json": found.lookahead,
        "collective.json": found.collective,
        "population.json": found.population,
    }


LINK = re.compile(r'class="cited" href="([^"]*)" title="([^"]*)">([^<]*)</a>')
FILES = {
    "headline": {"metrics.json"},
    "moves": {"move_map.json"},
    "people": {"metrics.json", "recourse_audit.json"},
    "tradeoffs": {"recourse_frontier.csv", "../tradeoff/points.csv"},
    "promise": {"certificates.json", "../../07_model_output/tiny/recourse_calibration.json"},
    "advice": {"../../07_model_output/tiny/advice.csv"},
    "beyond": {"lookahead.json", "collective.json", "population.json"},
    "history": {"training_history.json"},
    "facts": {"metrics.json", "table_sheet.json"},
}


@pytest.mark.parametrize("anchor", FILES)
def test_every_number_of_a_section_is_the_one_its_link_leads_to(whole, anchor):
    kept, files, compared = documents(whole), set(), 0
    for parts in LINK.findall(body(anchor, whole)):
        address, title, text = (unescape(part) for part in parts)
        file, _, fragment = address.partition("#")
        files.add(file)
        if file.endswith(".csv"):
            value = kept[file][title.rpartition(", ")[2]].iloc[int(fragment[4:]) - 2]
        else:
            value = kept[file]
            for token in unquote(fragment).split("/")[1:]:
                key = token.replace("~1", "/").replace("~0", "~")
                value = value[int(key)] if isinstance(value, list) else value[key]
        plain = text.replace(",", "").replace("−", "-")
        shown = re.fullmatch(r"(-?\d+(?:\.\d+)?)(\u202f%)?", plain)
        if shown and not isinstance(value, str):
            digits = len(shown[1].partition(".")[2])
            factor = 0.01 if shown[2] else 1.0
            assert value == pytest.approx(factor * float(shown[1]), abs=0.51 * factor / 10**digits)
            compared += 1
    assert files == FILES[anchor]
    assert compared


@pytest.mark.parametrize("anchor", FILES)
def test_a_whole_run_has_no_section_with_a_sentence_in_its_place(whole, anchor):
    assert 'class="absent"' not in body(anchor, whole)


@pytest.mark.parametrize("anchor", FILES)
def test_no_text_of_the_data_can_run_in_a_section(whole, anchor):
    sly = "<script>alert(1)</script>"
    metrics = copy.deepcopy(whole.metrics) | {"dataset": sly, "not_evaluated": {sly: sly}}
    by_group = metrics["social"]["by_group"]
    by_group[sly] = {sly: by_group["Sex"]["f"]}
    claim = whole.certificates[0] | {"name": f"recourse_miss_rate[{sly}]"}
    claim["assumptions"] = [{"statement": sly, "supported": None, "evidence": ""}]
    column = {"name": sly, "kind": sly, "change": "up", "unit": sly, "values": {sly: 1}}
    found = replace(
        whole,
        metrics=metrics,
        certificates=[claim, claim | {"value": None, "reason": sly}],
        calibration=CALIBRATION | {"certificate": {"words": sly, "n": 1}},
        audit=AUDIT | {"groups": {sly: AUDIT["groups"]["Sex"]}},
        advice=whole.advice.assign(row_id=sly, words=sly),
        move_map=MAP | {"people": MAP["people"] | {"row_id": [sly, sly]}},
        sheet=SHEET | {"description": sly, "terms": sly, "sensitive": [sly], "columns": [column]}
        | {"label": {"column": sly, "favourable": sly}, "schema_digest": sly},
        lookahead=LOOKAHEAD | {"results": [{sly: sly}], "experiment": {"kind": sly}},
        collective=COLLECTIVE | {"query": {"start": sly, "goal": sly}},
        population={sly: 1},
    )  # fmt: skip
    html = body(anchor, found)
    assert "<script>" not in html.replace('<script type="application/json"', "")
    if anchor not in ("headline", "tradeoffs", "history"):
        assert "script&gt;" in html or "\\u003cscript" in html


def test_recourse_by_group_is_the_audits(whole):
    html = text_of(body("people", whole))
    assert "of 4 people refused where they stand, 3 have one (75.0\u202f%; within the" in html
    assert "mean cost of 1.250 and touching 2.5 columns" in html


def test_the_data_sheet_and_the_run_are_shown(bare):
    html = text_of(body("facts", replace(bare, sheet=SHEET)))
    for words in ("75.0\u202f%", "may rise", "nobody can change it", "2,500", "brought by you"):
        assert words in html
    assert "not on record" in html
    for words in ("a" * 64, "b" * 64, "countermove 0.1.0", "quadratic, scale 1"):
        assert words in html
    assert "docs/data" not in html
    known = text_of(body("facts", replace(bare, sheet=SHEET | {"terms": "CC0"})))
    assert "docs/data/tiny.md" in known


def test_further_pipelines_are_shown_where_they_ran(bare):
    found = replace(bare, lookahead=LOOKAHEAD, collective=COLLECTIVE, population=POPULATION)
    html = body("beyond", found)
    assert "absent" not in html
    assert "&lt;all&gt;" in html
    assert "takes a budget of none found; with the help of others, 7.5" in text_of(html)
    assert 'href="population.json#/rules/blind/accuracy"' in html


def test_cheapest_and_most_expensive_recourse_and_proven_dead_ends_are_shown(bare, advice):
    html = body("advice", replace(bare, advice=advice))
    cards = re.findall(r"<h3>Person (.*?): (.*?)</h3>", html)
    assert cards == [
        ("c", "the smallest change"),
        ("b", "a large change"),
        ("d", "no recourse: proven"),
        ("&lt;i&gt;e&lt;/i&gt;", "no recourse found"),
    ]


@pytest.mark.parametrize(
    ("words", "changes", "steps"),
    [
        ("Raise a; lower b.", 2, ["Raise a", "Lower b"]),
        ("Raise a; b; c.", 2, ["Raise a; b; c."]),
        # One step of a path stands for several columns; what time does is a sentence of its own.
        (
            "Raise a; pay on time for 3 more months. Months pass.",
            3,
            ["Raise a", "Pay on time for 3 more months", "Months pass"],
        ),
    ],
)
def test_steps_are_separated_only_when_they_are_as_many_as_the_changes(
    bare, advice, words, changes, steps
):
    moves = {f"change:{j}": float(j < changes) for j in range(3)}
    one = advice.iloc[[1]].drop(columns=["change:income", "change:loans"])
    html = body("advice", replace(bare, advice=one.assign(words=words, **moves)))
    items = re.findall(r"<li>(.*?)</li>", html)
    assert [unescape(text_of(item)) for item in items] == steps


def test_gaming_and_sensitive_reasons_are_on_the_page_where_they_are_declared(whole):
    games = {"count": 3, "n": 30, "value": 0.1, "low": 0.02, "high": 0.27, "level": 0.95}
    declared = {
        "declared": {"yes": [], "no": ["a"], "unknown": []},
        "only_games": games,
        "extra_cost": {"people": 7, "mean": 0.5, "median": 0.25},
    }
    error = "column 'age' is declared sensitive and is a main reason"
    found = replace(whole, audit=AUDIT | {"causal": declared, "errors": [error]})
    said = text_of(body("people", found))
    assert "10.0\u202f% of the advice only games" in said
    assert "changed the advice of 7 people, at a median extra cost of 0.250" in said
    assert f"Error: {error}." in said.replace("&#39;", "'")
    assert "games" not in text_of(body("people", whole))


def test_cards_say_why_people_were_refused(bare, advice):
    reasons = ["Main reasons: debt (9 EUR)."] * len(advice)
    html = body("advice", replace(bare, advice=advice.assign(reasons=reasons)))
    assert "Main reasons: debt (9 EUR)." in text_of(html)


def test_advice_is_escaped_and_linked(bare, advice):
    html = body("advice", replace(bare, advice=advice))
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;" in html
    assert "<i>e</i>" not in html
    assert 'href="../../07_model_output/tiny/advice.csv#row=4"' in html
    assert "&lt;loans&gt;" in html


def test_nobody_refused_needs_no_cards(bare, advice):
    html = body("advice", replace(bare, advice=advice[:1]))
    assert "Nobody in the test rows is refused" in html
