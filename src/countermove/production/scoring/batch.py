"""Batches of applicants: everybody gets one decision, by one champion, once.

The same batch is never scored twice; the same id never stands for two batches; one
batch is never decided by two champions. An interrupted run resumes where it stopped.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from countermove.data.partitions import Partitions
from countermove.data.quarantine import words
from countermove.errors import DataError, ModelFileError, StorageError
from countermove.execution import Execution, Mapper, map_parts
from countermove.production.lock import held
from countermove.production.open_advice.honour import advised_people
from countermove.production.registry import Registry, StoredVersion
from countermove.production.scoring.applicants import (
    SHEET,
    Admitted,
    admit,
    admitted_before,
    content_digest,
)
from countermove.production.scoring.exploring import PROPENSITY
from countermove.production.scoring.records import (
    COMPARED,
    FORGOTTEN,
    BatchFolder,
    BatchStart,
    counted,
    drawn,
)
from countermove.production.scoring.settings import ScoringSettings
from countermove.production.scoring.task import CHALLENGER, ScoreTask, certificate_id

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scored:
    """A scored batch.

    Attributes
    ----------
    folder
        Holds ``part-00000.parquet`` … and ``manifest.json``.
    manifest
        What was scored, by which version, and the counts.
    already
        Whether an earlier run had done it, and this one did nothing.
    """

    folder: Path
    manifest: dict[str, Any]
    already: bool

    def words(self) -> str:
        """Return the outcome as one line."""
        said = self.manifest
        if self.already:
            return (
                f"batch {said['batch']!r} was already scored by version {said['version']} on "
                f"{said['finished_at']}; nothing was done"
            )
        counts = ", ".join(f"{count} {name}" for name, count in said["decisions"].items())
        done = f"batch {said['batch']!r} scored by version {said['version']}: {counts}"
        done += "".join(f"; {sentence}" for sentence in _tried(said))
        if not said["set_aside"]:
            return done
        return (
            f"{done}; {words(said['set_aside'], said['applicants'])}, nobody among them has a "
            f"decision: see {self.folder / SHEET}"
        )

    def people(self) -> Partitions:
        """Return decisions and advice, in parts."""
        return Partitions(tuple(self.folder / part["file"] for part in self.manifest["parts"]))

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the run, JSON-ready."""
        return {"folder": str(self.folder), "already": self.already, "manifest": self.manifest}


def _tried(said: dict[str, Any]) -> list[str]:
    """Return what a challenger and exploration did, a sentence each."""
    found = []
    if CHALLENGER in said:
        counts, name = said[COMPARED], said[CHALLENGER]["version"]
        agree = counts["both_approve"] + counts["both_refuse"]
        found.append(f"challenger {name} agrees on {agree} of {said['rows']}")
    explored = said.get("exploration")
    if explored is not None:
        found.append(
            f"{explored['approved']} of {explored['refused']} refused are approved by draw "
            f"(propensity {explored['propensity']:.2%})"
        )
    return found


def score_batch(
    batch: str,
    applicants: Partitions,
    settings: ScoringSettings,
    folder: Path,
    execution: Execution,
) -> Scored:
    """Decide about every applicant of a batch and advise the refused.

    Guarantee: ``<folder>/<batch>/`` holds everybody of the batch, decided by one version or
    listed in ``quarantine.csv`` with what is wrong, or does not exist. Once it exists it never
    changes.

    Parameters
    ----------
    batch
        Its id.
    applicants
        Its raw files.
    settings
        What decisions depend on.
    folder
        Of all scored batches.
    execution
        Who works.

    Raises
    ------
    DataError
        If more rows than ``schema.quarantine`` allows cannot be read (nothing is decided
        then), or the id stands for other people.
    LockedError
        If another run is at work on the same batch.
    ModelFileError
        If there is no champion, or the one the batch was begun with no longer loads.
    StorageError
        If the disk is full or read-only, or another machine published the batch meanwhile.
    """
    settings.explored()  # Refused without a key, before anybody is looked at.
    try:
        return _scored_once(BatchFolder(folder, batch), applicants, settings, execution)
    except OSError as error:
        raise StorageError(
            f"batch {batch!r} cannot be written: {error.strerror or error}. Nothing of it was "
            "published; free space or fix the permissions, and run again"
        ) from error


def _scored_once(
    place: BatchFolder, applicants: Partitions, settings: ScoringSettings, execution: Execution
) -> Scored:
    """Score a batch under its lock, unless it was scored before."""
    batch = place.batch
    with held(place.lock):
        content = content_digest(applicants)
        known = place.manifest()
        if known is not None:
            if not known.get(FORGOTTEN):  # Else its files were changed on purpose.
                _check_same(batch, known["content_sha256"], content, "scored", known["finished_at"])
            shutil.rmtree(place.work, ignore_errors=True)
            return Scored(place.published, known, already=True)
        clock = time.perf_counter()
        with execution.open() as mapper:
            started, task, admitted = _begun(place, applicants, content, settings, mapper)
            kept = _score_parts(place, task, admitted.people, mapper)
        finished = place.work / "scored"
        # Before the batch is published: advice that people may have read is always in the register.
        _keep_open(place, finished, task, settings, admitted.people)
        manifest = _manifest(started, task, settings, applicants) | counted(finished)
        if task.exploration is not None:
            manifest["exploration"] |= drawn(finished)
        manifest |= admitted.facts(settings.schema.quarantine)
        if (place.work / SHEET).is_file():
            shutil.copy2(place.work / SHEET, finished / SHEET)
        manifest |= {"finished_at": settings.registry.time(), "kept_parts": kept}
        manifest |= {"seconds": round(time.perf_counter() - clock, 3)}
        place.publish(finished, manifest)
    return Scored(place.published, manifest, already=False)


def _check_same(batch: str, before: str, now: str, done: str, when: str) -> None:
    if before != now:
        raise DataError(
            f"batch {batch!r} was {done} on {when} with other content: its SHA-256 was {before}, "
            f"now it is {now}; give other people another batch id, or restore the file"
        )


def _begun(
    place: BatchFolder,
    applicants: Partitions,
    content: str,
    settings: ScoringSettings,
    mapper: Mapper,
) -> tuple[BatchStart, ScoreTask, Admitted]:
    """Return the work on the batch and its admitted rows: as begun before, or begun now."""
    started = BatchStart.read(place.work)
    if started is None:
        return _begin(place, applicants, content, settings, mapper)
    _check_same(place.batch, started.content_sha256, content, "begun", started.started_at)
    champion = _version(settings.registry, started, place)
    challenger = settings.challenger_of(champion, started.challenger)
    logger.info(
        "batch %r was begun on %s by version %s and is resumed",
        place.batch, started.started_at, started.version,
    )  # fmt: skip
    admitted = admitted_before(place.work, applicants.rows_per_part)
    if admitted is None:
        admitted = admit(applicants, settings.schema, place.work, mapper, place.batch)
    task = settings.task(champion, challenger, admitted.people)
    if task.fingerprint() != started.settings:
        logger.warning(
            "settings changed since batch %r was begun: it is decided again", place.batch
        )
        shutil.rmtree(place.work / "scored", ignore_errors=True)
        beside = "" if challenger is None else challenger.version
        started = replace(started, settings=task.fingerprint(), challenger=beside)
        started.write(place.work)
    return started, task, admitted


def _keep_open(
    place: BatchFolder,
    finished: Path,
    task: ScoreTask,
    settings: ScoringSettings,
    admitted: Partitions,
) -> None:
    """Write the advice of a scored batch into the register."""
    register, days = settings.register, settings.open_advice_days
    if register is None or days is None:
        return
    units = task.rule.model.standardiser
    advised = advised_people(_parts(finished), admitted, settings.schema, units)
    register.write(place.batch, task.rule.version, advised, days)


def _parts(folder: Path) -> Partitions:
    return Partitions(tuple(sorted(folder.glob("part-*.parquet"))))


def _begin(
    place: BatchFolder,
    applicants: Partitions,
    content: str,
    settings: ScoringSettings,
    mapper: Mapper,
) -> tuple[BatchStart, ScoreTask, Admitted]:
    champion = settings.registry.champion()
    if champion is None:
        raise ModelFileError(
            f"there is no champion in {settings.registry.store.where()} yet, so nothing can "
            "be decided; make one first: kedro run --pipeline=retrain"
        )
    challenger = settings.challenger_of(champion)
    shutil.rmtree(place.work, ignore_errors=True)
    try:
        admitted = admit(applicants, settings.schema, place.work, mapper, place.batch)
    except DataError:
        shutil.rmtree(place.work, ignore_errors=True)
        raise
    task = settings.task(champion, challenger, admitted.people)
    if content_digest(applicants) != content:
        raise DataError(f"the files of batch {place.batch!r} changed while they were read")
    now, beside = settings.registry.time(), "" if challenger is None else challenger.version
    chosen = (champion.version, champion.sha256, task.fingerprint())
    started = BatchStart(place.batch, content, *chosen, now, beside)
    started.write(place.work)
    return started, task, admitted


def _version(registry: Registry, started: BatchStart, place: BatchFolder) -> StoredVersion:
    """Return the version a batch was begun with; nothing else may finish it."""
    try:
        stored = registry.load(started.version)
    except ModelFileError as error:
        raise ModelFileError(
            f"batch {started.batch!r} was begun by version {started.version}, which no longer "
            f"loads, and no other may decide the rest: {error}. Restore it, or remove {place.work} "
            "to begin again with the present champion (nothing was published)"
        ) from error
    if stored.sha256 != started.model_sha256:
        raise ModelFileError(
            f"batch {started.batch!r} was begun by version {started.version} with the model "
            f"{started.model_sha256}, but that version now holds {stored.sha256}; restore it, or "
            f"remove {place.work} to begin again (nothing was published)"
        )
    return stored


def _score_parts(place: BatchFolder, task: ScoreTask, admitted: Partitions, mapper: Mapper) -> int:
    """Score what is not scored yet; return how many parts an earlier run had done."""
    finished = place.work / "scored"
    if finished.is_dir():  # Interrupted between the last part and the manifest.
        return len(list(finished.glob("part-*.parquet")))
    return map_parts(task, admitted, finished, mapper).kept


def _manifest(
    started: BatchStart, task: ScoreTask, settings: ScoringSettings, applicants: Partitions
) -> dict[str, Any]:
    """Return what the manifest says beside the counts."""
    rule, challenger = task.rule, task.challenger
    promises = [
        {"id": certificate_id(claim), "name": claim["name"], "applicable": claim["applicable"]}
        for claim in rule.claims
    ]
    said: dict[str, Any] = {
        "batch": started.batch,
        "dataset": settings.schema.name,
        "content_sha256": started.content_sha256,
        "files": [path.name for path in applicants.files],
        "version": started.version,
        "model_sha256": started.model_sha256,
        "schema_sha256": settings.schema.digest(),
        "certificate": rule.certificate,
        "certificates": promises,
        "method": rule.terms.method,
        "threshold": rule.model.threshold,
        "package_version": version("countermove"),
        "started_at": started.started_at,
    }
    if task.exploration is not None:
        said["exploration"] = {PROPENSITY: task.exploration.share}
    if challenger is None:
        return said
    about = {"threshold": challenger.model.threshold, "model_sha256": challenger.sha256}
    return said | {CHALLENGER: {"version": challenger.version} | about}
