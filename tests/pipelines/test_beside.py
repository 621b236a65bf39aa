"""A challenger beside the champion and approvals by draw, through real runs, until labels come."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pytest
from tests.conftest import Project

from countermove.data.synthetic import fabricate
from countermove.production.registry import Registry
from countermove.production.scoring.exploring import KEY_VARIABLE

pytestmark = pytest.mark.slow
KEY = "0123456789abcdef" * 4
N = 300


PEOPLE = fabricate("tiny", N, seed=11).assign(person=[f"oct-{k}" for k in range(N)])


@pytest.fixture(scope="module")
def prepared(deployed, tmp_path_factory):
    """A project whose first challenger was kept, and people who apply."""
    folder = tmp_path_factory.mktemp("beside") / "project"
    shutil.copytree(deployed.path, folder)
    project = Project(folder)
    project.bring_batch("2026-09", rows=60)
    assert project.retrain("--params=retrain.gates.flip_rate.largest=0.0").returncode == 3
    applicants = folder / "data" / "01_raw" / "applicants" / "tiny"
    applicants.mkdir(parents=True)
    PEOPLE.drop(columns="repaid").to_csv(applicants / "oct.csv", index=False)
    return project


@pytest.fixture
def office(prepared, tmp_path, monkeypatch):
    """A copy of it, with a key."""
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    shutil.copytree(prepared.path, tmp_path / "office")
    return Project(tmp_path / "office")


def score(project, *said):
    given = ",".join(("score.batch=oct", *said))
    return project.run("--pipeline=score", "--env=test", "--params", given)


def parts(project):
    folder = project.path / "data/07_model_output/tiny/scored/oct"
    manifest = json.loads((folder / "manifest.json").read_text())
    return pd.concat(map(pd.read_parquet, sorted(folder.glob("part-*.parquet")))), manifest


def bring_labels(project, rows):
    PEOPLE[rows.to_numpy()].to_csv(project.batches / "2026-10.csv", index=False)


def report(project, name):
    return (project.path / "data" / "08_reporting" / "tiny" / name).read_text()


def test_a_challenger_is_recorded_for_everybody_and_the_next_run_compares(office):
    registry = Registry(str(office.path / "data/06_models/tiny"))
    champion, kept = registry.pointer().version, registry.versions()[-1]
    ran = score(office, "score.challenger=newest")
    assert ran.returncode == 0, ran.stderr
    assert f"challenger {kept} agrees on" in ran.stderr
    told, manifest = parts(office)
    assert set(told["version"]) == {champion}
    assert set(told["challenger"]) == {kept}
    assert manifest["challenger"]["version"] == kept
    bring_labels(office, told["decision"] > -2)
    ended = office.retrain()
    assert ended.returncode in (0, 3), ended.stderr
    facts = json.loads(report(office, "decision.json"))["facts"]["scored"]
    (pair,) = facts["challengers"]
    assert (pair["champion"], pair["challenger"], pair["people"]) == (champion, kept, N)
    assert pair["labelled"]["n"] == N
    assert facts == json.loads(report(office, "scored_comparison.json"))
    page = report(office, "retraining.html")
    assert "Beside the champion" in page
    assert kept in page.replace("<wbr>", "")


def test_people_approved_by_draw_are_counted_and_weighted_when_labels_come(office):
    ran = score(office, "score.exploration.share=0.5")
    assert ran.returncode == 0, ran.stderr
    assert "refused are approved by draw (propensity 50.00%)" in ran.stderr
    assert KEY not in ran.stderr
    told, manifest = parts(office)
    said = manifest["exploration"]
    assert said["approved"] == told["explored"].sum() > 5
    bring_labels(office, told["decision"] > 0)
    ended = office.retrain("--params=retrain.policy.propensities=true")
    assert ended.returncode in (0, 3), ended.stderr
    facts = json.loads(report(office, "decision.json"))["facts"]["scored"]
    assert facts["labels"]["approved_only"]
    assert facts["labels"]["explored"] == said["approved"]
    page = report(office, "retraining.html")
    assert "Labels came of the approved only" in page
    assert "people approved by draw whose label has come" in page


def test_what_cannot_be_tried_is_one_clear_error(office, monkeypatch):
    champion = Registry(str(office.path / "data/06_models/tiny")).pointer().version
    for said, words in (
        ("score.exploration.share=0", "score.exploration.share should be"),
        ("score.challenger=000099-x", "holds no version '000099-x'"),
        (f"score.challenger={champion}", "is the champion itself"),
    ):
        ran = score(office, said)
        assert ran.returncode == 1, said
        assert words in ran.stderr, ran.stderr
        assert "Traceback" not in ran.stderr
    monkeypatch.delenv(KEY_VARIABLE)
    ran = score(office, "score.exploration.share=0.1")
    assert ran.returncode == 1
    assert f"set {KEY_VARIABLE} to at least 32" in ran.stderr
    assert not (office.path / "data/07_model_output/tiny/scored/oct").exists()
