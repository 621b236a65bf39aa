"""What the room exports is documented, and the reference page shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import countermove.data as room

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "data.md"


@pytest.mark.parametrize("name", room.__all__)
def test_a_public_name_is_documented_and_on_its_page(name: str) -> None:
    public = getattr(room, name)
    assert public.__doc__
    section = re.search(
        rf"^::: {re.escape(public.__module__)}\n(?P<members>(?: +.*\n)*)",
        PAGE.read_text("utf-8"),
        re.MULTILINE,
    )
    assert section, f"{public.__module__} is not on the page"
    assert not section["members"] or re.search(rf"\b{name}\b", section["members"])


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = room.absent
