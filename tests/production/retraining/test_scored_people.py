"""The next run compares a challenger with the champion, and looks at people approved by draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.synthetic import fabricate
from countermove.production.draws import KEY_VARIABLE, ChallengerTerms, ExplorationTerms
from countermove.production.endings import KEPT, outcome_record
from countermove.production.registry import Registry
from countermove.production.retraining.scored_people import compare_scored
from countermove.reporting.retraining import beside_facts
from countermove.transfer.optimal import difference

from ..tiny_champion import SCHEMA, Office, keep, model, promote

N = 400
RAW = fabricate("tiny", N, seed=5).assign(person=[f"a-{place}" for place in range(N)])
FACTS = {"may": {"new": True, "rule": "000001", "day": 1.0}}


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "k" * 40)
    made = Office(tmp_path)
    made.champion = promote(made.registry)
    made.kept = keep(made.registry, shift=1.0)
    RAW.drop(columns="repaid").to_csv(made.batches / "may.csv", index=False)
    return made


def labelled(who=None):
    """Return the labelled rows that a retraining would read."""
    raw = RAW if who is None else RAW[who]
    return clean(raw.reset_index(drop=True), SCHEMA).assign(batch="may")


def compared(office, rows, facts=FACTS):
    registry = Registry(str(office.registry))
    units = model().standardiser
    return compare_scored(registry, office.scored, rows, facts, SCHEMA, units)


def test_counts_agreement_and_the_paired_difference_are_those_of_the_people(office):
    told = office.score("may", challenger=ChallengerTerms(share=0.4)).people().read()
    said, weights = compared(office, labelled())
    (pair,) = said["challengers"]
    assert (pair["champion"], pair["challenger"]) == (office.champion, office.kept)
    agree = told["champion_decision"] == told["challenger_decision"]
    assert pair["agreement"]["value"] == agree.mean()
    assert pair["agreement"]["low"] < agree.mean() < pair["agreement"]["high"]
    theirs = (told["version"] == office.kept).to_numpy()
    assert pair["decided_by_challenger"] == theirs.sum()
    good = (RAW["repaid"] == "yes").to_numpy()
    wrong = [(told[c] > 0).to_numpy() != good for c in ("champion_decision", "challenger_decision")]
    for name, who in (("labelled", np.ones(N, bool)), ("labelled_canary", theirs)):
        there = difference(wrong[0][who], wrong[1][who], 0.05)
        assert pair[name]["value"] == pytest.approx(wrong[0][who].mean() - wrong[1][who].mean())
        assert (pair[name]["low"], pair[name]["high"]) == (there.low, there.high)
        assert pair[name]["n"] == who.sum()
    arms = pair["favourable_of_approved"]
    own = good[theirs & (told["decision"] > 0).to_numpy()]
    other = good[~theirs & (told["decision"] > 0).to_numpy()]
    assert arms["difference"]["value"] == pytest.approx(own.mean() - other.mean())
    assert arms["difference"]["low"] < own.mean() - other.mean() < arms["difference"]["high"]
    assert said["labels"] == {
        "people": N, "refused": int((told["decision"] < 0).sum()), "explored": 0,
        "approved_only": False,
    }  # fmt: skip
    assert weights.empty


def test_labels_of_the_approved_only_are_noticed_and_the_drawn_weighted(office):
    told = office.score("may", exploration=ExplorationTerms(0.3, 1000)).people().read()
    approved = (told["decision"] > 0).to_numpy()
    said, weights = compared(office, labelled(approved))
    drawn = told[told["explored"]]
    assert said["labels"]["approved_only"]
    assert said["labels"]["explored"] == len(drawn) > 10
    assert dict(weights.itertuples(index=False)) == dict(
        zip(drawn["row_id"], 1.0 / drawn["propensity"], strict=True)
    )
    fared = said["exploration"]
    good = (RAW["repaid"] == "yes").to_numpy()[told["explored"].to_numpy()]
    assert fared["favourable"]["value"] == good.mean()
    assert fared["expected_favourable"] == pytest.approx(drawn["probability"].mean())
    (column,) = SCHEMA.sensitive
    assert sum(fared["groups"][column].values()) == len(drawn)
    # Where the refused have labels too, everybody counts the same.
    said, weights = compared(office, labelled())
    assert not said["labels"]["approved_only"]
    assert weights.empty


def test_weighted_labels_of_the_drawn_are_those_of_all_the_refused(office):
    """Over many keys, the weighted share of favourable labels is the share of everybody."""
    from countermove.production.draws import PersonDraws
    from countermove.production.scoring.exploring import approval_chance

    good = (RAW["repaid"] == "yes").to_numpy()[:120]
    refused = np.arange(120) % 3 == 0
    ids, found = RAW["person"].to_numpy()[:120], []
    chance = approval_chance(int(refused.sum()), 0.3, 8)
    for run in range(3000):
        draws = PersonDraws("exploration", b"%032d" % run).of(ids)
        draws[~refused] = 1.0
        limit = min(0.3, np.sort(draws)[8])
        weight = np.where(refused, (draws < limit) / chance, 1.0)
        found.append(weight @ good / 120)
    assert np.mean(found) == pytest.approx(good.mean(), abs=4 * np.std(found) / np.sqrt(3000))


def test_without_scored_batches_the_champion_says_who_would_have_been_refused(office):
    told = office.score("may").people().read()
    approved = (told["decision"] > 0).to_numpy()
    for path in office.scored.glob("may"):
        path.rename(office.folder / "elsewhere")
    said, _ = compared(office, labelled(approved))
    assert said["challengers"] == []
    assert said["labels"]["approved_only"]
    said, _ = compared(office, labelled())
    assert said["labels"]["refused"] == (~approved).sum()
    assert compared(office, labelled(), {})[0]["labels"] is None
    assert compared(office, pd.DataFrame(), {})[0]["labels"] is None


@pytest.mark.parametrize("file", ["manifest.json", "part-00000.parquet"])
def test_a_damaged_batch_is_left_out_and_said_so(office, file):
    """On the page and in retrain_outcome.json, not only in the log."""
    folder = office.score("may", challenger=ChallengerTerms()).folder
    (folder / file).write_text("{}")
    said, _ = compared(office, labelled())
    assert said["challengers"] == []
    (sentence,) = said["left_out"]
    assert "scored batch 'may' is damaged and left out" in sentence
    assert sentence in beside_facts(said)["explored"]
    decision = {"facts": {"scored": said}, "outcome": "kept"}
    assert outcome_record(KEPT, decision)["left_out"] == [sentence]
