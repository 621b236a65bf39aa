"""Kill -9 at every step of a withdrawal, a correction, a confirmation and a change of keys.

No champion, batch or advice is lost: the ledger is the old one or the new one, and the same
command then does what was not done.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from countermove.errors import LockedError, StorageError
from countermove.production.lock import held
from countermove.production.open_advice import AdviceRegister
from countermove.production.open_advice.register import AdvisedMove
from countermove.production.registry import Registry, Signer, recover
from countermove.production.retraining.ledger import BatchLedger

from .dying import batch
from .test_full_disk import fill, small_disk  # noqa: F401  (a fixture)
from .test_killed_promotions import champion_of, copied, opened, steps_of

POINTS = 200
"""Kill points over the new steps, as many as were asked for."""
ACTS = ("withdraw", "supersede", "restore", "confirm")
KEYS = (b"n" * 32, b"o" * 32)


def files(*, corrected: bool = False):
    return [batch("one", 4 if corrected else 3), batch("two", 3)]


def ledger_of(folder: Path) -> list[tuple[str, str]]:
    return [(entry.batch, entry.act) for entry in BatchLedger(opened(folder)[0]).entries]


@pytest.fixture(scope="module")
def before(forker, tmp_path_factory) -> Path:
    """A registry whose champion was made of two batches, with advice that is open."""
    folder = tmp_path_factory.mktemp("before_acts")
    assert forker.order("promote", folder)["code"] == 0
    assert forker.order("use", folder)["code"] == 0, forker.log.read_text()
    registry, _ = opened(folder)
    advised = {"p": {"a": AdvisedMove(1.0, 2.0)}}
    AdviceRegister(registry).write("may", champion_of(registry), advised, 30)
    return folder


@pytest.fixture(scope="module")
def withdrawn(forker, before, tmp_path_factory) -> Path:
    """The same with a batch withdrawn."""
    folder = copied(before, tmp_path_factory.mktemp("withdrawn") / "place")
    assert forker.order("withdraw", folder)["code"] == 0, forker.log.read_text()
    return folder


def check(folder: Path, source: Path, act: str) -> bool:
    """Check what a killed command left; return whether it had been done."""
    registry, _ = opened(folder)
    old, _ = opened(source)
    recover(registry)
    assert recover(registry) == []
    assert champion_of(registry) == champion_of(old)
    assert [each.version for each in registry.decisions()] == [d.version for d in old.decisions()]
    assert [kept.people for kept in AdviceRegister(registry).open()] == [
        kept.people for kept in AdviceRegister(old).open()
    ]
    entries, known = ledger_of(folder), ledger_of(source)
    assert entries[: len(known)] == known
    assert len(entries) - len(known) in (0, 1)
    # Every batch is still accounted for.
    states = {s.batch for s in BatchLedger(registry).states(files(corrected=act == "supersede"))}
    assert states >= {"one", "two"}
    assert not [path for path in (folder / "registry").rglob(".*") if path.is_file()]
    return len(entries) > len(known)


def walk(forker, act: str, source: Path, folder: Path, every: int) -> tuple[int, int]:
    """Kill a command at its steps; return how many there were, and after how many it was done."""
    steps = done = 0
    for _ in steps_of(forker, act, source, folder, every):
        steps += 1
        was_done = check(folder, source, act)
        done += was_done
        again = forker.order(act, folder)["code"]
        # A second withdrawal or correction is refused in words, a killed one is done now.
        assert again == (1 if was_done and act != "confirm" else 0), forker.log.read_text()
        assert len(ledger_of(folder)) == len(ledger_of(source)) + 1 + (
            was_done and act == "confirm"
        )
    return steps, done


@pytest.mark.parametrize("act", ["withdraw", "supersede"])
def test_some_steps(forker, before, tmp_path, act):
    steps, done = walk(forker, act, before, tmp_path / "place", every=16)
    assert 0 < done < steps


@pytest.mark.fault
@pytest.mark.slow
def test_every_step_of_every_act(forker, before, withdrawn, tmp_path, capsys):
    total = 0
    for act in ACTS:
        source = withdrawn if act == "restore" else before
        steps, done = walk(forker, act, source, tmp_path / act, every=1)
        assert 0 < done < steps
        total += steps
        with capsys.disabled():
            sys.stdout.write(f"\n{act}: {steps} steps, done after {done}")
    assert total >= POINTS


@pytest.mark.fault
@pytest.mark.slow
def test_every_step_of_a_change_of_keys(forker, before, tmp_path):
    for _ in steps_of(forker, "sign", before, tmp_path / "place", every=3):
        registry = Registry(str(tmp_path / "place/registry"), signer=Signer(KEYS, "accept"))
        recover(registry)
        assert champion_of(registry) == champion_of(opened(before)[0])
        registry.sign_all()
        signed = Registry(str(tmp_path / "place/registry"), signer=Signer(KEYS[:1]))
        assert champion_of(signed) == champion_of(registry)
        assert len(signed.decisions()) == 2
        assert len(AdviceRegister(signed).open()) == 1


@pytest.mark.fault
@pytest.mark.slow
def test_a_promotion_killed_after_a_withdrawal_still_names_the_batch(forker, withdrawn, tmp_path):
    # Whatever a killed run left, the withdrawal is pending until a decision was made without it.
    folder = tmp_path / "place"
    seen = set()
    for _ in steps_of(forker, "promote", withdrawn, folder, every=3):
        registry, _ = opened(folder)
        recover(registry)
        ledger = BatchLedger(registry)
        assert ledger.withdrawn() == ["two"]
        assert [each.name for each in ledger.check_new(files()).batches] == ["one"]
        seen.add(champion_of(registry))
    assert len(seen) > 1


def test_a_full_disk_leaves_the_ledger_as_it_was(small_disk, forker):  # noqa: F811
    assert forker.order("promote", small_disk)["code"] == 0
    assert forker.order("use", small_disk)["code"] == 0
    assert forker.order("withdraw", small_disk)["code"] == 0
    ballast = fill(small_disk, leave=0)
    registry = Registry(str(small_disk / "registry"))
    with pytest.raises(StorageError, match="No space left on device"):
        BatchLedger(registry).supersede("one", files(corrected=True), "")
    assert ledger_of(small_disk) == [("two", "withdrawn")]
    ballast.unlink()
    BatchLedger(registry).supersede("one", files(corrected=True), "")
    assert ledger_of(small_disk) == [("two", "withdrawn"), ("one", "superseded")]


def test_a_read_only_registry_is_said_so(before, tmp_path, monkeypatch):
    folder = copied(before, tmp_path / "place")

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    registry, _ = opened(folder)
    monkeypatch.setattr("countermove.data.storage.write_through", refuse)
    with pytest.raises(StorageError, match="Read-only file system; the previous content is kept"):
        BatchLedger(registry).withdraw("two", files(), "")
    assert ledger_of(folder) == []


def test_a_folder_that_may_not_be_written_to_is_said_so(before, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = copied(before, tmp_path / "place")
    (folder / "registry").chmod(0o555)
    try:
        with pytest.raises(StorageError, match="Permission denied"):
            BatchLedger(opened(folder)[0]).withdraw("two", files(), "")
    finally:
        (folder / "registry").chmod(0o755)
    assert ledger_of(folder) == []


def test_under_a_clock_that_goes_back_acts_keep_their_order(forker, before, tmp_path):
    folder = copied(before, tmp_path / "place")
    for act in ("withdraw", "restore", "withdraw", "supersede"):
        assert forker.order(act, folder)["code"] == 0, forker.log.read_text()
    assert ledger_of(folder) == [
        ("two", "withdrawn"), ("two", "restored"), ("two", "withdrawn"), ("one", "superseded")
    ]  # fmt: skip
    times = [entry.at for entry in BatchLedger(opened(folder)[0]).entries]
    assert times == sorted(times, reverse=True)
    chosen = BatchLedger(opened(folder)[0]).check_new(files(corrected=True))
    assert (chosen.new, chosen.withdrawn) == (["one"], ["one", "two"])


def test_while_another_machine_is_at_work_nothing_is_changed(forker, before, tmp_path):
    folder = copied(before, tmp_path / "place")
    with held(folder / ".lock"):
        assert forker.order("withdraw", folder)["code"] == 1
        assert "LockedError" in forker.log.read_text()
        with pytest.raises(LockedError, match=r"on .* is at work"), held(folder / ".lock"):
            pass
    assert ledger_of(folder) == []
    assert forker.order("withdraw", folder)["code"] == 0


def test_a_killed_holder_is_named_to_its_successor(forker, before, tmp_path):
    folder = copied(before, tmp_path / "place")
    assert forker.order("withdraw", folder, kill_at=40)["killed"]
    with held(folder / ".lock") as died:
        assert died is not None
        assert died.startswith("process ")
    with held(folder / ".lock") as died:
        assert died is None
