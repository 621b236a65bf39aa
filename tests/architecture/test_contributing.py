"""The page on where a change goes names files, commands and rooms that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:src|tests|conf|docs|benchmarks)/[\w./-]+)`", PAGE)))
TYPED = [line.split("#")[0].split() for line in PAGE.splitlines() if line.startswith("$ ")]
MEMBERS = (
    ("people/costs.py", "KINDS"),
    ("scores/storage.py", "_KINDS"),
    ("recourse/problem.py", "METHODS"),
    ("transfer/bounds.py", "BOUNDS"),
    ("reporting/page.py", "SECTIONS"),
)


@pytest.mark.parametrize("name", NAMED)
def test_every_file_named_is_there(name):
    assert (ROOT / name).exists()


def test_files_are_named_at_all():
    assert len([name for name in NAMED if name.startswith("src/")]) > 10
    assert len([name for name in NAMED if name.startswith("tests/")]) > 10


def test_the_files_that_commands_name_are_there():
    given = [word for words in TYPED for word in words if word.startswith(("tests/", "conf/"))]
    assert given
    assert [path for path in given if not (ROOT / path).exists()] == []
    modules = [words[words.index("-m") + 1] for words in TYPED if "-m" in words]
    assert modules
    for module in modules:
        assert (ROOT / module.replace(".", "/")).with_suffix(".py").is_file()


@pytest.mark.parametrize(("file", "name"), MEMBERS)
def test_the_list_to_extend_is_there(file, name):
    assert re.search(rf"^{name}\b", (ROOT / "src/countermove" / file).read_text("utf-8"), re.M)
    assert f"`{name}`" in PAGE


def test_every_room_of_the_import_contract_has_its_line():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    [layers] = [
        contract["layers"]
        for contract in contracts["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    ]
    rooms = {room for layer in layers for room in re.findall(r"\w+", layer)} - {"_lazy"}
    assert [room for room in sorted(rooms) if f"`{room}`" not in PAGE] == []
