"""A population in partitions responds as in one table, however it is cut and mapped."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.partitions import Partitions
from countermove.errors import DataError, ParameterError, PartError
from countermove.execution import Execution
from countermove.people import (
    ActionSet,
    ConicCost,
    MahalanobisCost,
    MixtureCost,
    QuadraticCost,
    WeightedQuadraticCost,
)
from countermove.response import (
    AscentResponse,
    BestResponse,
    ConicResponse,
    Population,
    ScalarResponse,
    partitions,
)
from countermove.response.partitions import respond_parts
from countermove.scores import LinearScore

D = 5
FEATURES = [f"x{j}" for j in range(D)]
SCORE = LinearScore(D, torch.Generator().manual_seed(1))
BOX = ActionSet(lower=np.full(D, -0.3), upper=np.full(D, 0.4), immutable=[2])
PEOPLE = np.random.default_rng(0).normal(size=(1013, D))


def shape(seed=0):
    root = np.random.default_rng(seed).normal(size=(D, D))
    return root @ root.T / D + np.eye(D)


RESPONSES = {
    "best": BestResponse(QuadraticCost(1.0)),
    "best, box": BestResponse(WeightedQuadraticCost(np.linspace(0.5, 2.0, D)), BOX),
    "best, mixture": BestResponse(MixtureCost(np.linspace(-1.0, 1.0, D), 0.3)),
    "best, Mahalanobis": BestResponse(MahalanobisCost(shape()), BOX),
    "smooth": ScalarResponse(QuadraticCost(1.0)),
    "smooth, box": ScalarResponse(QuadraticCost(0.5), BOX),
    "people who differ": Population(
        [BestResponse(QuadraticCost(1.0), BOX), ScalarResponse(QuadraticCost(0.5), BOX)],
        [0.6, 0.4],
        never=0.2,
        log_sd=0.6,
        log_price=[0.0, 0.0, 0.7, 0.0, 0.0],
    ),
    "published": ScalarResponse(
        QuadraticCost(0.5), start="stay", normalised=False, gradient="last_proxy"
    ),
}


def parts_of(X, folder, rows):
    folder.mkdir(exist_ok=True)
    files = []
    frame = pd.DataFrame(X, columns=FEATURES).assign(row_id=np.arange(len(X)))
    for number, first in enumerate(range(0, len(X), rows)):
        files.append(folder / f"{number:04d}.parquet")
        frame.iloc[first : first + rows].to_parquet(files[-1], index=False)
    return Partitions(tuple(files), rows_per_part=rows)


@pytest.mark.parametrize("name", RESPONSES)
def test_parts_respond_bit_for_bit_as_the_whole(name, tmp_path):
    response = RESPONSES[name]
    whole = response.respond(SCORE, PEOPLE)
    decided = response.decisions_after(SCORE, PEOPLE)
    for rows, execution in ((1013, Execution()), (37, Execution()), (250, Execution("threads"))):
        parts = parts_of(PEOPLE, tmp_path / f"in-{rows}", rows)
        with execution.open() as mapper:
            run = respond_parts(
                response, SCORE, parts, tmp_path / "out", FEATURES, ["row_id"], mapper
            )
        found = run.result().read()
        assert np.array_equal(found[FEATURES].to_numpy(), whole.x_new)
        assert np.array_equal(found["move_cost"], whole.cost)
        assert np.array_equal(found["moved"], whole.moved)
        assert np.array_equal(found["favoured"], decided)
        assert found["row_id"].tolist() == list(range(len(PEOPLE)))


@pytest.mark.slow
def test_people_before_trees_respond_on_dask_as_in_memory(tmp_path):
    import lightgbm

    from countermove import adopt

    deserving = PEOPLE @ [1.0, -1.0, 0.5, 0.0, 1.0] > 0.2
    fitted = lightgbm.LGBMClassifier(n_estimators=20, num_leaves=6, verbose=-1)
    trees = adopt(fitted.fit(PEOPLE, deserving), PEOPLE).score_
    response = BestResponse(QuadraticCost(1.0), ActionSet(immutable=[2], integer=[0]))
    whole = response.respond(trees, PEOPLE)
    assert 0 < whole.moved.sum() < len(PEOPLE)
    parts = parts_of(PEOPLE, tmp_path / "in", 250)
    with Execution("dask", workers=2).open() as mapper:  # its own scheduler, on loopback
        run = respond_parts(response, trees, parts, tmp_path / "out", FEATURES, ["row_id"], mapper)
    found = run.result().read()
    assert np.array_equal(found[FEATURES].to_numpy(), whole.x_new)
    assert np.array_equal(found["move_cost"], whole.cost)
    assert np.array_equal(found["favoured"], response.decisions_after(trees, PEOPLE))


def test_bounds_of_each_person_follow_them_into_their_part(tmp_path):
    upper = np.random.default_rng(3).uniform(0.0, 0.5, size=PEOPLE.shape)
    response = BestResponse(QuadraticCost(1.0), ActionSet(upper=upper))
    run = respond_parts(
        response, SCORE, parts_of(PEOPLE, tmp_path / "in", 100), tmp_path / "out", FEATURES
    )
    whole = response.respond(SCORE, PEOPLE).x_new
    assert np.array_equal(run.result().read()[FEATURES].to_numpy(), whole)


@pytest.mark.slow
@pytest.mark.parametrize("response", [ConicResponse(QuadraticCost(1.0)), BestResponse()])
def test_compiled_solvers_stay_behind_when_a_response_travels(response):
    X = PEOPLE[:20]
    before = response.respond(SCORE, X).x_new
    again = pickle.loads(pickle.dumps(response))
    assert np.allclose(again.respond(SCORE, X).x_new, before, atol=1e-6)


@pytest.mark.slow
def test_conic_parts_agree_within_the_solvers_tolerance(tmp_path):
    response = ConicResponse(MixtureCost(np.linspace(-1.0, 1.0, D), 0.3), BOX)
    X = PEOPLE[:60]
    whole = response.respond(SCORE, X).x_new
    parts = parts_of(X, tmp_path / "in", 25)
    with Execution("threads", workers=2).open() as mapper:
        run = respond_parts(response, SCORE, parts, tmp_path / "out", FEATURES, (), mapper)
    assert np.allclose(run.result().read()[FEATURES].to_numpy(), whole, atol=1e-5)


def test_rows_without_a_response_are_named_in_the_whole_table(tmp_path):
    X = PEOPLE.copy()
    X[[420, 431], 1] = np.nan
    parts = parts_of(X, tmp_path / "in", 100)
    with pytest.raises(PartError, match=r"part 4 \(0004.parquet, rows 420, 431 of the table\)"):
        respond_parts(RESPONSES["best"], SCORE, parts, tmp_path / "out", FEATURES)
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(partitions, "CELLS", 1)
    monkeypatch.setattr(partitions, "FEWEST", 64)


@pytest.mark.parametrize("name", ["best, box", "smooth", "best, Mahalanobis"])
def test_blocks_inside_a_part_change_no_bit(name, tmp_path, small_blocks):
    parts, response = parts_of(PEOPLE, tmp_path / "in", 1013), RESPONSES[name]
    found = respond_parts(response, SCORE, parts, tmp_path / "out", FEATURES).result().read()
    whole = response.respond(SCORE, PEOPLE)
    assert np.array_equal(found[FEATURES].to_numpy(), whole.x_new)
    assert np.array_equal(found["move_cost"].to_numpy(), whole.cost)


def test_rows_of_a_later_block_are_named_in_the_whole_table(tmp_path, small_blocks):
    X = PEOPLE.copy()
    X[[200, 707], 1] = np.nan, np.inf
    parts = parts_of(X, tmp_path / "in", 500)
    with pytest.raises(PartError, match="part 0") as caught:
        respond_parts(RESPONSES["best"], SCORE, parts, tmp_path / "out", FEATURES)
    assert caught.value.rows == (200,)


def test_columns_must_fit_the_score(tmp_path):
    parts = parts_of(PEOPLE[:10], tmp_path / "in", 10)
    with pytest.raises(ParameterError, match="reads 5 features, 2 columns"):
        respond_parts(RESPONSES["best"], SCORE, parts, tmp_path / "out", FEATURES[:2])
    with pytest.raises(DataError, match="no column x9"):
        respond_parts(RESPONSES["best"], SCORE, parts, tmp_path / "out", [*FEATURES[:4], "x9"])
    with pytest.raises(ParameterError, match="its own column 'moved'"):
        respond_parts(RESPONSES["best"], SCORE, parts, tmp_path / "o", FEATURES, ["moved"])


def test_responses_that_differ_only_in_what_they_hold_have_different_fingerprints():
    cp = pytest.importorskip("cvxpy")
    weight, other = np.ones(D), np.full(D, 2.0)
    pairs = {
        "code": (
            ConicResponse(ConicCost(lambda x, x_new: cp.sum_squares(x_new - x))),
            ConicResponse(ConicCost(lambda x, x_new: 2.0 * cp.sum_squares(x_new - x))),
        ),
        "closure": tuple(
            BestResponse(ConicCost(lambda x, x_new, w=w: cp.sum_squares(cp.multiply(w, x_new - x))))
            for w in (weight, other)
        ),
        "reference": tuple(
            AscentResponse(QuadraticCost(1.0), reference=PEOPLE[rows])
            for rows in (slice(0, 99), slice(1, 100))
        ),
    }
    for name, pair in pairs.items():
        first, second = (
            partitions.RespondTask(response, SCORE, FEATURES).fingerprint() for response in pair
        )
        again = partitions.RespondTask(pair[0], SCORE, FEATURES).fingerprint()
        assert first != second, name
        assert first == again, name
