"""Batches of applicants: everybody gets one decision, by one champion, once.

The same batch is never scored twice; the same id never stands for two batches; one
batch is never decided by two champions. An interrupted run resumes where it stopped.
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
from countermove.data.quarantine import words
from countermove.data.schema import Schema
from countermove.errors import DataError, ModelFileError
from countermove.execution import Execution, Mapper, map_parts
from countermove.production.lock import held
from countermove.production.open_advice import AdviceRegister, Honoured
from countermove.production.open_advice.honour import advised_people
from countermove.production.registry import Registry, StoredVersion
from countermove.production.scoring.applicants import (
    SHEET,
    Admitted,
    admit,
    admitted_before,
    content_digest,
)
from countermove.production.scoring.records import FORGOTTEN, BatchFolder, BatchStart, counted
from countermove.production.scoring.task import ScoreTask, ScoringRule, certificate_id, same_actions
from countermove.recourse.advise import AdviceTerms
from countermove.recourse.lasting import NONE_KEPT, refits_of_model
from countermove.recourse.pare import PromiseTerms
from countermove.response import Response

if TYPE_CHECKING:
    from pathlib import Path

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoringSettings:
    """What decisions about applicants depend on, beside the champion itself.

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
    said
        How advice is chosen and said; the defaults unless given.
    open_advice_days
        How long advice is honoured: whoever follows it is approved, also by a later champion.
        None: no register is kept.
    """

    registry: Registry
    schema: Schema
    people: Callable[[StoredVersion], Response]
    terms: PromiseTerms
    method: str
    seed: int
    said: AdviceTerms | None = None
    open_advice_days: int | None = None

    @property
    def register(self) -> AdviceRegister | None:
        """Where open advice is kept; None if it is not, or people have no ids to know them by."""
        keeps = self.open_advice_days is not None and self.schema.id is not None
        return AdviceRegister(self.registry) if keeps else None

    def task(self, rule: ScoringRule, admitted: Partitions) -> ScoreTask:
        """Return the work on admitted rows, with the advice that is open for their people."""
        register = self.register
        if register is None:
            return ScoreTask(rule, self.schema)
        return ScoreTask(rule, self.schema, Honoured.of(register, self.registry, admitted))

    def rule_of(self, stored: StoredVersion) -> ScoringRule:
        """Return a stored version with its people and terms."""
        response = self.people(stored)
        if not same_actions(stored.model, response):
            logger.warning(
                "allowed actions differ from those version %s was trained with: its promise is "
                "not made to them (no certificate); retrain, or restore serm.actions",
                stored.version,
            )
        rule = ScoringRule.of(stored, response, self.terms, self.method, self.seed, self.said)
        if rule.said.confidence is not None and refits_of_model(stored.model) is None:
            logger.warning(
                "version %s knows nothing of its next fit, so advice has no margin against a "
                "refit (recourse.confidence). %s",
                stored.version, NONE_KEPT,
            )  # fmt: skip
        return rule


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
    """
    place = BatchFolder(folder, batch)
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
        rule = task.rule
        # Before the batch is published: advice that people may have read is always in the register.
        _keep_open(place, rule, settings, admitted.people)
        manifest = _manifest(started, rule, settings, applicants) | counted(place.work / "scored")
        manifest |= admitted.facts(settings.schema.quarantine)
        if (place.work / SHEET).is_file():
            shutil.copy2(place.work / SHEET, place.work / "scored" / SHEET)
        manifest |= {"finished_at": settings.registry.time(), "kept_parts": kept}
        manifest |= {"seconds": round(time.perf_counter() - clock, 3)}
        place.publish(place.work / "scored", manifest)
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
    rule = settings.rule_of(_version(settings.registry, started, place))
    logger.info(
        "batch %r was begun on %s by version %s and is resumed",
        place.batch, started.started_at, started.version,
    )  # fmt: skip
    admitted = admitted_before(place.work, applicants.rows_per_part)
    if admitted is None:
        admitted = admit(applicants, settings.schema, place.work, mapper, place.batch)
    task = settings.task(rule, admitted.people)
    if task.fingerprint() != started.settings:
        logger.warning(
            "settings changed since batch %r was begun: it is decided again", place.batch
        )
        shutil.rmtree(place.work / "scored", ignore_errors=True)
        started = replace(started, settings=task.fingerprint())
        started.write(place.work)
    return started, task, admitted


def _keep_open(
    place: BatchFolder, rule: ScoringRule, settings: ScoringSettings, admitted: Partitions
) -> None:
    """Write the advice of a scored batch into the register."""
    register, days = settings.register, settings.open_advice_days
    if register is None or days is None:
        return
    parts = tuple(sorted((place.work / "scored").glob("part-*.parquet")))
    units = rule.model.standardiser
    advised = advised_people(Partitions(parts), admitted, settings.schema, units)
    register.write(place.batch, rule.version, advised, days)


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
    rule = settings.rule_of(champion)
    shutil.rmtree(place.work, ignore_errors=True)
    try:
        admitted = admit(applicants, settings.schema, place.work, mapper, place.batch)
    except DataError:
        shutil.rmtree(place.work, ignore_errors=True)
        raise
    task = settings.task(rule, admitted.people)
    if content_digest(applicants) != content:
        raise DataError(f"the files of batch {place.batch!r} changed while they were read")
    now = settings.registry.time()
    started = BatchStart(
        place.batch, content, champion.version, champion.sha256, task.fingerprint(), now
    )
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
    started: BatchStart, rule: ScoringRule, settings: ScoringSettings, applicants: Partitions
) -> dict[str, Any]:
    """Return what the manifest says beside the counts."""
    promises = [
        {"id": certificate_id(claim), "name": claim["name"], "applicable": claim["applicable"]}
        for claim in rule.claims
    ]
    return {
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
