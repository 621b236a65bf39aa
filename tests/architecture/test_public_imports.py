"""Tests ask public names, so that they can judge a rewritten inside."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
TYPES = "countermove._types"
"""Aliases of array types, which say nothing of how things are done."""


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_tests_import_no_private_module_and_no_private_name():
    found = [
        f"{path.relative_to(TESTS)}:{node.lineno}: {node.module}"
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").partition(".")[0] == "countermove"
        and node.module != TYPES
        and any(map(private, [*str(node.module).split("."), *(one.name for one in node.names)]))
    ]
    assert not found, "\n".join(found)
