"""The recurrent figure of the SERM paper is drawn from a table of the user's own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml

from countermove.data.schema import load_schema


@pytest.mark.slow
@pytest.mark.paper
def test_the_figure_of_histories_runs_as_configured(project):
    """The figure as configured, on fabricated companies, with one split and two lengths."""
    rng = np.random.default_rng(0)
    schema = load_schema("distress", project.path / "conf" / "base" / "schemas")
    lengths = rng.integers(1, 4, size=150)
    table = pd.DataFrame(
        rng.normal(size=(lengths.sum(), len(schema.observed))),
        columns=[feature.name for feature in schema.observed],
    )
    table["Company"] = np.repeat(np.arange(150), lengths)
    table["Time"] = np.concatenate([np.arange(length) for length in lengths])
    table["Financial Distress"] = table["x1"] + table["x2"]
    table["x80"] = 1
    table.to_csv(project.path / "data" / "01_raw" / "distress.csv", index=False)
    path = project.path / "conf" / "paper" / "serm_figure_1_center.yml"
    config = yaml.safe_load(path.read_text())
    sweep = config["run"]["params"]["sweep"]
    assert sweep["steps"] == list(range(1, 15))
    sweep |= {"splits": 1, "steps": [1, 2]}
    path.write_text(yaml.safe_dump(config))
    outcome = project.run("--config", str(path))
    assert outcome.returncode == 0, outcome.stderr
    folder = project.path / "data" / "08_reporting" / "serm_figure_1_center"
    cells = pd.read_csv(folder / "sweep.csv")
    assert cells["steps"].tolist() == [1, 2]
    assert cells["benchmark"].between(0.6, 1.0).all()
    assert "steps of history" in (folder / "sweep.html").read_text()
