"""A challenger beside the champion: its decisions are recorded, and it decides for nobody."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.errors import ModelFileError, ParameterError
from countermove.production.forgetting import Kept
from countermove.production.registry import Registry
from countermove.production.scoring import batch as scoring
from countermove.production.scoring.records import BatchStart

from ..tiny_champion import CERTIFICATE, DAYS, PEOPLE, SCHEMA, Office, keep, promote

OTHER = CERTIFICATE | {"value": 0.1}
SHADOW = {"challenger": "newest"}


@pytest.fixture
def office(tmp_path):
    """A champion, and a harder version that was kept; the same people in three batches."""
    made = Office(tmp_path)
    made.champion = promote(made.registry)
    made.kept = keep(made.registry, shift=1.0, certificates=[OTHER])
    for name in ("alone", "both", "harder"):
        PEOPLE.to_csv(made.batches / f"{name}.csv", index=False)
    return made


def of(office, batch, **changes):
    return office.score(batch, **changes).people().read()


def harder(office):
    """Return what the kept version decides where it decides for everybody."""
    registry = Registry(str(office.registry))
    decision = replace(
        registry.decisions()[-1], version=registry.next_version(), outcome="rolled_back",
        champion_after=office.kept,
    )  # fmt: skip
    registry.record(decision)
    registry.carry_out(decision)
    return of(office, "harder")


def test_in_the_shadow_everybody_is_told_what_the_champion_says(office):
    alone = of(office, "alone")
    scored = office.score("both", **SHADOW)
    both = scored.people().read()
    pd.testing.assert_frame_equal(both[list(alone.columns)], alone)
    assert both["champion_decision"].equals(alone["decision"])
    assert both["champion_probability"].equals(alone["probability"])
    assert set(both["challenger"]) == {office.kept}
    said = scored.manifest
    assert said["challenger"]["version"] == office.kept
    assert f"challenger {office.kept} agrees on" in scored.words()
    other = harder(office)
    assert both["challenger_decision"].equals(other["decision"])
    np.testing.assert_allclose(both["challenger_probability"], other["probability"])
    agree = (both["champion_decision"] == both["challenger_decision"]).sum()
    assert agree == said["compared"]["both_approve"] + said["compared"]["both_refuse"]
    assert said["compared"]["only_champion_approves"] == len(PEOPLE) - agree > 5


def test_newest_is_the_newest_kept_since_the_promotion(office, caplog):
    newer = keep(office.registry, shift=0.5)
    assert set(of(office, "both", **SHADOW)["challenger"]) == {newer}
    assert set(of(office, "alone", challenger=office.kept)["challenger"]) == {office.kept}
    promote(office.registry, shift=0.2)
    scored = office.score("harder", **SHADOW)
    assert "no version was kept since" in caplog.text
    assert "challenger" not in scored.manifest
    assert "challenger" not in scored.people().read()


def test_what_cannot_be_tried_is_said_before_anybody_is_decided(office):
    with pytest.raises(ParameterError, match=f"{office.champion} is the champion itself"):
        office.score("both", challenger=office.champion)
    with pytest.raises(ModelFileError, match="holds no version '000009-20260101T000000Z'"):
        office.score("both", challenger="000009-20260101T000000Z")
    assert not list(office.scored.glob("[!.]*"))
    assert not list(office.scored.glob(".*.partial"))


def test_an_interrupted_batch_goes_on_with_the_challenger_it_was_begun_with(office, monkeypatch):
    def stop(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "_keep_open", stop)
        with pytest.raises(RuntimeError, match="killed"):
            office.score("both", **SHADOW)
    work = office.scored / ".both.partial"
    assert BatchStart.read(work).challenger == office.kept
    keep(office.registry, shift=0.5)
    promote(office.registry, shift=0.2)
    both = of(office, "both", **SHADOW)
    assert set(both["version"]) == {office.champion}
    assert set(both["challenger"]) == {office.kept}


def test_forgetting_a_person_leaves_counts_of_the_others(office):
    both = of(office, "both", **SHADOW, **DAYS)
    person = both[both["status"] == "FOUND"]["row_id"].iloc[0]
    registry = Registry(str(office.registry))
    shutil.rmtree(office.batches)
    kept = Kept(registry, SCHEMA, office.scored, office.batches, office.batches, ())
    assert len(kept.forget(person)) == 2
    manifest = json.loads((office.scored / "both" / "manifest.json").read_text())
    assert sum(manifest["compared"].values()) == len(PEOPLE) - 1
