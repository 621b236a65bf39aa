"""Iris and digits as scikit-learn carries them."""

import pytest

from countermove.data import sources
from countermove.data.recipes import digits, iris
from countermove.data.sources import read_embedded
from countermove.errors import DataError


def test_they_are_what_was_published():
    flowers, images = iris(read_embedded("iris")), digits(read_embedded("digits"))
    assert flowers.groupby("species").size().to_dict() == {
        "setosa": 50,
        "versicolor": 50,
        "virginica": 50,
    }
    assert flowers["is_virginica"].sum() == 50
    assert len(images) == 1797
    assert images[[f"is_{d}" for d in range(10)]].sum(axis=1).eq(1).all()


def test_another_table_is_refused(monkeypatch):
    read, _ = sources.BUNDLED["iris"]
    monkeypatch.setitem(sources.BUNDLED, "iris", (read, "0" * 64))
    with pytest.raises(DataError, match="not the one on record"):
        read_embedded("iris")


def test_strange_classes_are_refused():
    flowers, images = read_embedded("iris"), read_embedded("digits")
    flowers.loc[3, "species"] = "tulip"
    images.loc[5, "digit"] = 11
    with pytest.raises(DataError, match="species") as error:
        iris(flowers)
    assert error.value.rows == (3,)
    with pytest.raises(DataError, match="digit") as error:
        digits(images)
    assert error.value.rows == (5,)
