from __future__ import annotations

from countermove.reporting.retraining import policy_words, retraining_page

DECISION = {
    "version": "000002-x",
    "outcome": "kept",
    "champion_before": "000001-x",
    "champion_after": "000001-x",
    "facts": {
        "gates": [
            {"name": "improvement", "passed": False, "words": "p = 0.3 <script>"},
            {"name": "flip_rate", "passed": None, "words": "nothing to compare with"},
        ],
        "judgement": {
            "people": 1500,
            "accuracy": {
                "challenger": {"none": 0.7, "smooth_0.5": 0.81},
                "champion": {"none": 0.6, "smooth_0.5": 0.8},
            },
        },
        "batches": {
            "old": {"new": False, "rows": 7, "used": 7, "waiting_for_label": 0, "repeated": 0},
            "new": {"new": True, "rows": 60, "used": 50, "waiting_for_label": 6, "repeated": 4},
        },
        "outcomes": [
            {
                "batch": "new",
                "claim": "direct_upper",
                "forecast": 0.2,
                "error": 0.25,
                "held": False,
                "contradicted": False,
            }
        ],
    },
}


def test_the_page_says_what_was_decided_and_why():
    page = retraining_page(DECISION, {"recommendation": None, "reason": "too few people"})
    assert "The champion stays" in page
    assert "<strong>improvement</strong> refused: p = 0.3 &lt;script&gt;" in page
    assert "<strong>flip_rate</strong> does not apply" in page
    assert "smoothed step, temperature 0.5" in page
    assert "0.810" in page
    assert ">new</th>" in page
    assert ">old</th>" not in page
    assert "not held" in page
    assert "Not compared: too few people." in page
    assert "<script>" not in page


def test_the_page_says_who_was_judged():
    """New people are not called the hold-out."""
    drift = {"recommendation": None, "reason": "too few people"}
    assert "Judged on the 1,500 people of the hold-out." in retraining_page(DECISION, drift)
    policy = {"kind": "following", "reach": None, "discount": None, "evidence": None}
    facts = DECISION["facts"] | {"policy": policy, "drift": drift, "holdout": {"rows": 9}}
    assert "1,500 people with new labels" in retraining_page(DECISION | {"facts": facts}, drift)


def test_the_page_says_how_older_people_count():
    drift = {"recommendation": None, "reason": "too few people"}
    policy = {"kind": "following", "reach": None, "discount": 0.4, "evidence": None}
    facts = {"drift": drift, "holdout": {"rows": 9}, "judgement": DECISION["facts"]["judgement"]}
    plain, moved = (
        " ".join(policy_words(facts | {"policy": policy | more})) for more in ({}, {"trend": True})
    )
    assert "count 0.4 times as much (what" in plain
    assert "0.4 times as much, and the rule is moved on to the newest month" in moved


def test_a_first_champion_has_nothing_behind_it():
    first = DECISION | {"outcome": "promoted", "champion_before": None}
    first["facts"] = DECISION["facts"] | {"batches": {}, "outcomes": []}
    page = retraining_page(first, {"recommendation": None, "reason": "no rule"})
    assert "new champion" in page
    assert "made from the base table" in page
    assert "No outcome has arrived" in page


def test_every_text_of_a_decision_is_escaped():
    sly = "<script>alert(1)</script>"
    batch = DECISION["facts"]["batches"]["new"]
    outcome = DECISION["facts"]["outcomes"][0] | {"batch": sly, "claim": sly}
    gate = {"name": sly, "passed": True, "words": sly}
    facts = {"batches": {sly: batch}, "outcomes": [outcome], "gates": [gate]}
    decision = DECISION | {"version": sly, "champion_after": sly, "champion_before": sly}
    decision["facts"] = DECISION["facts"] | facts
    page = retraining_page(decision, {"recommendation": None, "reason": sly})
    assert "<script>" not in page


def test_the_numbers_are_those_of_the_decision():
    page = retraining_page(DECISION, {"recommendation": None, "reason": "too few people"})
    accuracy = DECISION["facts"]["judgement"]["accuracy"]
    for response in ("none", "smooth_0.5"):
        cells = [f'<td class="number">{accuracy[r][response]:.3f}</td>' for r in accuracy]
        assert "".join(cells) in page
    for count in (60, 50, 6, 4):
        assert f'<td class="number">{count}</td>' in page
    assert '<td class="number">0.200</td><td class="number">0.250</td>' in page
