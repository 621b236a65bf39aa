"""A messy extract, from draft to decisions, by the commands alone; and its hand-made table."""

from __future__ import annotations

import json

import pytest
import yaml
from tests.data.messy import german_loans
from tests.data.test_messy import by_hand, plain

from countermove.data.schema import load_schema


def flat(entry: object) -> list[float]:
    """Return the numbers of nested metrics, in their order."""
    if isinstance(entry, dict):
        return [number for value in entry.values() for number in flat(value)]
    return [float(entry)] if isinstance(entry, int | float) else []


@pytest.mark.slow
def test_a_messy_extract_gives_the_report_of_its_hand_made_table(project):
    extract = german_loans()
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
    by_hand(extract, schema).to_csv(raw / "hand.csv", index=False)
    checked = project.kedro("countermove", "check", "messy")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{extract.broken} of {len(extract.by_hand) + extract.broken} rows" in checked.stdout
    metrics = {}
    for name in ("messy", "hand"):
        ran = project.run("--pipeline=serm", f"--params=dataset={name}")
        assert ran.returncode == 0, ran.stderr
        reported = project.path / "data" / "08_reporting" / name / "metrics.json"
        metrics[name] = json.loads(reported.read_text())
    for key in ("accuracy", "social", "threshold"):
        read, made = (flat(metrics[name][key]) for name in ("messy", "hand"))
        assert read == pytest.approx(made, rel=1e-6, nan_ok=True), key
