"""A person is deleted from everything production keeps, and only that person."""

from __future__ import annotations

import pandas as pd
import pytest
from tests.production.tiny_champion import DAYS, PEOPLE, SCHEMA

from countermove.data.cleaning import clean
from countermove.data.sources import read_file
from countermove.data.synthetic import fabricate
from countermove.errors import BlockedError, SchemaError
from countermove.production.forgetting import Kept
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Decision
from countermove.production.retraining.batches import LabelledBatch, read_batches


def kept(office, **changes):
    (office.folder / "labelled").mkdir(exist_ok=True)
    said = {
        "registry": office.rules().registry,
        "schema": SCHEMA,
        "scored": office.scored,
        "labelled": office.folder / "labelled",
        "applicants": office.batches,
        "tables": (office.folder / "quarantine.csv",),
    }
    return Kept(**said | changes)


def advised(office):
    found = office.score("may", **DAYS).people().read()
    return str(found[found["status"] == "FOUND"]["row_id"].iloc[0])


def test_a_person_goes_everywhere_and_nobody_else(office):
    """Register, scored batch with its counts, applicants, quarantine; said line by line."""
    person = advised(office)
    pd.DataFrame({"row": [1, 2], "person": [person, "other"], "found": ["x", "y"]}).to_csv(
        office.folder / "quarantine.csv", index=False
    )
    before = office.score("may", **DAYS)
    said = kept(office).forget(person)
    assert len(said) == 4
    assert said[0] == "open advice of batch may: deleted"
    assert all("1 row deleted" in line for line in said[1:])
    after = office.score("may", **DAYS)  # the file changed on purpose: still the same batch
    assert after.already
    rest = after.people().read()
    assert person not in set(rest["row_id"])
    assert len(rest) == len(PEOPLE) - 1
    assert after.manifest["rows"] == len(PEOPLE) - 1
    assert after.manifest["decisions"]["refused"] == before.manifest["decisions"]["refused"] - 1
    assert after.manifest["forgotten"] == 1
    assert person not in AdviceRegister(office.rules().registry).of_people([person])
    assert person not in (office.batches / "may.csv").read_text()
    assert read_file(office.folder / "quarantine.csv")["person"].tolist() == ["other"]
    assert kept(office).forget(person) == []


def test_a_person_who_was_set_aside_goes_too(office):
    odd = PEOPLE.assign(savings=PEOPLE["savings"].where(PEOPLE.index != 7, -1.0))
    odd.to_csv(office.batches / "odd.csv", index=False)
    scored = office.score("odd", **DAYS)
    sheet = scored.folder / "quarantine.csv"
    assert "applicant-7" in sheet.read_text()
    said = kept(office).forget("applicant-7")
    assert any("odd: 1 row deleted" in line for line in said)
    assert "applicant-7" not in sheet.read_text()
    assert office.score("odd", **DAYS).people().read()["row_id"].nunique() == len(PEOPLE) - 1


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_labelled_batch_may_lose_a_person_without_blocking_retraining(office, suffix):
    """Its new hash is accepted; a change by anybody else is still refused."""
    raw = fabricate("tiny", 60, seed=4).assign(person=[f"new-{i}" for i in range(60)])
    folder = office.folder / "labelled"
    folder.mkdir()
    path = folder / f"b1{suffix}"
    raw.to_csv(path, index=False) if suffix == ".csv" else raw.to_parquet(path)
    registry = office.rules().registry
    facts = {
        "batches": {"b1": {"sha256": LabelledBatch("b1", read_file(path)).sha256, "rule": None}}
    }
    version = registry.next_version()
    registry.record(
        Decision(version, "retrain", "kept", registry.time(), None, None, ["a test"], facts)
    )
    base = clean(fabricate("tiny"), SCHEMA)

    def read():
        later = LabelledBatch(
            "b2", fabricate("tiny", 20, seed=5).assign(person=[f"later-{i}" for i in range(20)])
        )
        batches = [LabelledBatch("b1", read_file(path)), later]
        return read_batches(registry, batches, base, SCHEMA)[0]

    assert len(read()) == 80
    assert kept(office).forget("new-7") == [f"{path}: 1 row deleted"]
    assert len(read()) == 79
    changed = read_file(path).iloc[1:]
    changed.to_csv(path, index=False) if suffix == ".csv" else changed.to_parquet(path)
    with pytest.raises(BlockedError, match="'b1' has changed"):
        read()


def test_an_interrupted_deletion_leaves_the_batch_whole(office, monkeypatch):
    """Killed between the two renames: the batch is there again, and forgetting goes on."""
    from countermove.production import forgetting

    person = advised(office)

    def killed(finished, folder):
        folder.rename(folder.with_name(f".{folder.name}.previous"))
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting, "put_in_place", killed)
    with pytest.raises(KeyboardInterrupt):
        kept(office).forget(person)
    monkeypatch.undo()
    assert office.score("may", **DAYS).already
    assert any("scored" in line for line in kept(office).forget(person))


def test_unknown_people_and_tables_without_ids(office):
    """Nothing to delete is no failure; a table without ids has nobody to find."""
    from dataclasses import replace

    assert kept(office).forget("nobody") == []
    with pytest.raises(SchemaError, match="names no id column"):
        kept(office, schema=replace(SCHEMA, id=None)).forget("nobody")
