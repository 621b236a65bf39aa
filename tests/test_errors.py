"""Errors: short messages, all the rows, and one documented class per kind of failure."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import countermove
from countermove import errors
from countermove.errors import CountermoveError, DataError, meant, nearest, ours, shown

CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, CountermoveError)
}
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"


@cache
def raised() -> frozenset[str]:
    """Return the names of everything that the package calls, outside the file of the errors."""
    names = set()
    for path in Path(countermove.__file__).parent.rglob("*.py"):
        if path.name != "errors.py":
            calls = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
            names |= {call.func.id for call in calls if isinstance(call.func, ast.Name)}
    return frozenset(names)


def test_long_lists_are_capped_and_counted():
    assert shown(range(13)).endswith("9 and 3 more")
    assert shown([1, 2]) == "1, 2"


def test_numbers_of_numpy_are_numbers_in_a_message():
    assert str(DataError(f"got {np.float64(0.0)!r} and {np.int64(3)!r}")) == "got 0.0 and 3"


def test_an_error_carries_all_rows():
    assert DataError("wrong", rows=range(1000)).rows == tuple(range(1000))


def test_nearest_name_is_suggested():
    assert nearest("credti", ["credit", "german"]).startswith("did you mean 'credit'?")
    assert nearest("zzz", ["credit"]) == "known: credit"


def test_the_last_part_of_a_name_is_enough_to_be_meant():
    nodes = ["evaluation.foresee", "evaluation.evaluate"]
    assert meant("evaluate", nodes) == "; did you mean 'evaluation.evaluate'?"


def test_our_error_is_found_below_those_that_wrap_it():
    inner = DataError("wrong")
    outer, outermost = RuntimeError("node failed"), RuntimeError("run failed")
    outer.__cause__, outermost.__cause__ = inner, outer
    assert ours(outermost) is inner
    assert ours(RuntimeError("another's")) is None


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_is_documented_and_raised(name):
    assert vars(CLASSES[name])["__doc__"], f"{name} does not say what went wrong"
    assert "::: countermove.errors" in PAGE.read_text("utf-8")
    if CLASSES[name] is not CountermoveError:
        assert name in raised(), f"nothing raises {name}"
