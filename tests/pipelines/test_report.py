"""The report of a real run: every number links to where it came from, and says the same."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import unquote

import pandas as pd
import pytest
from tests.conftest import set_experiment

LINK = re.compile(r'<a (?:id="[^"]*" )?class="cited" href="([^"]*)" title="([^"]*)">([^<]*)</a>')


@pytest.fixture(scope="module")
def folder(finished):
    return finished.path / "data" / "08_reporting" / "tiny"


@pytest.fixture(scope="module")
def page(folder):
    return (folder / "report.html").read_text().split("<footer>")[0]


@pytest.fixture(scope="module")
def links(page):
    return [tuple(unescape(part) for part in found) for found in LINK.findall(page)]


def pointed_at(folder, address):
    """Return what a link points to: by JSON pointer (RFC 6901), or a row of a CSV (RFC 7111)."""
    file, _, fragment = address.partition("#")
    if file.endswith(".csv"):
        return pd.read_csv(folder / file).iloc[int(fragment.removeprefix("row=")) - 2]
    value = json.loads((folder / file).read_text())
    for token in unquote(fragment).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


IN_POINTS = tuple(f"summary.json#/{key}/" for key in ("differences", "promise/cost", "regret"))
"""Numbers that the words around them say to be in points."""


def shown_number(text):
    """Return the number a text shows and half a unit of its last digit, or None."""
    plain = text.replace(",", "").replace("−", "-")
    found = re.fullmatch(r"([+-]?\d+(?:\.(\d+))?)(\u202f(?:%|pt))?", plain)
    if found is None:
        return None
    unit = 10.0 ** -len(found[2] or "") * (0.01 if found[3] else 1.0)
    return float(found[1]) * (0.01 if found[3] else 1.0), 0.5001 * unit


def test_every_number_is_the_one_its_link_points_to(folder, links):
    compared = 0
    for address, title, text in links:
        value = pointed_at(folder, address)
        if isinstance(value, pd.Series):
            value = value[title.rpartition(", ")[2]]
        shown = shown_number(text)
        if shown is None or isinstance(value, str | bool):
            continue
        if address.startswith(IN_POINTS):
            value *= 100.0
        assert value == pytest.approx(shown[0], abs=shown[1], rel=1e-5), (address, text)
        compared += 1
    assert compared > 300
    files = {address.partition("#")[0] for address, *_ in links}
    assert {"metrics.json", "move_map.json", "training_history.json", "table_sheet.json"} <= files
    assert {"transfer_report.json", "certificates.json", "recourse_frontier.csv"} <= files


def test_no_section_of_a_whole_run_is_missing(page):
    """Only the pipelines that stand beside the chain have not run."""
    absent = re.findall(r'<p class="absent">.*?--pipeline=(\w+)', page)
    assert absent == ["paper", "lookahead", "collective", "serm_parts"]


def test_the_map_agrees_with_the_metrics(folder):
    metrics = json.loads((folder / "metrics.json").read_text())
    drawn = json.loads((folder / "move_map.json").read_text())
    for rule, entries in drawn["rules"].items():
        (stated,) = [entry for entry in entries if entry["scale"] == 1.0]
        assert stated["accuracy"] == metrics["accuracy"]["after_response"][rule]


@pytest.mark.slow
def test_what_other_pipelines_leave_is_told(project):
    curves = [{"strengths": [0.1], "training": {"optimiser": "adam", "max_epochs": 2}}]
    set_experiment(project, kind="tradeoff", datasets=["tiny"], splits=2, curves=curves)
    for pipeline in ("serm", "lookahead", "paper", "reporting"):
        outcome = project.run(f"--pipeline={pipeline}", "--env=test")
        assert outcome.returncode == 0, outcome.stderr
    page = (project.path / "data" / "08_reporting" / "tiny" / "report.html").read_text()
    assert 'href="lookahead.json#' in page
    assert 'href="../tradeoff/points.csv#' in page


@pytest.mark.slow
def test_a_page_is_written_without_what_an_older_run_did_not_leave(project):
    assert project.run("--pipeline=serm", "--env=test").returncode == 0
    folder = project.path / "data" / "08_reporting" / "tiny"
    left_out = ("move_map.json", "training_history.json", "transfer_report.json")
    for file in left_out:
        (folder / file).unlink()
    outcome = project.run("--pipeline=reporting", "--env=test")
    assert outcome.returncode == 0, outcome.stderr
    page = (folder / "report.html").read_text()
    assert 'href="metrics.json#' in page
    assert not any(f'href="{file}#' in page for file in left_out)
