"""Batches of applicants: everybody judged once, by one champion, and told once.

The same batch is never scored twice; the same id never stands for two batches; one
batch is never judged by two champions. An interrupted run is taken up where it stopped.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from countermove.data.partitions import Partitions
from countermove.data.schema import Schema
from countermove.errors import DataError, ModelFileError
from countermove.execution import Execution, Mapper, map_parts
from countermove.production.applicants import admit, content_digest
from countermove.production.certificate_ids import certificate_id
from countermove.production.lock import held
from countermove.production.registry import Registry, StoredVersion
from countermove.production.scoring_records import Place, Started, counted
from countermove.production.scoring_task import Judge, ScoreTask, same_actions
from countermove.recourse.pare import PromiseTerms
from countermove.response import Response

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rules:
    """What applicants are judged by, beside the champion itself.

    Parameters
    ----------
    registry
        Holds the champion.
    schema
        What the columns mean.
    people
        From a stored version to the people it was made for: what they can do, at what cost.
    terms
        How recourse is searched for, where the champion does not say.
    method
        Of the search.
    seed
        Decides every draw.
    """

    registry: Registry
    schema: Schema
    people: Callable[[StoredVersion], Response]
    terms: PromiseTerms
    method: str
    seed: int

    def judge(self, stored: StoredVersion) -> Judge:
        """Return the judge that a stored version is."""
        response = self.people(stored)
        if not same_actions(stored.model, response):
            logger.warning(
                "people may do other things now than when version %s was trained: its promise is "
                "not made to them (no certificate); retrain, or restore serm.actions",
                stored.version,
            )
        return Judge.of(stored, response, self.terms, self.method, self.seed)


@dataclass(frozen=True)
class Scored:
    """A batch that everybody in it has been told about.

    Attributes
    ----------
    folder
        Holds ``part-00000.parquet`` … and ``manifest.json``.
    manifest
        What was judged, by what, and the counts.
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
        return f"batch {said['batch']!r} scored by version {said['version']}: {counts}"

    def people(self) -> Partitions:
        """Return what everybody was told, in parts."""
        return Partitions(tuple(self.folder / part["file"] for part in self.manifest["parts"]))

    def to_json(self) -> dict[str, Any]:
        """Return the facts of the run, JSON-ready."""
        return {"folder": str(self.folder), "already": self.already, "manifest": self.manifest}


def score_batch(
    batch: str, applicants: Partitions, rules: Rules, folder: Path, execution: Execution
) -> Scored:
    """Judge every applicant of a batch and tell the refused what to do.

    Guarantee: ``<folder>/<batch>/`` holds everybody of the batch, judged by one version, or
    does not exist. Once it exists it never changes.

    Parameters
    ----------
    batch
        Its id.
    applicants
        Its raw files.
    rules
        What they are judged by.
    folder
        Of all scored batches.
    execution
        Who works.

    Raises
    ------
    DataError
        If a row cannot be read (nobody is judged then), or the id stands for other people.
    LockedError
        If another run is at work on the same batch.
    ModelFileError
        If there is no champion, or the one the batch was begun with no longer loads.
    """
    place = Place(folder, batch)
    with held(place.lock):
        content = content_digest(applicants)
        known = place.manifest()
        if known is not None:
            _check_same(batch, known["content_sha256"], content, "scored", known["finished_at"])
            shutil.rmtree(place.work, ignore_errors=True)
            return Scored(place.published, known, already=True)
        clock = time.perf_counter()
        with execution.open() as mapper:
            started, judge, admitted = _begun(place, applicants, content, rules, mapper)
            kept = _judged(place, ScoreTask(judge, rules.schema), admitted, mapper)
        told = _told(started, judge, rules, applicants) | counted(place.work / "scored")
        told |= {"finished_at": rules.registry.time(), "kept_parts": kept}
        manifest = told | {"seconds": round(time.perf_counter() - clock, 3)}
        place.publish(place.work / "scored", manifest)
    return Scored(place.published, manifest, already=False)


def _check_same(batch: str, before: str, now: str, done: str, when: str) -> None:
    if before != now:
        raise DataError(
            f"batch {batch!r} was {done} on {when} with other content: its SHA-256 was {before}, "
            f"now it is {now}; give other people another batch id, or restore the file"
        )


def _begun(
    place: Place, applicants: Partitions, content: str, rules: Rules, mapper: Mapper
) -> tuple[Started, Judge, Partitions]:
    """Return what the batch is judged by and its admitted rows: as begun before, or begun now."""
    started = Started.read(place.work)
    if started is None:
        return _begin(place, applicants, content, rules, mapper)
    _check_same(place.batch, started.content_sha256, content, "begun", started.started_at)
    judge = rules.judge(_version(rules.registry, started, place))
    logger.info(
        "batch %r was begun on %s by version %s and is taken up again",
        place.batch, started.started_at, started.version,
    )  # fmt: skip
    settings = ScoreTask(judge, rules.schema).fingerprint()
    if settings != started.settings:
        logger.warning("settings changed since batch %r was begun: it is judged anew", place.batch)
        shutil.rmtree(place.work / "scored", ignore_errors=True)
        started = replace(started, settings=settings)
        started.write(place.work)
    files = tuple(sorted((place.work / "admitted").glob("*.parquet")))
    if files:
        return started, judge, Partitions(files, applicants.rows_per_part)
    return started, judge, admit(applicants, rules.schema, place.work, mapper, place.batch)


def _begin(
    place: Place, applicants: Partitions, content: str, rules: Rules, mapper: Mapper
) -> tuple[Started, Judge, Partitions]:
    champion = rules.registry.champion()
    if champion is None:
        raise ModelFileError(
            f"there is no champion in {rules.registry.store.where()} yet, so nobody can be judged; "
            "make one first: kedro run --pipeline=retrain"
        )
    judge = rules.judge(champion)
    shutil.rmtree(place.work, ignore_errors=True)
    try:
        admitted = admit(applicants, rules.schema, place.work, mapper, place.batch)
    except DataError:
        shutil.rmtree(place.work, ignore_errors=True)
        raise
    settings = ScoreTask(judge, rules.schema).fingerprint()
    if content_digest(applicants) != content:
        raise DataError(f"the files of batch {place.batch!r} changed while they were read")
    now = rules.registry.time()
    started = Started(place.batch, content, champion.version, champion.sha256, settings, now)
    started.write(place.work)
    return started, judge, admitted


def _version(registry: Registry, started: Started, place: Place) -> StoredVersion:
    """Return the version a batch was begun with; nothing else may finish it."""
    try:
        stored = registry.load(started.version)
    except ModelFileError as error:
        raise ModelFileError(
            f"batch {started.batch!r} was begun by version {started.version}, which no longer "
            f"loads, and no other may judge the rest: {error}. Restore it, or remove {place.work} "
            "to begin again with the present champion (nothing was published)"
        ) from error
    if stored.sha256 != started.model_sha256:
        raise ModelFileError(
            f"batch {started.batch!r} was begun by version {started.version} with the model "
            f"{started.model_sha256}, but that version now holds {stored.sha256}; restore it, or "
            f"remove {place.work} to begin again (nothing was published)"
        )
    return stored


def _judged(place: Place, task: ScoreTask, admitted: Partitions, mapper: Mapper) -> int:
    """Judge what is not judged yet; return how many parts an earlier run had done."""
    finished = place.work / "scored"
    if finished.is_dir():  # Interrupted between the last part and the manifest.
        return len(list(finished.glob("part-*.parquet")))
    return map_parts(task, admitted, finished, mapper).kept


def _told(started: Started, judge: Judge, rules: Rules, applicants: Partitions) -> dict[str, Any]:
    """Return what the manifest says beside the counts."""
    promises = [
        {"id": certificate_id(claim), "name": claim["name"], "applicable": claim["applicable"]}
        for claim in judge.claims
    ]
    return {
        "batch": started.batch,
        "dataset": rules.schema.name,
        "content_sha256": started.content_sha256,
        "files": [path.name for path in applicants.files],
        "version": started.version,
        "model_sha256": started.model_sha256,
        "schema_sha256": rules.schema.digest(),
        "certificate": judge.certificate,
        "certificates": promises,
        "method": judge.terms.method,
        "threshold": judge.model.threshold,
        "package_version": version("countermove"),
        "started_at": started.started_at,
    }
