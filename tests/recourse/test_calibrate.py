"""The calibrated rule: chosen by promise and performance, kept in the model, put into words."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import logit

from countermove.data.rows import rows_of
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import CalibrationError, DataError, UnknownNameError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import PromiseTerms
from countermove.recourse.advise import advise, decide_and_advise
from countermove.recourse.calibrate import calibrate_model
from countermove.recourse.pare import reach_of
from countermove.response import BestResponse
from countermove.scores import LinearScore
from countermove.scores.storage import PublishedModel

SCHEMA = Schema.from_mapping(
    "toy",
    {
        "label": {"column": "y", "favourable": 1},
        "features": {
            "a": {"kind": "numeric", "change": "both"},
            "b": {"kind": "numeric", "change": "immutable"},
        },
        "sensitive": ["tribe"],
    },
)
ACTIONS = ActionSet(immutable=[1])
RESPONSE = BestResponse(QuadraticCost(8.0), ACTIONS)
NARROW = PromiseTerms(largest_action=0.75, miss_rate=0.1, failure_probability=0.1)


def rows(n: int, seed: int, name: str = "p") -> pd.DataFrame:
    """Return people who deserve approval if 2b + a/2 (and some luck) says so."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    luck = rng.logistic(size=n)
    return pd.DataFrame(
        {
            "row_id": [f"{name}{i}" for i in range(n)],
            "label": np.where(0.5 * X[:, 0] + 2 * X[:, 1] + luck >= 0, 1.0, -1.0),
            "a": X[:, 0],
            "b": X[:, 1],
            "group:tribe": np.where(rng.random(n) < 0.5, "elk", "hare"),
        }
    )


def model_of(slope: float = 1.0) -> PublishedModel:
    score = LinearScore(2)
    with torch.no_grad():
        score.weight.copy_(torch.tensor([1.0, 2.0], dtype=torch.float64))
        score.bias.fill_(-0.5)
    unit = Standardiser(np.zeros(2), np.ones(2), ("a", "b"))
    about = {"probability_slope": slope}
    return PublishedModel(score, unit, SCHEMA.digest(), about)


def calibrated(terms: PromiseTerms = NARROW, model: PublishedModel | None = None, n: int = 400):
    held, other = rows(n, 0), rows(400, 1, "s")
    chosen = model_of() if model is None else model
    return calibrate_model(chosen, held, other, ["t1", "t2"], SCHEMA, RESPONSE, terms)


def test_promise_at_any_cost_undoes_the_rule_and_a_largest_loss_saves_it():
    costly, saved = (
        calibrated(),
        calibrated(PromiseTerms(**(vars(NARROW) | {"largest_loss": 0.02}))),
    )
    assert costly.facts["led_by"] == "promise"
    assert costly.facts["certificate"]["value"] == 0.1
    assert saved.facts["led_by"] == "performance"
    assert saved.facts["certificate"]["value"] > 0.1
    lost, kept = (found.facts["thresholds"]["joint"]["accuracy"] for found in (costly, saved))
    best = saved.facts["thresholds"]["wanted"]["accuracy"]
    assert lost < best - 0.02 <= kept


def test_facts_name_both_thresholds_and_every_promise_and_are_json():
    facts = json.loads(json.dumps(calibrated().facts, allow_nan=False))
    assert set(facts["thresholds"]) == {"wanted", "plain", "joint"}
    assert facts["thresholds"]["plain"]["threshold"] == min(0.5, facts["bound"])
    names = [claim["name"] for claim in facts["certificates"]]
    assert names == [
        "recourse_miss_rate",
        "recourse_miss_rate_after_response",
        "refused_miss_rate",
        "refused_without_recourse",
    ]
    for claim in facts["certificates"]:
        assert bool(claim["words"]) == (claim["value"] is not None) == claim["applicable"]
        assert bool(claim["reason"]) == (claim["value"] is None)


def test_plain_promise_is_withdrawn_above_its_bound():
    facts = calibrated(PromiseTerms(**(vars(NARROW) | {"largest_loss": 0.02}))).facts
    assert facts["threshold"] > facts["bound"]
    plain = facts["certificates"][0]
    assert plain["value"] is None
    assert f"{facts['bound']:.4g}" in plain["reason"]


def test_frontier_shows_what_the_promise_costs():
    table = calibrated().frontier
    assert table["threshold"].is_monotonic_increasing
    assert table["threshold"].iloc[-1] == 0.5
    assert table["approved"].is_monotonic_decreasing
    assert (table["miss_bound"] > table["miss_share"]).all()
    # Passed means passed before the first failure: no gap in a rising grid.
    assert table["promised"].is_monotonic_decreasing
    assert 0 < table["promised"].sum() < len(table)


def test_groups_are_promised_one_by_one():
    facts = calibrated(PromiseTerms(**(vars(NARROW) | {"groups": "tribe"}))).facts
    names = [claim["name"] for claim in facts["certificates"]]
    assert names[:2] == ["recourse_miss_rate[tribe=elk]", "recourse_miss_rate[tribe=hare]"]
    assert "tribe = hare" in facts["certificates"][1]["words"]
    assert "in each of 2 groups" in facts["certificates"][2]["words"]
    with pytest.raises(UnknownNameError, match="did you mean 'tribe'"):
        calibrated(PromiseTerms(groups="trib"))


def test_without_response_the_promise_is_pares_own():
    facts = calibrated(PromiseTerms(**(vars(NARROW) | {"after_response": False}))).facts
    assert facts["threshold"] <= facts["bound"]
    assert facts["certificates"][0]["value"] == 0.1
    assert "recourse_miss_rate_after_response" not in str(facts["certificates"])


@pytest.fixture
def searched(monkeypatch):
    """Return how many people's reach is searched for, search by search."""
    from countermove.recourse.pare import inputs

    asked, search = [], inputs.best_reachable

    def counted(score, X, *given, **limits):
        asked.append(len(X))
        return search(score, X, *given, **limits)

    monkeypatch.setattr(inputs, "best_reachable", counted)
    return asked


def test_of_people_some_of_whom_moved_only_those_are_searched_for(searched):
    X = rows(50, 1)[["a", "b"]].to_numpy()
    far = np.linspace(0.1, 0.6, 50)[:, None] * [1.0, 0.0]
    own = ActionSet(lower=-far, upper=far)  # everybody has bounds of their own
    reach, moved = reach_of(model_of(), own), X.copy()
    reach(X)
    moved[[3, 40]] += 0.2
    assert np.array_equal(reach(moved), reach_of(model_of(), own)(moved))
    assert searched == [50, 2, 50]


def test_everybodys_reach_is_searched_for_once(searched):
    calibrate_model(model_of(), rows(300, 1), rows(200, 2, "s"), (), SCHEMA, RESPONSE, NARROW)
    assert sorted(searched) == [200, 300]


def test_rows_of_training_or_selection_are_refused_by_id():
    held = rows(400, 0)
    with pytest.raises(DataError, match="ids p3, p7") as caught:
        calibrate_model(model_of(), held, rows(50, 1, "s"), ["p7", "p3"], SCHEMA, RESPONSE, NARROW)
    assert caught.value.rows == (3, 7)
    with pytest.raises(DataError, match="selected on"):
        calibrate_model(model_of(), held, rows(50, 1), [], SCHEMA, RESPONSE, NARROW)


def test_too_few_rows_say_how_many_are_needed():
    with pytest.raises(CalibrationError, match="at least 59"):
        calibrated(PromiseTerms(), n=58)


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_decisions_agree_with_probability_and_reach(slope):
    rule = calibrated(model=model_of(slope))
    advised = advised_by(rule, largest_action=0.5)
    favourable = advised.decisions["decision"] == 1
    assert (favourable == (advised.decisions["probability"] >= rule.facts["threshold"])).all()
    assert (advised.decisions.loc[favourable, "status"] == "NOT_NEEDED").all()
    X = rows_of(rows(500, 2), SCHEMA).X[~favourable.to_numpy()]
    reaches = reach_of(rule.model, ACTIONS, largest_action=0.5)(X) >= 0
    assert (advised.decisions.loc[~favourable, "status"].eq("FOUND") == reaches).all()
    assert set(advised.decisions["status"]) == {"NOT_NEEDED", "FOUND", "PROVEN_NONE"}


@pytest.mark.parametrize("limits", [{}, {"ceiling": 2.0}])
def test_whoever_is_counted_as_having_recourse_is_advised(limits):
    """The promise is about advice as it is given: within the ceiling, or at any price."""
    terms = PromiseTerms(miss_rate=0.1, failure_probability=0.1, after_response=False, **limits)
    rule = calibrated(terms)
    people = rows_of(rows(500, 2), SCHEMA)
    advised = decide_and_advise(rule.model, people, SCHEMA, RESPONSE, terms, 0).advice
    helped = np.isin(advised.status, ["FOUND", "NOT_NEEDED"])
    bare, aim = rule.model.without_threshold(), logit(rule.model.threshold)
    assert (helped == (terms.reach(bare, RESPONSE)(people.X) >= aim)).all()
    assert helped.mean() > 0.85
    assert helped.all() == (not limits)
    within = "costing at most 2" if limits else "at any price"
    assert f"approved or have recourse {within}" in rule.facts["certificate"]["words"]


@pytest.mark.parametrize("slope", [1.0, 3.0])
def test_advice_leads_over_the_bar_in_original_units(slope):
    rule = calibrated(model=model_of(slope))
    advice = advised_by(rule).advice
    found = advice[advice["status"] == "FOUND"]
    people = rows(500, 2).set_index("row_id").loc[found["row_id"]]
    # The toy's units are its own: mean 0, scale 1.
    moved = people["a"].to_numpy() + found["change:a"].to_numpy()
    score = moved + 2.0 * people["b"].to_numpy() - 0.5
    chance = 1.0 / (1.0 + np.exp(-slope * score))
    assert (chance >= rule.facts["threshold"] - 1e-12).all()
    assert found["words"].str.startswith("Raise a from").all()


def test_the_audit_counts_the_same_people_by_group():
    rule = calibrated()
    advised = advised_by(rule)
    refused = int((advised.decisions["decision"] == -1).sum())
    assert advised.audit["recourse"]["refused"] == refused
    assert sum(group["refused"] for group in advised.audit["groups"]["tribe"]) == refused
    assert advised.audit["recourse"]["broken_claims"] == ()
    json.dumps(advised.audit, allow_nan=False)


def test_a_margin_takes_advice_further_and_never_beyond_certainty():
    rule = calibrated()
    threshold = rule.facts["threshold"]
    plain, wider, most = (advised_by(rule, margin=margin).advice for margin in (0.0, 0.1, 0.99))
    found = (plain["status"] == "FOUND").to_numpy()
    assert found.any()
    for advised, margin in ((plain, 0.0), (wider, 0.1), (most, 0.5 * (1.0 - threshold))):
        assert (advised["status"] == plain["status"]).all()
        after = advised["probability_after"].to_numpy()[found]
        assert after == pytest.approx(np.full(found.sum(), threshold + margin), abs=1e-6)


def advised_by(rule, largest_action=None, margin=0.0):
    terms = PromiseTerms(largest_action=largest_action, margin=margin)
    return advise(rule.model, rows(500, 2), rows(400, 5, "t"), SCHEMA, RESPONSE, terms, seed=0)


HOUSES = Schema.from_mapping("toy", SCHEMA.to_mapping() | {"group_by": "house"})


def housed(n: int, seed: int, name: str, size: int = 2) -> pd.DataFrame:
    """Return the same people in houses of so many, who live under one roof with their kind."""
    house = [f"{name}{i // size}" for i in range(n)]
    return rows(n, seed, name).assign(**{"cluster:house": house})


def test_a_declared_cluster_makes_every_promise_one_to_clusters():
    held, other = housed(900, 0, "p"), housed(400, 1, "s")
    rule = calibrate_model(model_of(), held, other, [], HOUSES, RESPONSE, NARROW)
    assert rule.facts["clusters"] == {"column": "house", "clusters": 450, "rows_per_cluster": 5}
    for claim in rule.facts["certificates"]:
        assert "at most 5 rows of a cluster" in claim["assumptions"][0]["statement"]
        assert not claim["applicable"] or "5 rows of a cluster" in claim["words"]
    assert rule.facts["led_by"] == "promise"
    assert "counting at most 5 rows of a cluster" in rule.facts["certificate"]["words"]
    advised = advise(
        rule.model, housed(500, 2, "p"), rows(400, 5, "t"), HOUSES, RESPONSE, NARROW, seed=0
    )
    assert advised.audit["clusters"]["clusters"] == 250
    assert advised.audit["cost_promise"]["name"] == "recourse_cost"


def test_clusters_that_were_learned_from_are_not_calibrated_on():
    held, other = housed(900, 0, "p"), housed(400, 1, "s")
    other.loc[:3, "cluster:house"] = "p0"
    seen = np.array(["p1", "p2", "elsewhere"], dtype=object)
    rule = calibrate_model(model_of(), held, other, [], HOUSES, RESPONSE, NARROW, seen)
    assert rule.facts["clusters"]["clusters"] == 447
    assert rule.facts["rows"]["calibration"] == 894


def test_rows_that_lost_their_cluster_are_refused():
    with pytest.raises(DataError, match="run ingest again"):
        calibrate_model(model_of(), rows(400, 0), rows(50, 1, "s"), [], HOUSES, RESPONSE, NARROW)


def test_too_few_clusters_end_the_run_with_the_reason():
    few = housed(400, 0, "p", size=40)
    with pytest.raises(CalibrationError, match=r"10 clusters with 50 rows .* are needed"):
        calibrate_model(model_of(), few, housed(50, 1, "s"), [], HOUSES, RESPONSE, NARROW)


def test_one_person_out_of_reach_of_any_probability_does_not_void_the_run():
    """PARE alone has no threshold then; what is promised at the chosen one is still said."""
    held = rows(70, 0)
    held.loc[0, ["a", "b"]] = [-2000.0, 0.0]
    terms = PromiseTerms(largest_action=0.75, largest_loss=0.02)
    rule = calibrate_model(model_of(), held, rows(400, 1, "s"), [], SCHEMA, RESPONSE, terms)
    assert rule.facts["bound"] is None
    assert set(rule.facts["thresholds"]) == {"wanted", "joint"}
    plain, chosen, *_ = rule.facts["certificates"]
    assert "no threshold above 0" in plain["reason"]
    assert 0.05 < chosen["value"] < 1.0


def test_the_audit_promises_a_price_on_rows_the_threshold_never_saw():
    rule = calibrated()
    advised = advised_by(rule)
    promised = advised.audit["cost_promise"]
    advice = advised.advice
    refused = advice[advice["decision"] == -1]
    assert promised["n"] == len(refused)
    # Nobody is without recourse: a share of at least 90 % pays no more.
    moved = refused["change:a"].to_numpy()
    assert np.mean(8.0 * moved**2 <= promised["value"] * (1 + 1e-9)) >= 0.9
    none = advise(
        rule.model,
        rows(500, 2),
        rows(400, 5, "t"),
        SCHEMA,
        RESPONSE,
        PromiseTerms(cost_share=None),
        seed=0,
    )
    assert none.audit["cost_promise"] is None
    tight = advised_by(rule, largest_action=0.1).audit["cost_promise"]
    assert tight["value"] is None
    assert "have no recourse at any price" in tight["reason"]
