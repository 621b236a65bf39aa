"""A messy extract, from draft to scored applicants, beside the table made by hand."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import yaml
from tests.data.messy import EXTRACTS
from tests.data.test_messy import by_hand, plain

from countermove.data.schema import load_schema


def flat(entry: object) -> list[float]:
    """Return the numbers of nested metrics, in their order."""
    if isinstance(entry, dict):
        return [number for value in entry.values() for number in flat(value)]
    return [float(entry)] if isinstance(entry, int | float) else []


def ran(project, pipeline: str, name: str, *settings: str) -> None:
    done = project.run(
        f"--pipeline={pipeline}", "--params", ",".join([f"dataset={name}", *settings])
    )
    assert done.returncode == 0, done.stdout + done.stderr


def confirmed(project, extract) -> None:
    """Draft the schema of the extract, answer it, and write the hand-made table with its own."""
    raw, schemas = project.path / "data" / "01_raw", project.path / "conf" / "base" / "schemas"
    file = extract.write(raw, "messy")
    named = ["--label", extract.label, "--favourable", extract.favourable]
    drafted = project.kedro("countermove", "schema", str(file), *named)
    assert drafted.returncode == 0, drafted.stderr
    content = yaml.safe_load((schemas / "messy.yml").read_text(encoding="utf-8"))
    extract.answer(content)
    for entry in content["features"].values():
        entry["change"] = "both"
    (schemas / "messy.yml").write_text(yaml.safe_dump(content, sort_keys=False))
    schema = load_schema("messy", schemas)
    (schemas / "hand.yml").write_text(yaml.safe_dump(plain(schema).to_mapping(), sort_keys=False))
    made = by_hand(extract, schema)
    made.to_csv(raw / "hand.csv", index=False)
    for name in ("messy", "hand"):
        (raw / "applicants" / name).mkdir(parents=True)
    extract.write(raw / "applicants" / "messy", "all")
    made.to_csv(raw / "applicants" / "hand" / "all.csv", index=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXTRACTS)
def test_a_messy_extract_gives_what_its_hand_made_table_gives(project, kind):
    extract = EXTRACTS[kind]()
    confirmed(project, extract)
    checked = project.kedro("countermove", "check", "messy")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{extract.broken} of {len(extract.by_hand) + extract.broken} rows" in checked.stdout
    metrics, scored = {}, {}
    for name in ("messy", "hand"):
        ran(project, "serm", name)
        reported = project.path / "data" / "08_reporting" / name / "metrics.json"
        metrics[name] = json.loads(reported.read_text())
        # Few rows make a wide bound on the error; whether to publish is not the question here.
        ran(project, "retrain", name, "retrain.gates.transfer_bound.limit=1")
        ran(project, "score", name, "score.batch=all")
        parts = (project.path / "data" / "07_model_output" / name / "scored" / "all").glob(
            "*.parquet"
        )
        scored[name] = pd.concat([pd.read_parquet(part) for part in sorted(parts)])
    for key in ("accuracy", "social", "threshold"):
        read, made = (flat(metrics[name][key]) for name in ("messy", "hand"))
        assert read == pytest.approx(made, rel=1e-6, nan_ok=True), key
    columns = ["row_id", "decision", "probability", "status"]
    read, made = (scored[name][columns].reset_index(drop=True) for name in ("messy", "hand"))
    assert len(read) == len(extract.by_hand)
    pd.testing.assert_frame_equal(read, made, rtol=1e-6)
