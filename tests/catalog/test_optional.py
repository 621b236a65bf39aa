"""A file that need not be there loads as None, and as itself once it is."""

import pandas as pd
import pytest

from countermove.catalog import OptionalCSVDataset, OptionalJSONDataset


@pytest.mark.parametrize(
    ("kind", "content"),
    [(OptionalJSONDataset, {"a": 1}), (OptionalCSVDataset, pd.DataFrame({"a": [1, 2]}))],
)
def test_absent_is_none_and_present_is_read(tmp_path, kind, content):
    path = tmp_path / "found"
    assert kind(filepath=str(path)).load() is None
    kind(filepath=str(path)).save(content)
    assert str(kind(filepath=str(path)).load()) == str(content)


def test_a_damaged_file_is_not_taken_for_an_absent_one(tmp_path):
    path = tmp_path / "facts.json"
    path.write_text('{"a": 1')
    with pytest.raises(Exception, match=r"facts\.json"):
        OptionalJSONDataset(filepath=str(path)).load()
