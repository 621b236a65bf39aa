"""The register of open advice: hashes and advised columns, whole or not there, until it expires."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from countermove.data import storage
from countermove.errors import ModelFileError, ParameterError, StorageError
from countermove.production.open_advice import KEY_VARIABLE, AdviceRegister
from countermove.production.open_advice.keys import key_file
from countermove.production.open_advice.register import AdvisedMove
from countermove.production.registry import Registry

ADVICE = {
    "anna": {"income": AdvisedMove(1.0, 40.0)},
    "ben": {"open_loans": AdvisedMove(-1.0, 0.0)},
}
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def register(tmp_path, clock, monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return AdviceRegister(Registry(str(tmp_path / "models"), clock=clock))


def test_it_holds_no_id_and_nothing_but_the_advised_columns(register, tmp_path):
    """What is on disk does not name anybody; the key lies outside the registry, for its owner."""
    register.write("may", "000001-x", ADVICE, 180)
    stored = (tmp_path / "models" / "open_advice" / "may.json").read_text()
    assert "anna" not in stored
    assert "ben" not in stored
    columns = [list(of) for of in json.loads(stored)["people"].values()]
    assert sorted(columns) == [["income"], ["open_loans"]]
    key = key_file(register.registry.store)
    assert tmp_path / "models" not in key.parents
    assert key.stat().st_mode & 0o077 == 0


def test_people_are_found_again_by_id(register):
    """By whoever has the key; others are not in it."""
    register.write("may", "000001-x", ADVICE, 180)
    found = register.of_people(["anna", "carl"])
    assert list(found) == ["anna"]
    ((batch, person),) = found["anna"]
    assert batch.version == "000001-x"
    assert batch.people[person] == {"income": (1.0, 40.0)}


def test_what_has_expired_is_deleted(register, clock, tmp_path):
    """On the day itself, by the next run that looks."""
    register.write("may", "000001-x", ADVICE, 180)
    clock.now = START + timedelta(days=179)
    assert len(register.open()) == 1
    clock.now = START + timedelta(days=180)
    assert register.open() == []
    assert not (tmp_path / "models" / "open_advice" / "may.json").exists()


def test_writing_again_replaces_and_an_interrupted_write_keeps_the_old(register, monkeypatch):
    """A batch that is decided again leaves its last advice; a full disk leaves what was there."""
    register.write("may", "000001-x", ADVICE, 180)
    register.write("may", "000002-x", {"ben": ADVICE["ben"]}, 180)
    assert list(register.of_people(["anna", "ben"])) == ["ben"]

    def full(path, content):
        path.write_bytes(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storage, "write_through", full)
    with pytest.raises(StorageError, match="No space left"):
        register.write("may", "000003-x", ADVICE, 180)
    assert register.read("may").version == "000002-x"
    assert register.names() == ["may"]


def test_a_person_is_forgotten(register, tmp_path):
    """Alone; a batch without people has no file."""
    register.write("may", "000001-x", ADVICE, 180)
    assert register.forget("anna") == {"may": 1}
    assert list(register.of_people(["anna", "ben"])) == ["ben"]
    assert register.forget("anna") == {}
    register.forget("ben")
    assert not (tmp_path / "models" / "open_advice" / "may.json").exists()


def test_a_damaged_file_is_refused_by_name(register, tmp_path):
    """An altered promise to people is not honoured, and not silently dropped."""
    register.write("may", "000001-x", ADVICE, 180)
    path = tmp_path / "models" / "open_advice" / "may.json"
    path.write_text(path.read_text().replace("40.0", "10.0"))
    with pytest.raises(ModelFileError, match=r"may\.json was altered"):
        register.open()
    path.write_bytes(storage.seal({"format_version": 1, "batch": "may"}))
    with pytest.raises(ModelFileError, match="does not hold open advice"):
        register.open()


def test_a_lost_key_and_a_short_one_are_refused(register, monkeypatch):
    """Without the key nobody would be recognised, and a new one would hide that."""
    register.write("may", "000001-x", ADVICE, 180)
    key_file(register.registry.store).unlink()
    for use in (lambda: register.of_people(["anna"]), lambda: register.forget("anna")):
        with pytest.raises(ParameterError, match="advice_key, is not there"):
            use()
    with pytest.raises(ParameterError, match="advice_key, is not there"):
        register.write("june", "000001-x", ADVICE, 180)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ParameterError, match=f"{KEY_VARIABLE} has 5 characters; at least 32"):
        register.of_people(["anna"])


def test_a_registry_elsewhere_needs_the_key_from_the_environment(monkeypatch, clock):
    """There is no folder beside it to keep one in."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    register = AdviceRegister(Registry("memory://advice-register", clock=clock))
    with pytest.raises(ParameterError, match=f"set {KEY_VARIABLE}"):
        register.write("may", "000001-x", ADVICE, 180)
    monkeypatch.setenv(KEY_VARIABLE, "k" * 40)
    register.write("may", "000001-x", ADVICE, 180)
    assert list(register.of_people(["anna"])) == ["anna"]
