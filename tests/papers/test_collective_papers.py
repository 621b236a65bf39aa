"""Online Algorithmic Recourse by Collective Action: Figure 2 and what was measured beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
import yaml
from sklearn.datasets import load_iris

from countermove.data.cleaning import clean
from countermove.data.fetch import fetch
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.dynamics.collective.recourse import individual, individual_sphere, together
from countermove.dynamics.collective.recourse_analysis import break_even, least_budgets
from countermove.dynamics.collective.recourse_problem import Reach, recourse_problem
from countermove.errors import SourceUnreachableError
from countermove.experiments.collective.people import random_participants
from countermove.params import CollectiveParameters

pytestmark = pytest.mark.paper

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "conf" / "base" / "schemas"
CACHE = Path(os.environ.get("COUNTERMOVE_CACHE") or ROOT / ".cache" / "wheels")
X, Y = load_iris(return_X_y=True)
MEANS = np.array([X[c == Y].mean(axis=0) for c in range(3)])
BUDGETS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
# Measured with an exact re-implementation of the paper's set-up (its Figure 2 has no table).
INDIVIDUAL = {
    (0, 1): (1.9451, 1.5347, 1.1662, 0.8507, 0.5956, 0.2623, 0.1047, 0.0479),
    (1, 2): (1.1913, 0.8781, 0.6255, 0.4339, 0.2966, 0.2138, 0.2139, 0.2139),
}
COLLECTIVE = {
    (0, 1): (1.9451, 1.5338, 1.1648, 0.8491, 0.5940, 0.2612, 0.1042, 0.0266),
    (1, 2): (1.1913, 0.8712, 0.6114, 0.4130, 0.2701, 0.1412, 0.0880, 0.0334),
}
PARTICIPATION = {0.1: 1.872, 0.25: 1.752, 0.5: 1.557, 0.75: 1.353, 1.0: 1.165}


def iris(goal, start):
    return recourse_problem(X, Y, 0.25 * MEANS[goal] + 0.75 * MEANS[start], goal)


@pytest.mark.parametrize("pair", INDIVIDUAL, ids=["setosa", "versicolor"])
def test_losses_on_iris(pair):
    """Figure 2, left: every budget, alone and together, to 1e-3."""
    problem = iris(*pair)
    alone = [individual(problem, Reach(budget)).loss for budget in BUDGETS]
    helped = [together(problem, Reach(budget)).loss for budget in BUDGETS]
    assert alone == pytest.approx(INDIVIDUAL[pair], abs=1e-3)
    assert helped == pytest.approx(COLLECTIVE[pair], abs=1e-3)
    assert all(b <= a + 1e-9 for a, b in zip(alone, helped, strict=True))


def test_moving_everybody_freely_gives_no_more_than_moving_classes():
    """All 150 moves by the engine: 1.16479, as class by class."""
    found = together(iris(0, 1), Reach(0.5), method="engine")
    assert found.loss == pytest.approx(1.16479, abs=1e-5)


def test_training_accuracy_on_iris():
    """92.7 % with all four features; the paper's 96 % is what the petals alone give."""
    for features, accuracy in ((slice(0, 4), 0.927), (slice(2, 4), 0.96)):
        query = (0.25 * MEANS[0] + 0.75 * MEANS[1])[features]
        problem = recourse_problem(X[:, features], Y, query, 0)
        decided = problem.goals.decide(problem.theta, X[:, features])
        assert np.mean(decided == Y) == pytest.approx(accuracy, abs=1e-3)


def test_participation_at_a_half():
    """Who took part is not on record: its figures lie among draws of ours, near the exact mean."""
    problem, rng = iris(0, 1), np.random.default_rng(0)
    for share, recorded in PARTICIPATION.items():
        exact = together(problem, Reach(0.5), participation=share).loss
        drawn = [
            together(problem, Reach(0.5), random_participants(len(Y), share, rng)).loss
            for _ in range(200 if share < 1.0 else 1)
        ]
        assert min(drawn) - 1e-3 <= recorded <= max(drawn) + 1e-3
        assert np.mean(drawn) == pytest.approx(exact, abs=5e-3)
        assert recorded == pytest.approx(exact, abs=0.03)


def test_break_even_and_flips():
    assert break_even(iris(0, 1), Reach(0.5)) == pytest.approx(0.998, abs=2e-3)
    # Interpolated on record: near 64 %.
    assert break_even(iris(0, 2), Reach(0.5)) == pytest.approx(0.64, abs=0.05)
    two = recourse_problem(X[Y < 2], Y[Y < 2], 0.25 * MEANS[0] + 0.75 * MEANS[1], 0)
    found = least_budgets(two, Reach(1.0))
    assert (found.individual, found.collective) == pytest.approx((0.802, 0.802), abs=1.5e-3)


def test_the_published_shortcut():
    assert individual_sphere(iris(1, 2), Reach(3.0)).loss == pytest.approx(0.836, abs=1e-3)


@pytest.mark.slow
def test_figure_2_on_mnist(tmp_path):
    """Figure 2, right, on 5,000 of 60,000 images: together below alone at every budget."""
    schema = load_schema("mnist-5k", SCHEMAS)
    try:
        fetch("mnist-5k", tmp_path, CACHE)
    except SourceUnreachableError as error:
        pytest.skip(f"mnist-5k is not in {CACHE} and cannot be fetched: {error}")
    path = ROOT / "conf" / "paper" / "collective_figure_2_mnist.yml"
    said = CollectiveParameters.model_validate(
        yaml.safe_load(path.read_text())["run"]["params"]["collective"]
    )
    start = time.process_time()
    table = clean(read_raw("mnist-5k", tmp_path, schema), schema)
    people = said.prepare().people(lambda name: (table, schema), 0)
    experiment = said.build()
    curves = experiment.cells(people, 0)
    assert time.process_time() - start < 120.0
    problem = experiment.given(people, 0)
    decided = problem.goals.decide(problem.theta, problem.crowd.X)
    # 83 % in the paper.
    assert np.mean(decided == problem.crowd.y) == pytest.approx(0.83, abs=0.04)
    moving = curves[curves["budget"] > 0.0]
    assert (moving["collective_loss"] < moving["individual_loss"] - 0.01).all()
