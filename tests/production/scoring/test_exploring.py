"""Exploration: refused people approved by a keyed draw, stored with their propensity."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from countermove.errors import ParameterError
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry
from countermove.production.scoring.exploring import KEY_VARIABLE, Exploration, ExplorationTerms

from ..tiny_champion import DAYS, PEOPLE, SCHEMA, Office, keep, promote

KEY = "k" * 40
IDS = [f"p{place}" for place in range(4000)]


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    made = Office(tmp_path)
    promote(made.registry)
    for name in ("plain", "tried"):
        PEOPLE.to_csv(made.batches / f"{name}.csv", index=False)
    return made


def explore(office, batch, share=0.25, **changes):
    return office.score(batch, exploration=ExplorationTerms(share), **changes)


def test_a_draw_is_the_hmac_of_the_id():
    """So that an auditor with the key can compute it elsewhere."""
    (found,) = Exploration(0.1, KEY.encode()).draws(["anna"])
    digest = hmac.new(KEY.encode(), b"exploration\nanna", hashlib.sha256).digest()
    assert found == (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def test_draws_are_uniform_and_those_of_two_keys_independent():
    draws = Exploration(0.1, KEY.encode()).draws(IDS)
    assert kstest(draws, "uniform").pvalue > 0.001
    assert abs(np.corrcoef(draws, Exploration(0.1, b"o" * 40).draws(IDS))[0, 1]) < 0.06


def test_the_key_is_not_shown():
    explored = Exploration(0.1, KEY.encode())
    assert "kkkk" not in f"{explored}{explored.describe()}"
    assert explored.describe() != Exploration(0.1, b"o" * 40).describe()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share):
    with pytest.raises(ParameterError, match=r"share strictly between 0 and 1"):
        ExplorationTerms(share)


def test_only_refused_people_are_approved_and_nothing_else_changes(office):
    plain = office.score("plain").people().read()
    scored = explore(office, "tried")
    tried = scored.people().read()
    draws = Exploration(0.25, KEY.encode()).draws(PEOPLE["person"])
    refused = (plain["decision"] < 0).to_numpy()
    chosen = refused & (draws < 0.25)
    assert chosen.sum() > 3
    assert tried["explored"].tolist() == chosen.tolist()
    assert (tried["decision"][chosen] == 1).all()
    assert (tried["status"][chosen] == "NOT_NEEDED").all()
    assert tried["words"][chosen].eq("Approved: nothing to do.").all()
    pd.testing.assert_frame_equal(tried.loc[~chosen, plain.columns], plain[~chosen])
    assert tried["probability"].equals(plain["probability"])
    np.testing.assert_allclose(tried["propensity"], np.where(refused, 0.25, 1.0))
    said = scored.manifest
    assert said["decisions"]["approved"] == (~refused).sum() + chosen.sum()
    counts = {"propensity": 0.25, "refused": refused.sum(), "approved": chosen.sum()}
    assert said["exploration"] == counts
    told = f"{chosen.sum()} of {refused.sum()} refused are approved by draw (propensity 25.00%)"
    assert told in scored.words()


def test_parts_of_any_size_draw_the_same_people(office):
    whole = explore(office, "plain").people().read()
    parts = explore(office, "tried", rows=7, engine="threads").people().read()
    assert parts["explored"].equals(whole["explored"])
    assert parts["propensity"].equals(whole["propensity"])


def test_nobody_approved_by_draw_has_open_advice(office):
    told = explore(office, "tried", **DAYS).people().read()
    found = AdviceRegister(Registry(str(office.registry))).of_people(PEOPLE["person"])
    assert set(found) == set(told["row_id"][told["status"] == "FOUND"])
    assert not set(found) & set(told["row_id"][told["explored"]])


def test_in_the_shadow_a_challenger_changes_no_draw(office):
    alone = explore(office, "plain").people().read()
    keep(office.registry, shift=1.0)
    told = explore(office, "tried", challenger="newest").people().read()
    assert told["explored"].equals(alone["explored"])
    assert ((told["propensity"] < 1.0) == (told["champion_decision"] < 0)).all()


def test_without_a_key_or_ids_there_is_no_exploration(office, monkeypatch):
    with pytest.raises(ParameterError, match="the schema names no id column"):
        explore(office, "tried", schema=replace(SCHEMA, id=None))
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ParameterError, match=f"{KEY_VARIABLE} has 5 characters"):
        explore(office, "tried")
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ParameterError, match=f"score.exploration .* set {KEY_VARIABLE} to at le"):
        explore(office, "tried")
    assert not list(office.scored.glob("[!.]*"))


def test_a_batch_without_refused_people_is_scored(office):
    rich = PEOPLE.assign(income=190.0, open_loans=0)
    rich.to_csv(office.batches / "rich.csv", index=False)
    said = explore(office, "rich").manifest
    assert said["rows"] == len(PEOPLE)
    assert said["exploration"]["approved"] <= said["exploration"]["refused"] < 5
