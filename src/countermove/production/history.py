"""What was decided and how forecasts turned out, in a database people can query.

The registry is the truth; the history is filled from it, so a lost row comes
back with the next run and writing the same row twice changes nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pandas as pd
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    func,
    make_url,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from countermove.errors import LockedError, ModelFileError, StorageError, without_passwords
from countermove.production.registry import Decision

_TABLES = MetaData()
DECISIONS = Table(
    "countermove_decisions",
    _TABLES,
    Column("dataset", String(200), primary_key=True),
    Column("version", String(40), primary_key=True),
    Column("kind", String(20), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("at", String(40), nullable=False),
    Column("champion_before", String(40)),
    Column("champion_after", String(40)),
    Column("reasons", Text, nullable=False),
)
OUTCOMES = Table(
    "countermove_outcomes",
    _TABLES,
    Column("dataset", String(200), primary_key=True),
    Column("champion", String(40), primary_key=True),
    Column("batch", String(200), primary_key=True),
    Column("claim", String(80), primary_key=True),
    Column("direction", String(10), nullable=False),
    Column("forecast", Float, nullable=False),
    Column("level", Float),
    Column("error", Float, nullable=False),
    Column("people", Integer, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("contradicted", Boolean, nullable=False),
)
EVENTS = Table(
    "countermove_events",
    _TABLES,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("dataset", String(200), nullable=False),
    Column("at", String(40), nullable=False),
    Column("words", Text, nullable=False),
)
LOCK = 0x434D
"""First half of the key of PostgreSQL's advisory lock; the second is the dataset's."""


UNREADABLE = (
    "the URL of the history database (COUNTERMOVE_HISTORY_URL, or globals: history) cannot be "
    "read; expected postgresql+psycopg://user:password@host:port/database, with @, : and / in a "
    "password written as %40, %3A and %2F, or the path of a SQLite file"
)
"""Does not repeat the URL, which may hold a password."""
_MEANT_AS_URL = re.compile(
    r"@|//|^\s*(postgres(ql)?|mysql|mariadb|oracle|mssql|sqlite|psycopg\d?)([+:\s]|$)",
    re.IGNORECASE,
)


def database_url(place: str) -> str:
    """Return the URL that a place names, of the SQLite file there if it is a path.

    A place that was meant as a URL and is none would become a file whose name shows a password.
    """
    if "://" not in place:
        if _MEANT_AS_URL.search(place):
            raise ModelFileError(UNREADABLE)
        return f"sqlite:///{place}"
    try:
        url = make_url(place)
    except (SQLAlchemyError, ValueError):
        raise ModelFileError(UNREADABLE) from None
    # Of postgresql:///user:password@host/x all that follows the slashes is taken for a database.
    if "@" in (url.database or "") or "@" in (url.host or ""):
        raise ModelFileError(UNREADABLE)
    return place


class DecisionHistory:
    """The decisions about one dataset's champion, in any database SQLAlchemy knows."""

    def __init__(self, url: str, dataset: str) -> None:
        self.dataset = dataset
        try:
            # A run connects a few times: with a new connection, so that no lost one is used again.
            self._engine = create_engine(url, poolclass=NullPool)
        except (SQLAlchemyError, ImportError) as error:
            raise ModelFileError(f"cannot open the history database: {_plain(error)}") from error
        except ValueError:
            # Its words may hold a part of the password: they are not shown.
            raise ModelFileError(UNREADABLE) from None
        self.where = without_passwords(url)
        self._make_tables()

    def _make_tables(self) -> None:
        with self._errors("open"):
            try:
                _TABLES.create_all(self._engine)
            except SQLAlchemyError:
                # Another run may have made them at the same moment; then there is nothing to do.
                _TABLES.create_all(self._engine)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other machines out while the block runs, where the database can (PostgreSQL)."""
        if self._engine.dialect.name != "postgresql":
            yield
            return
        key = {"first": LOCK, "name": self.dataset}
        with self._errors("lock"):
            # No transaction stays open during the run: servers may end idle ones.
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            with self._errors("lock"):
                asked = text("select pg_try_advisory_lock(:first, hashtext(:name))")
                taken = connection.execute(asked, key).scalar()
            if not taken:
                raise LockedError(
                    f"another machine is at work on {self.dataset!r} and holds the lock in "
                    f"{self.where}; run again when it is done"
                )
            yield
        finally:
            # The server lets go of the lock with the connection, however that ends.
            connection.close()

    def add_decisions(self, decisions: Iterable[Decision]) -> int:
        """Add what is not there yet; return how many rows were added."""
        with self._writing() as connection:
            asked = select(DECISIONS.c.version).where(DECISIONS.c.dataset == self.dataset)
            known = set(connection.execute(asked).scalars())
            rows = [
                {
                    "dataset": self.dataset,
                    "version": decision.version,
                    "kind": decision.kind,
                    "outcome": decision.outcome,
                    "at": decision.at,
                    "champion_before": decision.champion_before,
                    "champion_after": decision.champion_after,
                    "reasons": json.dumps(decision.reasons),
                }
                for decision in decisions
                if decision.version not in known
            ]
            if rows:
                connection.execute(DECISIONS.insert(), rows)
        return len(rows)

    def add_outcomes(self, outcomes: Iterable[Mapping[str, Any]]) -> int:
        """Add how forecasts turned out; a claim about a batch that is there already stays."""
        keys = (OUTCOMES.c.champion, OUTCOMES.c.batch, OUTCOMES.c.claim)
        with self._writing() as connection:
            asked = select(*keys).where(OUTCOMES.c.dataset == self.dataset)
            known = {tuple(row) for row in connection.execute(asked)}
            rows = [
                dict(outcome) | {"dataset": self.dataset}
                for outcome in outcomes
                if (outcome["champion"], outcome["batch"], outcome["claim"]) not in known
            ]
            if rows:
                connection.execute(OUTCOMES.insert(), rows)
        return len(rows)

    def note(self, at: str, sentences: Iterable[str]) -> None:
        """Write down what a run found and repaired."""
        rows = [{"dataset": self.dataset, "at": at, "words": words} for words in sentences]
        if rows:
            with self._writing() as connection:
                connection.execute(EVENTS.insert(), rows)

    def decisions(self) -> pd.DataFrame:
        """Return the decisions, oldest first."""
        return self._read(DECISIONS, DECISIONS.c.version)

    def outcomes(self) -> pd.DataFrame:
        """Return how every forecast turned out."""
        return self._read(OUTCOMES, OUTCOMES.c.champion, OUTCOMES.c.batch, OUTCOMES.c.claim)

    def events(self) -> pd.DataFrame:
        """Return what runs found and repaired, oldest first."""
        return self._read(EVENTS, EVENTS.c.id)

    def held(self) -> dict[str, dict[str, int]]:
        """Return by claim how many forecasts there were, held and were contradicted."""
        columns = (
            OUTCOMES.c.claim,
            func.count(),
            func.sum(OUTCOMES.c.held.cast(Integer)),
            func.sum(OUTCOMES.c.contradicted.cast(Integer)),
        )
        asked = (
            select(*columns)
            .where(OUTCOMES.c.dataset == self.dataset)
            .group_by(OUTCOMES.c.claim)
            .order_by(OUTCOMES.c.claim)
        )
        with self._errors("read"), self._engine.connect() as connection:
            found = connection.execute(asked).all()
        return {
            claim: {"forecasts": n, "held": int(held), "contradicted": int(contradicted)}
            for claim, n, held, contradicted in found
        }

    def _read(self, table: Table, *order: Column[Any]) -> pd.DataFrame:
        asked = select(table).where(table.c.dataset == self.dataset).order_by(*order)
        with self._errors("read"), self._engine.connect() as connection:
            found = connection.execute(asked)
            return pd.DataFrame(found.all(), columns=list(found.keys())).drop(columns="dataset")

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._errors("write"), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Raise what the database refused as a StorageError, without SQL or password."""
        try:
            yield
        except SQLAlchemyError as error:
            raise StorageError(
                f"cannot {what} the history in {self.where}: {_plain(error)}; the registry has "
                "everything, and the next run brings the history up to date"
            ) from error


def _plain(error: Exception) -> str:
    """Return an error's own words, without SQL, parameters or links."""
    return str(getattr(error, "orig", None) or error).splitlines()[0]
