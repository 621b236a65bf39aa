"""The next run compares a challenger with the champion, and looks at people approved by draw."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from countermove.data.cleaning import clean
from countermove.data.synthetic import fabricate
from countermove.production.endings import KEPT, outcome_record
from countermove.production.registry import Registry
from countermove.production.retraining.scored_people import compare_scored
from countermove.production.scoring.exploring import KEY_VARIABLE, Exploration, ExplorationTerms
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
    told = office.score("may", challenger="newest").people().read()
    said, weights = compared(office, labelled())
    (pair,) = said["challengers"]
    assert (pair["champion"], pair["challenger"]) == (office.champion, office.kept)
    agree = told["champion_decision"] == told["challenger_decision"]
    assert pair["agreement"]["value"] == agree.mean()
    assert pair["agreement"]["low"] < agree.mean() < pair["agreement"]["high"]
    good = (RAW["repaid"] == "yes").to_numpy()
    wrong = [(told[c] > 0).to_numpy() != good for c in ("champion_decision", "challenger_decision")]
    there = difference(*wrong, 0.05)
    assert pair["labelled"]["value"] == pytest.approx(wrong[0].mean() - wrong[1].mean())
    assert (pair["labelled"]["low"], pair["labelled"]["high"]) == (there.low, there.high)
    assert pair["labelled"]["n"] == N
    assert said["labels"] == {
        "people": N, "refused": int((told["decision"] < 0).sum()), "explored": 0,
        "approved_only": False,
    }  # fmt: skip
    assert weights.empty


def test_labels_of_the_approved_only_are_noticed_and_the_drawn_weighted(office):
    told = office.score("may", exploration=ExplorationTerms(0.3)).people().read()
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
    # Where the refused have labels too, everybody counts the same.
    said, weights = compared(office, labelled())
    assert not said["labels"]["approved_only"]
    assert weights.empty


def test_weighted_labels_of_the_drawn_are_those_of_all_the_refused(office):
    """Over many keys, the weighted share of favourable labels is the share of everybody."""
    good = (RAW["repaid"] == "yes").to_numpy()[:120]
    refused = np.arange(120) % 3 == 0
    ids, found = RAW["person"].to_numpy()[:120], []
    for run in range(3000):
        draws = Exploration(0.3, b"%032d" % run).draws(ids)
        weight = np.where(refused, (draws < 0.3) / 0.3, 1.0)
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
    folder = office.score("may", challenger="newest").folder
    (folder / file).write_text("{}")
    said, _ = compared(office, labelled())
    assert said["challengers"] == []
    (sentence,) = said["left_out"]
    assert "scored batch 'may' is damaged and left out" in sentence
    assert sentence in beside_facts(said)["explored"]
    decision = {"facts": {"scored": said}, "outcome": "kept"}
    assert outcome_record(KEPT, decision)["left_out"] == [sentence]
