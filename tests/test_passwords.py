"""No password in an error, a log line, a description or what a command prints."""

from __future__ import annotations

import io
import logging

import pytest

from countermove.catalog import RegistryDataset
from countermove.errors import PasswordFilter, StorageError, without_passwords
from countermove.execution import Execution
from countermove.production.history import DecisionHistory
from countermove.production.registry import Store

SECRET = "geheim-4711"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql+psycopg://risk:{SECRET}@host:5432/history",
        f"redis://:{SECRET}@host",
        f"sftp://risk:a@{SECRET}/x@host/models",
        f"tls://risk:{SECRET}@host:8786",
        f"https://host/models?sig=1&api_key={SECRET}&x=2",
        f"https://host/models?password={SECRET}",
        f"sql://x said: risk:{SECRET}@host is no address",
        f"abfs://c@account/x?sas_token={SECRET}",
    ],
)
def test_urls_lose_their_passwords_and_keep_the_rest(url):
    shown = without_passwords(f"cannot open {url}: refused")
    assert SECRET not in shown
    assert shown.startswith(f"cannot open {url.partition(':')[0]}://")
    assert "***" in shown
    assert SECRET not in str(StorageError(f"cannot open {url}"))


@pytest.mark.parametrize(
    "text",
    ["s3://bucket/models/credit", "tcp://127.0.0.1:8786", "sqlite:///a/b.db", "a: b@c", "x=1&y=2"],
)
def test_other_texts_stay_as_they_are(text):
    assert without_passwords(text) == text


def test_a_log_shows_none_whoever_writes_it():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(PasswordFilter())
    logger = logging.getLogger("somebody.else")
    logger.addHandler(handler)
    logger.propagate = False
    try:
        logger.warning("opening %s", f"sftp://a:{SECRET}@host")
        failed = OSError(f"no route to sftp://a:{SECRET}@host")
        logger.error("failed", exc_info=failed)
    finally:
        logger.removeHandler(handler)
    said = stream.getvalue()
    assert SECRET not in said
    assert said.count("sftp://a:***@host") == 2
    assert "OSError: no route" in said


def test_places_are_described_without_them(tmp_path):
    registry = RegistryDataset(
        location={"path": f"sftp://risk:{SECRET}@host/models"}, schema={"path": "x.yml"}
    )
    assert SECRET not in str(registry) + repr(registry)
    assert SECRET not in Store(f"memory://risk:{SECRET}@host/models").where("champion.json")
    with pytest.raises(StorageError) as refused:
        DecisionHistory(f"postgresql+psycopg://risk:{SECRET}@127.0.0.1:9/x", "credit")
    assert SECRET not in str(refused.value)
    with pytest.raises(StorageError) as unknown:
        Store(f"nosuchscheme://risk:{SECRET}@host/models")
    assert SECRET not in str(unknown.value)


def test_a_scheduler_that_does_not_answer_is_named_without_it(caplog):
    from countermove.errors import ClusterError

    wanted = Execution("dask", scheduler=f"tcp://risk:{SECRET}@127.0.0.1:9", timeout=1.0)
    with pytest.raises(ClusterError) as refused:
        wanted.open()
    assert SECRET not in str(refused.value) + caplog.text
