"""An office that has given advice."""

from __future__ import annotations

from pathlib import Path

import pytest

from countermove.production.open_advice import KEY_VARIABLE

from .tiny_champion import DAYS, PEOPLE, Office, promote


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Return an office with a champion that has advised a first batch."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    made = Office(tmp_path)
    promote(made.registry)
    PEOPLE.to_csv(made.batches / "may.csv", index=False)
    made.score("may", **DAYS)
    return made
