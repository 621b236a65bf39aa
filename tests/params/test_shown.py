"""conf/base shows every setting, as the classes have it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from countermove.params import GROUPS
from countermove.params._shape import kinds, models
from countermove.params.shown import FILES, files, write

BASE = Path(__file__).parents[2] / "conf" / "base"
TEXTS = files()


@pytest.mark.parametrize("name", sorted(FILES))
def test_the_file_is_what_the_classes_say(name):
    assert (BASE / name).read_text(encoding="utf-8") == TEXTS[name], (
        f"conf/base/{name} is not what the classes say; run `kedro countermove settings --write` "
        "(values of your own belong in conf/local or another environment)"
    )


@pytest.mark.parametrize(
    ("group", "text"), [(group, TEXTS[name]) for name, groups in FILES.items() for group in groups]
)
def test_reading_it_gives_the_defaults(group, text):
    given = yaml.safe_load(text)[group]
    assert GROUPS[group].model_validate(given) == GROUPS[group]()


@pytest.mark.parametrize("axis", ["score", "cost", "response", "regulariser"])
def test_every_kind_and_setting_of_an_axis_is_named(axis):
    text = TEXTS["parameters_serm.yml"]
    for model in models(GROUPS["serm"].model_fields[axis].annotation):
        assert f"kind: {kinds(model)[0]}" in text
        for setting in model.model_fields:
            assert f"{setting}:" in text


def test_every_setting_has_words():
    for name, text in TEXTS.items():
        body = [line for line in text.splitlines()[2:] if line.strip()]
        for above, line in pairwise(body):
            plain = line.strip().startswith(("#", "-")) or "${" in line
            assert plain or "#" in line or above.strip().startswith("#"), f"{name}: {line}"


def test_only_what_differs_is_written(tmp_path):
    assert sorted(write(tmp_path)) == sorted(FILES)
    assert write(tmp_path) == []
    (tmp_path / "parameters_score.yml").write_text("score: {}\n")
    assert write(tmp_path) == ["parameters_score.yml"]
