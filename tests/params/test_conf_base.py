"""conf/base shows every setting with its default, its kinds and a word on what it does."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
import yaml

from countermove.params import GROUPS

BASE = Path(__file__).parents[2] / "conf" / "base"
TEXTS = {path.name: path.read_text("utf-8") for path in BASE.glob("parameters*.yml")}
SHOWN = {
    group: name
    for name, text in TEXTS.items()
    for group in yaml.safe_load(text)
    if group in GROUPS and name != "parameters_experiments.yml"
}


def test_every_group_but_the_experiments_is_shown():
    assert set(GROUPS) - set(SHOWN) == {"sweep", "paper", "lookahead", "collective"}


@pytest.mark.parametrize("group", sorted(SHOWN))
def test_what_is_shown_is_every_setting_with_its_default(group):
    shown = yaml.safe_load(TEXTS[SHOWN[group]])[group]
    assert GROUPS[group].model_validate(shown) == GROUPS[group]()
    assert set(shown) == set(GROUPS[group].model_fields)


@pytest.mark.parametrize("axis", ["score", "cost", "response", "regulariser"])
def test_every_kind_and_setting_of_an_axis_is_named(axis):
    field = GROUPS["serm"].model_fields[axis]
    for model in get_args(field.annotation):
        (kind,) = get_args(model.model_fields["kind"].annotation)
        assert f"kind: {kind}" in TEXTS["parameters_serm.yml"]
        for setting in model.model_fields:
            assert f"{setting}:" in TEXTS["parameters_serm.yml"]


@pytest.mark.parametrize("name", sorted(set(SHOWN.values())))
def test_every_setting_has_words(name):
    body = [line for line in TEXTS[name].splitlines()[2:] if line.strip()]
    for above, line in pairwise(body):
        plain = line.strip().startswith(("#", "-")) or "${" in line
        assert plain or "#" in line or above.strip().startswith("#"), f"{name}: {line}"
