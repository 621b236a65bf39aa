"""Rows in parts train the model that rows in memory train."""

import os

import numpy as np
import pandas as pd
import pytest
import torch

from countermove.data.partitions import Partitions
from countermove.errors import DataError, ModelFileError, NotEnoughRowsError, ParameterError
from countermove.execution import Execution
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.objectives import StrategicRisk
from countermove.people import ActionSet, QuadraticCost
from countermove.response import BestResponse, ScalarResponse
from countermove.scores import LinearScore, MLPScore
from countermove.training import Loss
from countermove.training.streamed import PartRows, StreamedRows

D = 3
BOUNDED = BestResponse(QuadraticCost(0.5), ActionSet(upper=[0.2, 0.5, 0.1], lower=[-0.1] * 3))
FEATURES = tuple(f"x{j}" for j in range(D))


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    y = np.where(X @ [1.0, -0.5, 0.2] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)
    order = np.argsort(y)  # All of one label first: the worst order to learn in.
    return X[order], y[order]


def parts_of(X, y, folder, rows=100):
    folder.mkdir(exist_ok=True)
    frame = pd.DataFrame(X, columns=list(FEATURES)).assign(label=y)
    files = []
    for number, first in enumerate(range(0, len(X), 2 * rows)):
        files.append(folder / f"{number:04d}.parquet")
        frame.iloc[first : first + 2 * rows].to_parquet(files[-1], index=False, row_group_size=rows)
    return PartRows(Partitions(tuple(files), rows_per_part=rows), FEATURES)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    train, validation = people(1030), people(310, seed=1)
    return (
        train,
        validation,
        parts_of(*train, folder / "train"),
        parts_of(*validation, folder / "validation"),
    )


def test_an_epoch_meets_every_row_once_in_a_repeatable_order(tables):
    (X, _), _, train, validation = tables
    sample = StreamedRows.of(train, validation, seed=0, held=50)
    assert sample.n == len(X)
    assert 50 <= len(sample.y) < 70

    def epoch(seed):
        batches = list(sample.batches(64, torch.Generator().manual_seed(seed)))
        return torch.cat([rows for rows, _, _ in batches]).numpy()

    met = epoch(1)
    assert np.array_equal(np.sort(met[:, 0]), np.sort(X[:, 0]))
    assert np.array_equal(epoch(1), met)
    assert not np.array_equal(epoch(2), met)


def test_a_sorted_table_is_blended(tables):
    _, _, train, validation = tables
    sample = StreamedRows.of(train, validation, seed=0, held=50)
    first = next(iter(sample.batches(64, torch.Generator().manual_seed(0))))[1]
    assert 0.05 < float((first > 0).double().mean()) < 0.95


@pytest.mark.parametrize("response", [BestResponse(), ScalarResponse(QuadraticCost(0.5))])
def test_the_summed_gradient_is_the_gradient(tables, response):
    (X, y), _, train, validation = tables
    objective = StrategicRisk((response,), Loss("logistic"))
    score = LinearScore(D, torch.Generator().manual_seed(3))
    found = []
    for execution in (Execution(), Execution("threads", workers=2)):
        with execution.open() as mapper:
            sample = StreamedRows.of(train, validation, 0, 50, mapper)
            score.zero_grad()
            risk = sample.descend(objective, score)
            found.append((risk, score.weight.grad.clone(), score.bias.grad.clone()))
    score.zero_grad()
    whole = objective.loss(score, torch.from_numpy(X), torch.from_numpy(y))
    whole.backward()
    assert found[0][0] == pytest.approx(float(whole.detach()), rel=1e-12)
    assert torch.allclose(found[0][1], score.weight.grad, rtol=1e-10)
    assert torch.allclose(found[0][2], score.bias.grad, rtol=1e-10)
    assert found[0][0] == found[1][0]
    assert torch.equal(found[0][1], found[1][1])


def test_full_gradients_reach_the_same_rule_as_rows_in_memory(tables):
    train, validation, train_parts, validation_parts = tables
    settings = {"optimiser": "lbfgs", "response": "smooth", "selection": "none"}
    here = StrategicClassifier(standardise=False, **settings).fit(*train, validation=validation)
    there = StrategicClassifier(**settings).fit_parts(train_parts, validation_parts)
    assert np.allclose(there.coef_, here.coef_, atol=1e-5)
    assert there.intercept_ == pytest.approx(here.intercept_, abs=1e-5)
    assert there.probability_slope_ == here.probability_slope_


@pytest.mark.parametrize(
    "response",
    ["none", "best", BOUNDED, ["none", BOUNDED]],
    ids=["none", "best", "bounded", "worst of two"],
)
def test_newton_in_parts_reaches_the_optimum_of_all_rows(tables, response):
    train, validation, train_parts, validation_parts = tables
    settings = {"response": response, "selection": "none"}
    here = StrategicClassifier(standardise=False, **settings).fit(*train, validation=validation)
    there = StrategicClassifier(**settings).fit_parts(train_parts, validation_parts)
    assert there.history_.method == "newton"
    assert there.history_.converged
    np.testing.assert_allclose(there.coef_, here.coef_, atol=1e-8)
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-8)


def test_streamed_batches_learn_as_well(tables):
    train, validation, train_parts, validation_parts = tables
    settings = {"optimiser": "adam", "max_epochs": 10, "selection": "none"}
    here = StrategicClassifier(standardise=False, **settings).fit(*train, validation=validation)
    there = StrategicClassifier(**settings).fit_parts(train_parts, validation_parts, held=300)
    X, y = people(4000, seed=2)
    ours, theirs = (rule.score_after_response(X, y) for rule in (there, here))
    assert ours > theirs - 0.02
    assert there.classes_.tolist() == [-1.0, 1.0]


def test_mini_batches_are_polished_on_full_gradients_whoever_sums_them(tables):
    """Two seeds end at one rule, threads at the same bits; history says what happened."""
    _, _, train, validation = tables
    settings = {"optimiser": "adam", "max_epochs": 2, "selection": "none", "response": BOUNDED}
    here = StrategicClassifier(**settings).fit_parts(train, validation)
    assert here.history_.method == "adam"
    assert here.history_.converged
    assert here.history_.ended == (
        "stopped after 2 epochs; polished on full gradients: converged: no entry of the gradient "
        "exceeds 1e-06"
    )
    assert here.history_.best_epoch == len(here.history_) - 1 > 2
    other = StrategicClassifier(**settings, random_state=1).fit_parts(train, validation)
    np.testing.assert_allclose(other.coef_, here.coef_, atol=1e-4)
    with Execution("threads", workers=2).open() as mapper:
        there = StrategicClassifier(**settings).fit_parts(train, validation, mapper=mapper)
    assert np.array_equal(there.coef_, here.coef_)


def test_a_network_in_parts_is_polished_and_a_kinked_loss_is_not(tables):
    _, _, train, validation = tables
    network = MLPScore(D, (4,), dropout=0.0, generator=torch.Generator().manual_seed(0))
    settings = {"response": "none", "max_epochs": 3}
    smooth = StrategicClassifier(network, **settings).fit_parts(train, validation)
    plain = StrategicClassifier(loss="hinge", **settings).fit_parts(train, validation)
    assert "polished on full gradients" in smooth.history_.ended
    assert smooth.history_.converged is not None
    losses = [record.train_loss for record in smooth.history_.records]
    assert losses[-1] < losses[3]
    assert plain.history_.ended == "stopped after 3 epochs"
    assert plain.history_.converged is None


def test_a_stopped_run_resumes_and_other_files_are_refused(tables, tmp_path):
    _, _, train, validation = tables
    file = tmp_path / "run.checkpoint"
    rule = {"response": "none", "start": "means", "optimiser": "adam"}
    StrategicClassifier(max_epochs=2, **rule).fit_parts(train, validation, checkpoint=file)
    resumed = StrategicClassifier(max_epochs=4, patience=9, **rule)
    resumed.fit_parts(train, validation, checkpoint=file)
    straight = StrategicClassifier(max_epochs=4, patience=9, **rule).fit_parts(train, validation)
    assert np.array_equal(resumed.coef_, straight.coef_)
    os.utime(train.parts.files[0])
    with pytest.raises(ModelFileError, match="left by another run"):
        resumed.fit_parts(train, validation, checkpoint=file)


def test_what_cannot_be_learned_part_by_part(tables, tmp_path):
    _, _, train, validation = tables
    per_person = ActionSet(upper=np.ones((10, D)))
    with pytest.raises(ParameterError, match=r"bounds\s+of shape \(d,\)"):
        StrategicClassifier(actions=per_person).fit_parts(train, validation)
    robust = StrategicClassifier(response=["best", "smooth"], optimiser="lbfgs")
    with pytest.raises(ParameterError, match="no sums over parts"):
        robust.fit_parts(train, validation)
    X, y = people(50)
    y[[7, 9]] = 0.0
    wrong = parts_of(X, y, tmp_path / "wrong", rows=10)
    with pytest.raises(DataError, match=r"-1 or \+1; not so in rows 7, 9"):
        StreamedRows.of(wrong, validation, 0)
    with pytest.raises(ParameterError, match="got 0"):
        StreamedRows.of(train, validation, 0, held=0)
    file = tmp_path / "empty.parquet"
    pd.read_parquet(train.parts.files[0]).iloc[:0].to_parquet(file, index=False)
    with pytest.raises(NotEnoughRowsError, match="hold no rows"):
        StreamedRows.of(PartRows(Partitions((file,)), FEATURES), validation, 0)


@pytest.mark.parametrize("way", ["in place", "by a rename"])
def test_parts_that_are_written_again_are_read_again(tmp_path, way):
    """As many rows as before under the names they had."""
    rule = StrategicClassifier(response="none", selection="none")
    validation = parts_of(*people(310, seed=1), tmp_path / "validation")
    rows, folder = people(600), tmp_path / "train"
    before = rule.fit_parts(parts_of(*rows, folder), validation).coef_
    rows = people(600, seed=2)[0], -people(600, seed=2)[1]
    fresh = parts_of(*rows, tmp_path / "fresh")
    wanted = rule.fit_parts(fresh, validation).coef_
    if way == "in place":
        parts_of(*rows, folder)
    else:
        for file in fresh.parts.files:
            os.replace(file, folder / file.name)
    parts = Partitions(tuple(sorted(folder.iterdir())), rows_per_part=100)
    after = rule.fit_parts(PartRows(parts, FEATURES), validation).coef_
    np.testing.assert_array_equal(after, wanted)
    assert np.abs(after - before).max() > 0.1
