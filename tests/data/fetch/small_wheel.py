"""A wheel of a few bytes that the real pip downloads without any network."""

from __future__ import annotations

import gzip
import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from countermove.data.fetch.publications import Member, Publication, TableFacts, Wheel

TABLE = b"income,outcome\n1,yes\n2,no\n3,yes\n"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(content: bytes, name: str = "table.csv") -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


FILES: Mapping[str, bytes] = {
    "small/table.csv": TABLE,
    "small/table.csv.gz": gzip.compress(TABLE, mtime=0),
    "small/table.zip": zipped(TABLE),
}


def make_wheel(folder: Path, files: Mapping[str, bytes] = FILES) -> Wheel:
    """Write ``small-1.0`` into ``folder`` and return its pin."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "small-1.0-py3-none-any.whl"
    described = {
        "small-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: small\nVersion: 1.0\n",
        "small-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: py3-none-any\n",
        "small-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**files, **described}.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    content = path.read_bytes()
    return Wheel("small==1.0", digest(content), len(content))


def a_publication(wheel: Wheel, *members: Member) -> Publication:
    plain = Member("small/table.csv", digest(TABLE))
    facts = TableFacts(3, 2 / 3, "free of terms")
    return Publication(wheel, members or (plain,), ".csv", "the shop's own shelf", facts)


def pip_looks_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip find wheels in ``folder`` only; nothing of the machine's settings applies."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
