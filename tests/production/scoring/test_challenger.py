"""A challenger beside the champion: recorded for everybody, decides for a drawn share."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.errors import ModelFileError, ParameterError
from countermove.production.draws import KEY_VARIABLE, ChallengerTerms, PersonDraws
from countermove.production.forgetting import Kept
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry
from countermove.production.scoring import batch as scoring
from countermove.production.scoring.records import BatchStart
from countermove.production.scoring.task import certificate_id

from ..tiny_champion import CERTIFICATE, DAYS, PEOPLE, SCHEMA, Office, keep, promote

KEY = "k" * 40
OTHER = CERTIFICATE | {"value": 0.1}
SHADOW = {"challenger": ChallengerTerms()}
CANARY = {"challenger": ChallengerTerms(share=0.3)}


@pytest.fixture
def office(tmp_path, monkeypatch):
    """A champion, and a harder version that was kept; the same people in three batches."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
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
    assert "canary_draw" not in both
    said = scored.manifest
    assert said["challenger"]["version"] == office.kept
    assert (said["challenger"]["share"], said["compared"]["decided_by_challenger"]) == (None, 0)
    assert f"challenger {office.kept} agrees on" in scored.words()
    other = harder(office)
    assert both["challenger_decision"].equals(other["decision"])
    np.testing.assert_allclose(both["challenger_probability"], other["probability"])
    agree = (both["champion_decision"] == both["challenger_decision"]).sum()
    assert agree == said["compared"]["both_approve"] + said["compared"]["both_refuse"]
    assert said["compared"]["only_champion_approves"] == len(PEOPLE) - agree > 5


def test_whoever_is_drawn_is_decided_advised_and_promised_by_the_challenger(office):
    alone = of(office, "alone")
    both = of(office, "both", **CANARY)
    draws = PersonDraws(f"canary of {office.kept}", KEY.encode()).of(PEOPLE["person"])
    np.testing.assert_array_equal(both["canary_draw"], draws)
    theirs = draws < 0.3
    assert 20 < theirs.sum() < 60
    assert both["version"].tolist() == np.where(theirs, office.kept, office.champion).tolist()
    promised = np.where(theirs, certificate_id(OTHER), certificate_id(CERTIFICATE))
    assert both["certificate"].tolist() == promised.tolist()
    other = harder(office)
    columns = list(alone.columns)
    for mask, rule in ((theirs, other), (~theirs, alone)):
        pd.testing.assert_frame_equal(both[mask][columns], rule[mask])
    assert both["champion_decision"].equals(alone["decision"])
    assert both["challenger_decision"].equals(other["decision"])


def test_the_same_person_gets_the_same_rule_on_every_call(office):
    """In other batches, in parts of any size, and with a larger share whoever had it keeps it."""
    first = of(office, "both", **CANARY).set_index("row_id")["version"]
    shuffled = PEOPLE.sample(frac=1.0, random_state=3)
    shuffled.to_csv(office.batches / "again.csv", index=False)
    again = of(office, "again", rows=7, engine="threads", **CANARY).set_index("row_id")["version"]
    assert again[first.index].equals(first)
    shuffled.iloc[::2].to_csv(office.batches / "more.csv", index=False)
    more = of(office, "more", challenger=ChallengerTerms(share=0.6)).set_index("row_id")["version"]
    assert set(more.index[first[more.index] == office.kept]) < set(more.index[more == office.kept])


def test_other_people_are_drawn_for_another_challenger(office):
    first = of(office, "both", **CANARY).set_index("row_id")["canary_draw"]
    keep(office.registry, shift=2.0)
    PEOPLE.iloc[::-1].to_csv(office.batches / "again.csv", index=False)
    again = of(office, "again", **CANARY).set_index("row_id")["canary_draw"]
    assert abs(np.corrcoef(first, again[first.index])[0, 1]) < 0.3


def test_open_advice_is_kept_and_honoured_under_the_version_that_gave_it(office):
    both = of(office, "both", **CANARY, **DAYS).set_index("row_id")
    register = AdviceRegister(Registry(str(office.registry)))
    found = register.of_people(PEOPLE["person"])
    assert set(found) == set(both.index[both["status"] == "FOUND"])
    givers = {person: batch.by(hashed) for person, ((batch, hashed),) in found.items()}
    assert givers == both.loc[list(givers), "version"].to_dict()
    assert set(givers.values()) == {office.champion, office.kept}
    # Whoever does what the challenger advised is approved, also by a stricter champion later.
    moves = {c: c.removeprefix("change:") for c in both if c.startswith("change:")}
    numbers = ("income", "savings", "open_loans")
    simple = [
        person
        for person, version in givers.items()
        if version == office.kept
        and all(both.loc[person, c] == 0.0 for c, name in moves.items() if name not in numbers)
    ]
    assert simple
    later = PEOPLE[PEOPLE["person"].isin(simple)].copy()
    for name in numbers:
        later[name] = later[name] + both.loc[later["person"], f"change:{name}"].to_numpy()
    later["open_loans"] = later["open_loans"].round().astype(int)
    later.to_csv(office.batches / "later.csv", index=False)
    promote(office.registry, shift=3.0)
    told = of(office, "later", **DAYS)
    assert (told["decision"] == 1).all()
    assert set(told["honoured"]) == {office.kept}


def test_newest_is_the_newest_kept_since_the_promotion(office, caplog):
    newer = keep(office.registry, shift=0.5)
    assert set(of(office, "both", **SHADOW)["challenger"]) == {newer}
    named = ChallengerTerms(version=office.kept)
    assert set(of(office, "alone", challenger=named)["challenger"]) == {office.kept}
    promote(office.registry, shift=0.2)
    scored = office.score("harder", **CANARY)
    assert "no version was kept since" in caplog.text
    assert "challenger" not in scored.manifest
    assert "challenger" not in scored.people().read()


def test_what_cannot_be_tried_is_said_before_anybody_is_decided(office, monkeypatch):
    own = ChallengerTerms(version=office.champion)
    with pytest.raises(ParameterError, match=f"{office.champion} is the champion itself"):
        office.score("both", challenger=own)
    unknown = ChallengerTerms(version="000009-20260101T000000Z")
    with pytest.raises(ModelFileError, match="holds no version '000009-20260101T000000Z'"):
        office.score("both", challenger=unknown)
    with pytest.raises(ParameterError, match="the schema names no id column"):
        office.score("both", schema=replace(SCHEMA, id=None), **CANARY)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ParameterError, match=f"score.challenger.share .* set {KEY_VARIABLE}"):
        office.score("both", **CANARY)
    assert not list(office.scored.glob("[!.]*"))
    assert not list(office.scored.glob(".*.partial"))
    assert office.score("both", **SHADOW).manifest["rows"] == len(PEOPLE)  # needs no key


def test_an_interrupted_batch_goes_on_with_the_challenger_it_was_begun_with(office, monkeypatch):
    def stop(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "_keep_open", stop)
        with pytest.raises(RuntimeError, match="killed"):
            office.score("both", **CANARY)
    work = office.scored / ".both.partial"
    assert BatchStart.read(work).challenger == office.kept
    keep(office.registry, shift=0.5)
    promote(office.registry, shift=0.2)
    both = of(office, "both", **CANARY)
    assert set(both["version"]) == {office.champion, office.kept}


def test_a_batch_begun_by_an_earlier_release_has_no_challenger(office, monkeypatch):
    def stop(*_):
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "_keep_open", stop)
        with pytest.raises(RuntimeError, match="killed"):
            office.score("both")
    path = office.scored / ".both.partial" / "started.json"
    record = json.loads(path.read_text())
    from countermove.data.storage import seal

    path.write_bytes(seal({k: v for k, v in record.items() if k not in ("challenger", "seal")}))
    assert BatchStart.read(path.parent).challenger == ""
    assert set(of(office, "both")["version"]) == {office.champion}


def test_forgetting_a_person_forgets_who_advised_them(office):
    both = of(office, "both", **CANARY, **DAYS)
    person = both[(both["version"] == office.kept) & (both["status"] == "FOUND")]["row_id"].iloc[0]
    registry = Registry(str(office.registry))
    shutil.rmtree(office.batches)
    kept = Kept(registry, SCHEMA, office.scored, office.batches, office.batches, ())
    assert len(kept.forget(person)) == 2
    (batch,) = AdviceRegister(registry).open()
    assert set(batch.others) <= set(batch.people)
    manifest = json.loads((office.scored / "both" / "manifest.json").read_text())
    assert (
        sum(
            manifest["compared"][k]
            for k in (
                "both_approve",
                "both_refuse",
                "only_champion_approves",
                "only_challenger_approves",
            )
        )
        == len(PEOPLE) - 1
    )
