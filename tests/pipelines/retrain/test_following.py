"""A drifting world through real runs on files: the champion is replaced and stays near the best."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tests.conftest import Project
from tests.production.retraining.known_worlds import FEATURES, MOVABLE, DriftingWorld

from countermove.production.registry import Registry

NAMES = [f"f{place}" for place in range(FEATURES)]
SCHEMA = """
description: A world that turns
source: fabricated
id: person
label: {column: repaid, favourable: "yes", unfavourable: "no"}
features:
"""


def rows(X: np.ndarray, y: np.ndarray, name: str) -> pd.DataFrame:
    table = pd.DataFrame(X, columns=NAMES).assign(repaid=np.where(y > 0, "yes", "no"))
    return table.assign(person=[f"{name}-{place}" for place in range(len(table))])


def rule(project: Project) -> tuple[np.ndarray, float]:
    """Return the champion's weights and intercept in original units."""
    champion = Registry(str(project.path / "data" / "06_models" / "drifting")).champion()
    assert champion is not None
    units, score = champion.model.standardiser, champion.model.rule
    weight = score.weight.detach().numpy() / units.scale
    return weight, float(score.bias.detach()) - float(weight @ units.mean)


def set_up(project: Project, world: DriftingWorld) -> None:
    changing = "".join(
        f"  {name}: {{kind: numeric, change: {'both' if place < MOVABLE else 'immutable'}}}\n"
        for place, name in enumerate(NAMES)
    )
    (project.path / "conf/base/schemas/drifting.yml").write_text(SCHEMA + changing)
    raw = project.path / "data" / "01_raw"
    rows(*world.base(), "base").to_csv(raw / "drifting.csv", index=False)
    (raw / "batches" / "drifting").mkdir(parents=True)


@pytest.mark.slow
def test_a_champion_follows_a_turning_world(project: Project):
    world = DriftingWorld("rotation", 77)
    set_up(project, world)
    given = ("--pipeline=retrain", f"--params=dataset=drifting,serm.cost.scale={world.scale}")
    first = project.run(*given)
    assert first.returncode == 0, first.stderr
    never, decisions = rule(project), []
    for month in (3, 6, 9):
        came = world.arrivals(month, *rule(project))
        path = project.path / f"data/01_raw/batches/drifting/2026-{month:02d}.csv"
        rows(came.X, came.y, path.stem).to_csv(path, index=False)
        ended = project.run(*given)
        assert ended.returncode in (0, 3), ended.stderr
        said = project.path / "data/08_reporting/drifting/decision.json"
        decisions.append(json.loads(said.read_text()))
    assert [decision["outcome"] for decision in decisions].count("promoted") >= 2
    policies = [decision["facts"]["policy"] for decision in decisions]
    assert all(policy["kind"] == "following" for policy in policies)
    assert policies[-1]["reach"]["people"]["reach"] == pytest.approx(1.0, abs=0.1)
    # People of the last month, under the rule made from them and under the first one.
    best = world.oracle(9)
    assert best - world.accuracy(9, *rule(project)) < 0.015
    assert best - world.accuracy(9, *never) > 0.08
    page = (project.path / "data/08_reporting/drifting/retraining.html").read_text()
    assert "People a month older count" in page
