"""What users rely on is listed once, is there, and is shown by a test that exists."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from countermove.cli import countermove
from countermove.pipeline_registry import register_pipelines

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FEATURES = yaml.safe_load(Path(__file__).with_name("features.yml").read_text("utf-8"))


def exported() -> Iterator[tuple[str, str]]:
    """Yield every module with the names of its ``__all__``."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
                yield from ((module.removesuffix(".__init__"), name) for name in names(node.value))


def names(value: ast.expr) -> list[str]:
    return [each.value for each in ast.walk(value) if isinstance(each, ast.Constant)]


@cache
def named_in(path: str) -> set[str]:
    """Return the tests of a file, those of classes by both names."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{each.name}" for each in node.body if hasattr(each, "name")}
    return found


def shown_by() -> Iterator[tuple[str, str]]:
    """Yield every feature with its test."""
    for section, features in FEATURES.items():
        for feature, test in features.items():
            if section == "names":
                yield from ((f"{feature}.{name}", each) for name, each in test.items())
            else:
                yield feature, test


def test_every_exported_name_is_a_feature_and_there():
    listed = {(module, name) for module, each in FEATURES["names"].items() for name in each}
    assert set(exported()) == listed
    for module, name in sorted(listed):
        assert hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("section", "there"),
    [
        ("commands", lambda: {f"kedro countermove {name}" for name in countermove.commands}),
        ("pipelines", lambda: set(register_pipelines()) - {"__default__"}),
        ("experiments", lambda: {path.name for path in (ROOT / "conf" / "paper").glob("*.yml")}),
    ],
)
def test_commands_pipelines_and_experiments_are_features(section, there):
    assert set(FEATURES[section]) == there()


def test_settings_that_the_documentation_gives_to_a_run_are_features():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    said = {
        setting
        for page in pages
        for words in re.findall(r"--params[ =]([\w.]+=\S+)", page.read_text("utf-8"))
        for setting in re.findall(r"(?:^|,)(\w+\.[\w.]+)=", words)
    }
    assert said
    assert said <= set(FEATURES["settings"])


def test_every_feature_is_shown_by_a_test_that_exists():
    lacking = [
        f"{feature}: {test}"
        for feature, test in shown_by()
        if test.partition("::")[2] not in named_in(test.partition("::")[0])
    ]
    assert not lacking, "\n".join(lacking)
