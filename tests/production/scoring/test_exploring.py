"""Exploration: refused people approved by draw, capped, and stored with their propensity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.errors import ParameterError
from countermove.production.draws import (
    KEY_VARIABLE,
    ChallengerTerms,
    ExplorationTerms,
    PersonDraws,
)
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry
from countermove.production.scoring.exploring import approval_chance

from ..tiny_champion import DAYS, PEOPLE, SCHEMA, Office, keep, promote

KEY = "k" * 40


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    made = Office(tmp_path)
    promote(made.registry)
    for name in ("plain", "tried", "capped"):
        PEOPLE.to_csv(made.batches / f"{name}.csv", index=False)
    return made


def explore(office, batch, share=0.25, most=100, **changes):
    return office.score(batch, exploration=ExplorationTerms(share, most), **changes)


def test_only_refused_people_are_approved_and_nothing_else_changes(office):
    plain = office.score("plain").people().read()
    scored = explore(office, "tried")
    tried = scored.people().read()
    draws = PersonDraws("exploration", KEY.encode()).of(PEOPLE["person"])
    refused = (plain["decision"] < 0).to_numpy()
    chosen = refused & (draws < 0.25)
    assert chosen.sum() > 3
    assert tried["explored"].tolist() == chosen.tolist()
    assert (tried["decision"][chosen] == 1).all()
    assert (tried["status"][chosen] == "NOT_NEEDED").all()
    assert tried["words"][chosen].eq("Approved: nothing to do.").all()
    pd.testing.assert_frame_equal(tried.loc[~chosen, plain.columns], plain[~chosen])
    assert tried["probability"].equals(plain["probability"])
    np.testing.assert_array_equal(tried["exploration_draw"].isna(), ~refused)
    np.testing.assert_array_equal(tried["exploration_draw"][refused], draws[refused])
    np.testing.assert_allclose(tried["propensity"], np.where(refused, 0.25, 1.0))
    assert scored.manifest["decisions"]["approved"] == (~refused).sum() + chosen.sum()


def test_share_and_number_are_kept_to_and_the_propensity_is_that_of_both(office):
    scored = explore(office, "capped", share=0.25, most=3, rows=7, engine="threads")
    told = scored.people().read()
    said = scored.manifest["exploration"]
    refused = told["propensity"] < 1.0
    assert (said["approved"], said["refused"]) == (3, refused.sum())
    assert told["explored"].sum() == 3
    smallest = told.loc[refused, "exploration_draw"].nsmallest(3).index
    assert set(told.index[told["explored"]]) == set(smallest)
    chance = approval_chance(int(refused.sum()), 0.25, 3)
    assert set(told["propensity"][refused]) == {chance}
    assert said["propensity"] == chance < 0.25


@pytest.mark.parametrize(("refused", "share", "most"), [(30, 0.2, 4), (5, 0.5, 9), (40, 0.02, 1)])
def test_the_propensity_is_how_often_keys_approve_a_person(refused, share, most):
    ids = [f"p{place}" for place in range(refused)]
    runs, count = 4000, 0
    for run in range(runs):
        draws = PersonDraws("exploration", b"%032d" % run).of(ids)
        limit = min(share, np.append(np.sort(draws), 1.0)[min(most, refused)])
        count += draws[0] < limit
    chance = approval_chance(refused, share, most)
    assert abs(count / runs - chance) < 4 * np.sqrt(chance * (1 - chance) / runs)
    assert approval_chance(0, share, most) == 0.0


def test_its_price_and_its_groups_are_stated(office):
    scored = explore(office, "tried")
    said, told = scored.manifest["exploration"], scored.people().read()
    drawn, ruled = told[told["explored"]], told[~told["explored"] & (told["decision"] > 0)]
    assert said["expected_favourable"] == pytest.approx(drawn["probability"].mean())
    assert said["threshold"] == 0.5 > said["expected_favourable"]
    all_approved = pd.concat([drawn, ruled])["probability"].mean()
    assert said["price_points"] == pytest.approx(100 * (ruled["probability"].mean() - all_approved))
    assert said["price_points"] > 0
    assert f"{said['approved']} of {said['refused']} refused are approved by draw" in scored.words()
    (column,) = SCHEMA.sensitive
    groups = PEOPLE[column].astype(str).to_numpy()
    for group, counts in said["groups"][column].items():
        assert counts["approved_by_draw"] == int(told["explored"][groups == group].sum())
        assert counts["refused"] == int((told["propensity"] < 1.0)[groups == group].sum())
    assert sum(c["refused"] for c in said["groups"][column].values()) == said["refused"]
    PEOPLE.drop(columns=column).to_csv(office.batches / "unknown.csv", index=False)
    assert explore(office, "unknown").manifest["exploration"]["groups"] == {}


def test_nobody_approved_by_draw_has_open_advice(office):
    told = explore(office, "tried", **DAYS).people().read()
    found = AdviceRegister(Registry(str(office.registry))).of_people(PEOPLE["person"])
    assert set(found) == set(told["row_id"][told["status"] == "FOUND"])
    assert not set(found) & set(told["row_id"][told["explored"]])


def test_whom_the_challenger_refuses_may_be_approved_by_draw_too(office):
    kept = keep(office.registry, shift=1.0)
    told = explore(office, "tried", challenger=ChallengerTerms(share=0.5)).people().read()
    ruled = np.where(
        told["version"] == kept, told["challenger_decision"], told["champion_decision"]
    )
    assert ((told["propensity"] < 1.0) == (ruled < 0)).all()
    assert kept in set(told["version"][told["explored"]])


def test_without_a_key_or_ids_there_is_no_exploration(office, monkeypatch):
    with pytest.raises(ParameterError, match="the schema names no id column"):
        explore(office, "tried", schema=replace(SCHEMA, id=None))
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ParameterError, match=f"score.exploration .* set {KEY_VARIABLE}"):
        explore(office, "tried")
    assert not list(office.scored.glob("[!.]*"))


def test_a_batch_without_refused_people_is_scored(office):
    rich = PEOPLE.assign(income=190.0, open_loans=0)
    rich.to_csv(office.batches / "rich.csv", index=False)
    scored = explore(office, "rich")
    if scored.manifest["exploration"]["refused"] == 0:
        assert scored.manifest["exploration"]["price_points"] in (0.0, None)
    assert scored.manifest["rows"] == len(PEOPLE)
