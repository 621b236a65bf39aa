"""The transfer report: what a user calls, and what a run writes."""

import json

import numpy as np
import pytest
import torch

from countermove.data.synthetic import GaussianPopulation
from countermove.errors import NotEnoughRowsError, ParameterError, UnknownNameError
from countermove.people import QuadraticCost
from countermove.response import BestResponse, NoResponse, RobustResponse, ScalarResponse
from countermove.scores import LinearScore
from countermove.transfer import TransferTerms, fit_chances, transfer_report

POPULATION = GaussianPopulation(centre=(1.0, 0.5))
RESPONSES = {
    "best": BestResponse(QuadraticCost(2.0)),
    "smooth_0.5": ScalarResponse(QuadraticCost(2.0)),
    "none": NoResponse(),
}
TERMS = TransferTerms(thresholds=6)


@pytest.fixture(scope="module")
def rules():
    weights, bias = POPULATION.best_rule()
    made = {}
    for name, raised in (("blind", 0.0), ("strategic", 2.0)):
        made[name] = LinearScore(2)
        with torch.no_grad():
            made[name].weight.copy_(torch.from_numpy(weights))
            made[name].bias.fill_(bias - raised)
    return made


@pytest.fixture(scope="module")
def people():
    return [POPULATION.sample(n, seed) for n, seed in ((1500, 1), (1500, 2), (3000, 3))]


@pytest.fixture(scope="module")
def report(rules, people):
    chosen, judged, made = people
    return transfer_report(
        rules, chosen, judged, RESPONSES, chances=fit_chances(*made), terms=TERMS
    )


def test_report_is_json_with_the_promised_keys(report):
    written = json.loads(json.dumps(report.to_json(), allow_nan=False))
    keys = {"name", "value", "kind", "applicable", "level", "n", "assumptions", "reference"}
    assert all(keys <= set(entry) for entry in written["bounds"])
    assert {entry["model"] for entry in written["bounds"]} == {"blind", "strategic"}
    assert written["rows"] == {"chosen_on": 1500, "judged_on": 1500}
    assert written["stated"] == ["best"]
    assert written["label_model"]["supported"] is None
    assert "not refuted" in written["label_model"]["evidence"]


def test_the_report_begins_with_the_verdict(report, rules, people):
    """Error before, expected after, at most after, loss: as the facts and certificates say."""
    written = report.to_json()
    assert next(iter(written)) == "verdict"
    said = written["verdict"]
    for rule in rules:
        facts, told = report.models[rule], said["rules"][rule]
        assert told["error_before"]["value"] == facts["source"]["value"]
        assert told["expected_after"]["high"] == facts["kept"]["predicted"]["best"]["high"]
        direct = [
            e["value"] for e in report.bounds
            if (e["name"], e["kind"], e["model"], e["labels"], e["response"])
            == ("direct_upper", "certificate", rule, "kept", "best")
        ]  # fmt: skip
        assert [told["at_most_after"]["value"]] == direct
        loss = facts["kept"]["best_threshold"]["best"]["loss"]
        assert told["loss_to_best_threshold"]["value"] == loss["value"]
        for part in told.values():
            assert isinstance(part, str) or part["level"] == 0.95
    at_best = [said["rules"][rule]["at_best_threshold"]["value"] for rule in rules]
    shown = [f"{100 * value:.1f} %" for value in at_best]
    words = f"the blind rule would err {shown[0]}, the strategic one {shown[1]}"
    assert words in said["words"]
    saved = said["saved_at_best_threshold"]
    assert saved["value"] == pytest.approx(at_best[0] - at_best[1])
    assert saved["low"] <= saved["value"] <= saved["high"]


def test_bounds_stand_by_whether_they_say_something(report):
    order = [entry["says"] for entry in report.bounds]
    assert order == sorted(order, key=("something", "nothing", "not applicable").index)
    assert set(order) == {"something", "nothing", "not applicable"}
    for entry in report.bounds:
        assert entry["words"], entry["name"]
        assert (entry["says"] == "not applicable") == (not entry["applicable"])
        if entry["says"] == "nothing":
            assert entry["value"] >= 1.0 if entry["direction"] == "upper" else entry["value"] <= 0


def test_section_5_is_withheld_where_people_move(report):
    """Best and smooth responders move features; their shift is measured and printed."""
    fives = [e for e in report.bounds if e["name"].startswith(("theorem_5", "proposition_5"))]
    assert fives
    for entry in fives:
        assert entry["value"] is None
        assert "the response moves the features of" in entry["reason"]
        assert " 0.000 apart" not in entry["reason"]


def test_predicted_errors_are_those_of_the_population(report):
    """Best responders of cost 2 reach 1: the rule faces its bias plus the weights' norm."""
    weights, bias = POPULATION.best_rule()
    reach = np.linalg.norm(weights) * (2.0 / 2.0) ** 0.5
    for rule, raised in (("blind", 0.0), ("strategic", 2.0)):
        facts = report.models[rule]
        before = 1 - POPULATION.accuracy(weights, bias - raised)
        after = 1 - POPULATION.accuracy(weights, bias - raised + reach)
        assert facts["source"]["low"] < before < facts["source"]["high"]
        found = facts["kept"]["predicted"]["best"]
        assert found["low"] < after < found["high"]


def test_worst_case_holds_for_every_plausible_response(report):
    for rule in ("blind", "strategic"):
        for labels in ("kept", "follow"):
            bounds = {
                e["name"]: e["value"]
                for e in report.bounds
                if (e["model"], e["labels"], e["response"], e["kind"])
                == (rule, labels, "worst case", "certificate")
            }
            errors = [p["value"] for p in report.models[rule][labels]["predicted"].values()]
            assert bounds["worst_case_direct_upper"] > max(errors)
            assert bounds["worst_case_direct_lower"] < min(errors)
            assert bounds["worst_case_theorem_3_1"] > max(errors)
            assert bounds["worst_case_theorem_3_3"] >= 0.0


def test_same_seed_same_report(rules, people, report):
    chosen, judged, made = people
    again = transfer_report(
        rules, chosen, judged, RESPONSES, chances=fit_chances(*made), terms=TERMS
    )
    assert again.to_json() == report.to_json()


def test_members_of_a_robust_response_are_judged_each(rules, people):
    robust = {"people": RobustResponse([RESPONSES["best"], RESPONSES["smooth_0.5"]])}
    kept = TransferTerms(thresholds=2, labels=("kept",))
    report = transfer_report(rules, *people[:2], robust, terms=kept)
    assert report.about["responses"] == ["people_1_best", "people_2_smooth"]


def test_bad_requests_say_what_is_missing(rules, people):
    chosen, judged, _ = people
    with pytest.raises(ParameterError, match="fit_chances"):
        transfer_report(rules, chosen, judged, RESPONSES)
    kept = TransferTerms(labels=("kept",))
    with pytest.raises(UnknownNameError, match="'best'"):
        transfer_report(rules, chosen, judged, RESPONSES, ["bets"], terms=kept)
    with pytest.raises(ParameterError, match="at least one plausible"):
        transfer_report(rules, chosen, judged, {}, terms=kept)
    nobody = judged[0][:0], judged[1][:0]
    with pytest.raises(NotEnoughRowsError, match="others to judge"):
        transfer_report(rules, chosen, nobody, RESPONSES, terms=kept)
