"""Seeds and strengths are axes of a sweep; cells nobody asks for any more can be removed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from countermove.errors import ParameterError
from countermove.execution import Execution
from countermove.experiments import Measured
from countermove.experiments.cell_store import CellStore
from countermove.learning.regularisers import SocialBurden
from countermove.params import SweepParameters
from countermove.people import QuadraticCost

from .test_sweep import grid, run_sweep, tables, without_times

STRENGTHS = (0.0, 10.0)


def small(**changes):
    return grid(splits=1, costs=[QuadraticCost(1.0)], **changes)


@pytest.fixture(scope="module")
def strong():
    return run_sweep(
        small(regulariser=SocialBurden(), strengths=STRENGTHS, seeds=(5, 6)), tables, 0
    )


def test_every_seed_and_strength_is_there_once(strong):
    found = list(strong[["seed", "strength"]].itertuples(index=False, name=None))
    assert found == [(seed, strength) for seed in (5, 6) for strength in STRENGTHS]


def test_the_rows_of_a_split_do_not_depend_on_the_seed_of_training():
    plain = run_sweep(small(), tables, 0)
    same = run_sweep(small(seeds=(0,)), tables, 0)
    assert without_times(same.drop(columns="seed")).equals(without_times(plain))


def test_a_regulariser_of_no_strength_changes_nothing(strong):
    plain = run_sweep(small(seeds=(5,)), tables, 0)
    assert strong["strategic"][0] == plain["strategic"][0]
    assert strong["strategic"][1] != plain["strategic"][0]


def test_all_axes_in_threads_are_the_same_table(strong):
    with Execution("threads", workers=2).open() as mapper:
        found = run_sweep(
            small(regulariser=SocialBurden(), strengths=STRENGTHS, seeds=(5, 6)), tables, 0, mapper
        )
    assert without_times(found).equals(without_times(strong))


def test_strengths_can_be_drawn_against(strong):
    figure = small(axis="strength").figure(Measured(strong), strong, "t")
    assert figure.layout.xaxis.title.text == "strength of the regulariser"
    assert list(figure.data[0].x) == list(STRENGTHS)


def test_strengths_of_nothing_are_refused():
    with pytest.raises(ParameterError, match="of no regulariser"):
        small(strengths=(0.1,))
    with pytest.raises(ValidationError, match="name its kind"):
        SweepParameters(strengths=[0.1])
    with pytest.raises(ValidationError, match="needs strengths"):
        SweepParameters(axis="strength")


def test_pruning_removes_what_is_no_longer_asked_for_and_nothing_else(tmp_path, caplog):
    mine, other = CellStore(tmp_path / "mine"), CellStore(tmp_path / "other")
    run_sweep(small(), tables, 0, store=mine)
    run_sweep(small(), tables, 0, store=other)
    note = mine.folder / "note.json"
    note.write_text("{}")
    changed = small(settings={"optimiser": "adam", "selection": "none", "max_epochs": 2})
    run_sweep(changed, tables, 0, store=mine)
    with caplog.at_level("INFO"):
        kept = run_sweep(replace(changed, prune=True), tables, 0, store=mine)
    assert "1 cells that this sweep does not ask for removed" in caplog.text
    assert note.exists()
    assert len(list(mine.folder.iterdir())) == 2
    assert len(list(other.folder.iterdir())) == 1
    assert run_sweep(changed, tables, 0, store=mine).equals(kept)


def test_nothing_is_pruned_while_a_table_is_not_there(tmp_path, caplog):
    store = CellStore(tmp_path)
    run_sweep(small(), tables, 0, store=store)
    few = small(
        settings={"optimiser": "adam", "selection": "none", "max_epochs": 2},
        datasets=["tiny", "spam"],
        skip_missing=True,
    )
    run_sweep(replace(few, prune=True), tables, 0, store=store)
    assert "no cell was removed" in caplog.text
    assert len(list(tmp_path.iterdir())) == 2


def test_yaml_says_the_axes():
    said = {"regulariser": {"kind": "burden"}, "strengths": [0.0, 0.1], "seeds": [3]}
    built = SweepParameters.model_validate(said | {"axis": "strength"}).build()
    assert [aim.strength for aim, _ in built.inner] == [0.0, 0.1]
    assert built.seeds == [3]
