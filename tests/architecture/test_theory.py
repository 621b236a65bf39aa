"""Every guarantee on the theory page names the test that checks it; every certificate is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "countermove"
PAGE = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
BOX = re.compile(r'^!!! note "(Guarantee[^"]*)"\n((?:    .*\n|\n(?=    ))+)', re.MULTILINE)
BOXES = [
    (f"{title}, line {PAGE[: found.start()].count(chr(10)) + 1}", body)
    for found in BOX.finditer(PAGE)
    for title, body in [found.groups()]
]
TEST_FILE = re.compile(r"`(tests/[\w/]+\.py)`")
CLAIMED = re.compile(r"\*Certificate:\* (.*?)\. \*Test", re.DOTALL)
PLACE = re.compile(r"<\w+>")
"""What stands for a part that only a run knows: ``worst_case_<bound>``."""
NAMED_BY = ("Certificate", "Theorem")


def spelled(node: ast.expr | None) -> str | None:
    """Return a name as the source spells it, with ``<>`` for what is filled in later."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "<>" for part in node.values
        )
    return None


def names_in(tree: ast.Module) -> set[str]:
    """Return the names of claims that a module makes: literal ones, and those of ``CLAIMS``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = next((word.value for word in node.keywords if word.arg == "name"), None)
            called = node.func.id if isinstance(node.func, ast.Name) else None
            if called == "promise_of_misses" or called in NAMED_BY:
                found.add(spelled(given or (node.args[0] if node.args else None)))
            if called == "replace":
                found.add(spelled(given))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CLAIMS":
            found |= {ast.literal_eval(value)[0] for value in node.value.values}
    return found - {None}


def in_the_source() -> set[str]:
    rooms = (
        path
        for path in SOURCE.rglob("*.py")
        if "Certificate" in path.read_text("utf-8")
        or "Theorem(" in path.read_text("utf-8")
        or "promise_of_misses" in path.read_text("utf-8")
    )
    return set().union(*(names_in(ast.parse(path.read_text("utf-8"))) for path in rooms))


def on_the_page() -> set[str]:
    said = [
        name
        for _, body in BOXES
        for claim in CLAIMED.findall(body)
        for name in re.findall(r"`([^`]+)`", claim)
    ]
    return {PLACE.sub("<>", name) for name in said}


def test_the_page_has_a_box_for_every_promise():
    assert len(BOXES) == PAGE.count('!!! note "Guarantee')


@pytest.mark.parametrize(("title", "body"), BOXES, ids=[title for title, _ in BOXES])
def test_every_box_names_a_test_that_exists(title, body):
    files = TEST_FILE.findall(body)
    assert files, f"{title} names no test"
    assert [name for name in files if not (ROOT / name).is_file()] == []


def test_every_test_file_on_the_page_exists():
    assert [name for name in TEST_FILE.findall(PAGE) if not (ROOT / name).is_file()] == []


def test_every_certificate_of_the_code_is_on_the_page_and_no_other():
    made, told = in_the_source(), on_the_page()
    assert len(made) > 15
    assert made - told == set(), "certificates without a box"
    assert told - made == set(), "boxes without a certificate"
