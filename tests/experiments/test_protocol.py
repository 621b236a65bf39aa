"""The protocol of all experiments: places in order, workers, what stands beside, averages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import pytest

from countermove.execution import Execution
from countermove.experiments import Experiment, Measured
from countermove.experiments.protocol import averages, mean_and_spread, means_table, over_splits
from countermove.randomness import generator


@dataclass(frozen=True)
class Dice(Experiment[int]):
    """Throws of a die with so many faces."""

    throws: int = 6

    def places(self, given: int) -> range:
        return range(self.throws)

    def measured_at(self, place: int, seed: int, given: int) -> tuple[list[dict[str, Any]], int]:
        eyes = int(generator(seed, f"throw {place}").integers(1, given + 1))
        return [{"throw": place, "side": side, "eyes": eyes} for side in ("up", "down")], eyes

    def beside(self, parts) -> int:
        return sum(parts)

    def draw(self, found: Measured, means: pd.DataFrame) -> Any:
        from plotly.graph_objects import Figure

        return Figure()


class Alone(Dice):
    alone = True


class NoWorkers:
    def map(self, work, items, shared):
        raise AssertionError("no place was to be given away")


def test_rows_stand_in_the_order_of_the_places():
    found = Dice().measure(6, 0)
    assert found.cells["throw"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert found.beside == found.cells.loc[found.cells["side"] == "up", "eyes"].sum()


def test_workers_change_nothing_and_more_places_leave_the_others():
    one = Dice().cells(6, 3)
    with Execution("threads", workers=2).open() as mapper:
        pd.testing.assert_frame_equal(Dice().cells(6, 3, mapper), one)
    pd.testing.assert_frame_equal(replace(Dice(), throws=9).cells(6, 3)[: len(one)], one)
    assert not one.equals(Dice().cells(6, 4))


def test_an_experiment_that_must_be_alone_is_given_to_nobody():
    with pytest.raises(AssertionError, match="given away"):
        Dice().measure(6, 0, NoWorkers())
    assert len(Alone().measure(6, 0, NoWorkers()).cells) == 12


def test_the_page_has_title_figure_and_means():
    found = Dice().measure(6, 0)
    page = Dice().page(found, found.cells, Dice().figure(found, found.cells, "ten throws"))
    assert "ten throws" in page
    assert "eyes" in page


def test_a_measure_that_a_split_lacks_is_averaged_over_the_others():
    cells = pd.DataFrame(
        {
            "rule": ["b", "a", "b"],
            "split": [0, 0, 1],
            "recourse": [0.5, 0.25, None],
            "f1": [0.2, 0.8, 0.4],
        }
    )
    means = over_splits(cells, ["rule"])
    assert means.columns.tolist() == ["rule", "splits", "recourse", "f1"]
    assert means.to_dict("list") == {
        "rule": ["b", "a"],
        "splits": [2, 1],
        "recourse": [0.5, 0.25],
        "f1": pytest.approx([0.3, 0.8]),
    }
    assert averages(cells, ["rule"], ["split"])["f1"].tolist() == pytest.approx([0.3, 0.8])
    spread = mean_and_spread(cells, ["rule"], ["f1"])
    assert spread["f1_sd"][0] == pytest.approx(0.2 / 2**0.5)
    assert spread["cells"].tolist() == [2, 1]


def test_a_number_that_is_missing_is_an_empty_cell_of_a_page():
    table = means_table(pd.DataFrame({"rule": ["a", "b"], "f1": [0.123456, None], "n": [3, 4]}))
    assert table["head"] == ["rule", "f1", "n"]
    assert table["rows"] == [["a", "0.1235", "3"], ["b", "", "4"]]
