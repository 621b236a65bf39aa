"""Labels that come late, twice or otherwise, batches that are empty, altered or gone."""

from __future__ import annotations

import pandas as pd
import pytest
from kedro.io import DatasetError

from countermove.catalog import LabelledBatchesDataset
from countermove.errors import BlockedError
from countermove.production.registry import Registry


def decisions(project):
    return Registry(str(project.path / "data/06_models/tiny")).decisions()


def blocked(project, *words: str) -> None:
    """Run, and see it leave with code 4, one plain message and the champion it had."""
    before = Registry(str(project.path / "data/06_models/tiny")).pointer()
    ran = project.retrain()
    assert ran.returncode == 4, ran.stderr
    said = [line for line in ran.stderr.splitlines() if line.startswith("Error: BlockedError")]
    assert len(said) == 1
    assert "Traceback" not in ran.stderr
    for word in words:
        assert word in said[0]
    assert Registry(str(project.path / "data/06_models/tiny")).pointer() == before


def test_two_files_of_one_name_block(tmp_path):
    table = pd.DataFrame({"a": [1]})
    table.to_csv(tmp_path / "one.csv")
    table.to_parquet(tmp_path / "one.parquet")
    with pytest.raises(DatasetError, match="two files for batch 'one'") as refused:
        LabelledBatchesDataset({"path": str(tmp_path)}).load()
    assert isinstance(refused.value.__cause__, BlockedError)


@pytest.mark.slow
@pytest.mark.fault
def test_empty_and_broken_batches_leave_with_code_4(working):
    assert working.retrain().returncode == 0  # nothing new
    path = working.bring_batch("empty")
    table = pd.read_csv(path)
    table.head(0).to_csv(path, index=False)
    blocked(working, "'empty' is empty")
    path.write_bytes(b"")
    blocked(working, "cannot be read")
    table.drop(columns="income").to_csv(path, index=False)
    blocked(working, "income")
    path.unlink()
    assert [decision.outcome for decision in decisions(working)].count("blocked") >= 3
    working.bring_batch("good")
    assert working.retrain().returncode in (0, 3)


@pytest.mark.slow
@pytest.mark.fault
def test_late_repeated_and_altered_labels(working):
    path = working.bring_batch("first", rows=40)
    table = pd.read_csv(path)
    unlabelled = table.copy()
    unlabelled.loc[:9, "repaid"] = None
    unlabelled.to_csv(path, index=False)
    assert working.retrain().returncode in (0, 3)
    facts = decisions(working)[-1].facts["batches"]["first"]
    assert (facts["used"], facts["waiting_for_label"]) == (30, 10)
    # The labels of ten people come late, and five rows come again.
    late = working.batches / "second.csv"
    table.head(15).to_csv(late, index=False)
    assert working.retrain().returncode in (0, 3)
    facts = decisions(working)[-1].facts["batches"]["second"]
    assert (facts["used"], facts["repeated"], facts["waiting_for_label"]) == (10, 5, 0)
    # A person's label changes: that is no new row.
    other = table.tail(3).assign(repaid=lambda rows: rows["repaid"].map({"yes": "no", "no": "yes"}))
    third = working.batches / "third.csv"
    other.to_csv(third, index=False)
    blocked(working, "3 of the 40 people of batch 'first' another label", other["person"].iloc[0])
    third.unlink()
    # A batch changes after its use, or is gone.
    content = path.read_bytes()
    table.to_csv(path, index=False)
    blocked(working, "'first' has changed", "kedro countermove supersede first")
    path.unlink()
    blocked(working, "is gone", "kedro countermove withdraw first")
    path.write_bytes(content)
    working.bring_batch("fourth", seed=4)
    assert working.retrain().returncode in (0, 3)
