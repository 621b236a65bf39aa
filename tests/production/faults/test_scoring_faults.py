"""Full and read-only disks, a clock set back and two machines beside a challenger and draws.

The batch is published whole or not at all, advice given before stays open, and a later run decides
the same about everybody.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from countermove.errors import LockedError, StorageError
from countermove.production.open_advice import AdviceRegister
from countermove.production.registry import Registry
from countermove.production.scoring import batch as scoring
from countermove.production.scoring.exploring import KEY_VARIABLE, ExplorationTerms

from ..tiny_champion import DAYS, PEOPLE, SCHEMA, Office, keep, promote
from .test_full_disk import fill, small_disk  # noqa: F401  (a fixture)
from .test_two_at_once import holder

TRIED = {"challenger": "newest", "exploration": ExplorationTerms(0.4), **DAYS}


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "k" * 40)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """An office with a champion, a challenger, open advice and people who apply."""
    office = Office(tmp_path_factory.mktemp("template"))
    promote(office.registry)
    PEOPLE[30:60].to_csv(office.batches / "april.csv", index=False)
    office.score("april", **DAYS)
    keep(office.registry, shift=1.0)
    PEOPLE[:30].to_csv(office.batches / "may.csv", index=False)
    return office.folder


@pytest.fixture
def told(template, tmp_path) -> pd.DataFrame:
    """What is decided where nothing goes wrong."""
    return opened(template, tmp_path / "whole").score("may", rows=10, **TRIED).people().read()


def opened(template: Path, folder: Path) -> Office:
    shutil.copytree(template, folder)
    return Office(folder)


def advised(office: Office) -> dict[str, int]:
    kept = AdviceRegister(Registry(str(office.registry))).open()
    return {batch.batch: len(batch.people) for batch in kept}


def check(office: Office, told: pd.DataFrame) -> None:
    """Check that the batch is decided as ever, and nothing is half done."""
    again = office.score("may", rows=10, **TRIED).people().read()
    pd.testing.assert_frame_equal(again, told)
    assert set(advised(office)) == {"april", "may"}
    assert not list(office.scored.glob(".*.partial"))


@contextmanager
def read_only(place: Path) -> Iterator[None]:
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)


@pytest.mark.fault
@pytest.mark.slow
def test_a_full_disk_leaves_nothing_half_published(small_disk, template, told):  # noqa: F811
    office = opened(template, small_disk / "office")
    before, refused = advised(office), list[str]()
    for leave in (0, 4096, 16_384, 40_960, 81_920):
        ballast = fill(small_disk, leave)
        try:
            office.score("may", rows=10, **TRIED)
        except StorageError as error:
            refused.append(str(error))
            assert not (office.scored / "may").exists()
        assert advised(office)["april"] == before["april"]
        assert Registry(str(office.registry)).champion() is not None
        ballast.unlink()
    assert len(refused) >= 2
    assert all("No space left on device" in said for said in refused)
    check(office, told)


@pytest.mark.fault
@pytest.mark.slow
def test_a_read_only_disk_is_said_so(small_disk, template, told):  # noqa: F811
    office = opened(template, small_disk / "office")
    with read_only(small_disk), pytest.raises(StorageError, match="Read-only file system"):
        office.score("may", rows=10, **TRIED)
    assert set(advised(office)) == {"april"}
    check(office, told)


@pytest.mark.fault
@pytest.mark.slow
def test_under_a_clock_set_back_people_are_drawn_and_advice_stays_open(tmp_path, template, told):
    office = opened(template, tmp_path / "office")
    past = Registry(
        str(office.registry), SCHEMA.digest(), clock=lambda: datetime(2020, 1, 1, tzinfo=UTC)
    )
    scored = office.score("may", rows=10, registry=past, **TRIED)
    assert scored.manifest["finished_at"].startswith("2020")
    columns = ["row_id", "version", "challenger", "explored", "propensity"]
    pd.testing.assert_frame_equal(scored.people().read()[columns], told[columns])
    assert advised(office)["april"] > 0


@pytest.mark.fault
@pytest.mark.slow
def test_of_two_machines_one_scores_and_the_other_leaves(tmp_path, template, told, monkeypatch):
    office = opened(template, tmp_path / "office")
    with holder(office.scored / ".may.lock", 60), pytest.raises(LockedError, match="is at work"):
        office.score("may", rows=10, **TRIED)
    # Machines whose locks do not see each other: what was published first stays as it is.
    finish = scoring.BatchFolder.publish

    def late(place, finished, manifest):
        monkeypatch.setattr(scoring.BatchFolder, "publish", finish)
        office.score("may", rows=10, **TRIED)
        finish(place, finished, manifest)

    monkeypatch.setattr(scoring, "held", lambda *_: nullcontext())
    monkeypatch.setattr(scoring.BatchFolder, "publish", late)
    with pytest.raises(StorageError, match="was published by another run"):
        office.score("may", rows=10, **TRIED)
    check(office, told)
