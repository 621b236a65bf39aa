"""Damaged model files are refused; what is accepted decides as the file says."""

from __future__ import annotations

import json
import math
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from scipy.special import expit

from countermove import adopt
from countermove.errors import CountermoveError, ModelFileError

FILES = Path(__file__).parent / "files"
X = np.random.default_rng(0).normal(size=(60, 5)) * [1.0, 1.0, 3e4, 1.0, 1.0]
FOREST = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
STRANGE = ["nan", "inf", "-1", "99999999999", "99999999999999999999", "1e999", "", "x", "0x7", "-"]


def lightgbm_text(**settings: Any) -> str:
    rng = np.random.default_rng(3)
    y = X[:, 0] + X[:, 2] / 3e4 + rng.normal(size=60) > 0.0
    settings = {"n_estimators": 6, "min_child_samples": 3, "num_leaves": 6} | settings
    fitted = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, **settings)
    return fitted.fit(X, y).booster_.model_to_string()


def decided(content: str, place: Path) -> np.ndarray | None:
    """Return the decisions of a file; None if it is refused by name."""
    place.write_text(content)
    try:
        return adopt(place, X).decision_function(X)
    except CountermoveError:
        return None


def damaged(text: str, rng: np.random.Generator) -> str:
    """Return a text as broken copies are: cut, with a piece lost, twice or elsewhere."""
    lines, kind = text.splitlines(keepends=True), int(rng.integers(7))
    i, j = sorted(rng.integers(len(lines), size=2).tolist())
    at, n = int(rng.integers(len(text))), int(rng.integers(1, 400))
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[at + n :]
    if kind == 2:
        return "".join(lines[:i] + lines[i + 1 :])
    if kind == 3:
        return "".join([*lines[:j], lines[i], *lines[j:]])
    if kind == 4:
        return text[:at] + text[at : at + n] + text[at:]
    if kind == 5:
        return text[:at] + str(rng.choice(STRANGE)) + text[at + 1 :]
    words = lines[i].split(" ")
    words[int(rng.integers(len(words)))] = str(rng.choice(STRANGE))
    return "".join([*lines[:i], " ".join(words), *lines[i + 1 :]])


def as_lightgbm_reads(text: str) -> np.ndarray:
    """Return log-odds by walking the trees person by person, as LightGBM's format says."""
    head, *trees = text.split("end of trees")[0].split("\nTree=")
    found = np.zeros(len(X))
    for tree in trees:
        said = dict(line.split("=", 1) for line in tree.splitlines() if "=" in line)
        columns, splits, left, right, leaves = (
            [float(word) for word in said[key].split()]
            for key in ("split_feature", "threshold", "left_child", "right_child", "leaf_value")
        )
        for who, person in enumerate(X):
            node = 0
            while node >= 0:
                goes = person[int(columns[node])] <= splits[node]
                node = int((left if goes else right)[node])
            found[who] += leaves[~node]
    return found / (len(trees) if "average_output" in head else 1)


def as_xgboost_reads(said: dict[str, Any]) -> np.ndarray:
    """Return log-odds by walking the trees person by person: XGBoost's own description."""
    learner = said["learner"]
    model = learner["gradient_booster"]["model"]
    base = float(learner["learner_model_param"]["base_score"].strip("[]"))
    found = np.full(len(X), math.log(base) - math.log1p(-base))
    for tree in model["trees"]:
        for who, person in enumerate(X.astype(np.float32)):
            node = 0
            while tree["left_children"][node] >= 0:
                column = int(tree["split_indices"][node])
                goes = person[column] < np.float32(tree["split_conditions"][node])
                node = tree["left_children" if goes else "right_children"][node]
            found[who] += float(np.float32(tree["split_conditions"][node]))
    return found


def places(said: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside a JSON value."""
    inside = said.items() if isinstance(said, dict) else enumerate(said)
    found = []
    for key, value in inside:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


def damaged_json(said: dict[str, Any], rng: np.random.Generator) -> str:
    """Return a model in which an entry is lost, doubled or of another value; or a broken text."""
    text = json.dumps(said)
    if rng.random() < 0.3:
        return damaged(text, rng)
    copy = json.loads(text)
    known = places(copy)
    path = known[int(rng.integers(len(known)))]
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    kind, last = int(rng.integers(3)), path[-1]
    if kind == 0:
        del inside[last]
    elif kind == 1 and isinstance(inside, list):
        inside.insert(last, inside[last])
    else:
        strange = [math.nan, math.inf, -1, 99999999999, 10**30, "", "x", None, [], {}, True, 1e38]
        inside[last] = strange[int(rng.integers(len(strange)))]
    return json.dumps(copy)


def check_fuzzed(
    mutate: Callable[[np.random.Generator], str],
    reads: Callable[[str], np.ndarray],
    place: Path,
    times: int,
) -> int:
    """Hold every accepted text against what it says; return how many were accepted."""
    rng, accepted, slowest = np.random.default_rng(0), 0, 0.0
    for _ in range(times):
        content = mutate(rng)
        clock = time.process_time()
        found = decided(content, place)
        slowest = max(slowest, time.process_time() - clock)
        if found is None:
            continue
        accepted += 1
        expected = reads(content)
        np.testing.assert_array_equal(found >= 0.0, expected >= 0.0)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert slowest < 1.0
    return accepted


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("settings", [{}, FOREST], ids=["gbdt", "rf"])
def test_a_damaged_lightgbm_text_decides_as_before_or_is_refused(settings, times, tmp_path):
    text = lightgbm_text(**settings)
    whole = as_lightgbm_reads(text)
    np.testing.assert_allclose(expit(whole), lightgbm.Booster(model_str=text).predict(X))

    def reads(content: str) -> np.ndarray:
        # A number of as many digits in the place of another is no damage that shows.
        return as_lightgbm_reads(content) if len(content) == len(text) else whole

    accepted = check_fuzzed(lambda rng: damaged(text, rng), reads, tmp_path / "rule.txt", times)
    assert accepted < times / 2


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_damaged_xgboost_model_decides_as_it_says_or_is_refused(times, tmp_path):
    said = json.loads((FILES / "xgboost.json").read_text())
    place = tmp_path / "rule.json"
    check_fuzzed(
        lambda rng: damaged_json(said, rng), lambda text: as_xgboost_reads(json.loads(text)),
        place, times,
    )  # fmt: skip
    np.testing.assert_allclose(decided(json.dumps(said), place), as_xgboost_reads(said), atol=1e-5)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.98])
def test_a_cut_lightgbm_text_is_refused(share, tmp_path):
    text = lightgbm_text()
    (tmp_path / "rule.txt").write_text(text[: int(share * len(text))])
    with pytest.raises(ModelFileError, match="damaged"):
        adopt(tmp_path / "rule.txt", X)


@pytest.mark.parametrize(
    ("before", "after"),
    [("threshold=", "threshold=nan "), ("average_output\n", ""), ("sigmoid:1", "sigmoid:5"),
     ("num_leaves=6", "num_leaves=4"), ("leaf_value=", "leaf_value=inf ")],
)  # fmt: skip
def test_what_a_lightgbm_text_says_twice_must_agree(before, after, tmp_path, monkeypatch):
    # Without the library, too.
    monkeypatch.setitem(__import__("sys").modules, "lightgbm", None)
    text = lightgbm_text(**FOREST)
    assert before in text
    (tmp_path / "rule.txt").write_text(text.replace(before, after, 1))
    with pytest.raises(ModelFileError, match="damaged"):
        adopt(tmp_path / "rule.txt", X)


def test_a_lost_tree_is_refused(tmp_path):
    text = lightgbm_text()
    first, second = text.index("Tree=2"), text.index("Tree=3")
    (tmp_path / "rule.txt").write_text(text[:first] + text[second:])
    with pytest.raises(ModelFileError, match="number and the sizes"):
        adopt(tmp_path / "rule.txt", X)


def test_an_xgboost_model_of_a_hundred_billion_columns_is_refused_at_once(tmp_path):
    said = json.loads((FILES / "xgboost.json").read_text())
    said["learner"]["learner_model_param"]["num_feature"] = "99999999999"
    place = tmp_path / "rule.json"
    place.write_text(json.dumps(said))
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="reads 99999999999 columns, the background has 5"):
        adopt(place, X)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
