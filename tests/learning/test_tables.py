"""Ten tables of scikit-learn's and OpenML's kind: blind is logistic regression in any units."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from countermove import StrategicClassifier
from countermove.data import read_embedded

ODD = 10.0 ** np.linspace(-6.0, 6.0, 60)


def pair(load, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load(return_X_y=True)
    two = np.isin(y, (first, second))
    return X[two], y[two] == second


def median_of_diabetes() -> tuple[np.ndarray, np.ndarray]:
    X, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    return X, y > np.median(y)


def odd_scales(make, **settings) -> tuple[np.ndarray, np.ndarray]:
    X, y = make(n_samples=400, random_state=1, **settings)
    return X * ODD[: X.shape[1]] + 3.0 * ODD[X.shape[1] :: -1][: X.shape[1]], y


def embedded(name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    table = read_embedded(name).sample(rows, random_state=0)
    for column in table:
        numbers = pd.to_numeric(table[column], errors="coerce")
        table[column] = table[column] if numbers.isna().any() else numbers
    X = pd.get_dummies(table.iloc[:, 1:-1], drop_first=True).to_numpy(np.float64)
    return X, pd.factorize(table.iloc[:, -1], sort=True)[0]


TABLES = {
    "iris": lambda: pair(datasets.load_iris, 1, 2),
    "wine": lambda: pair(datasets.load_wine, 0, 1),
    "digits": lambda: pair(datasets.load_digits, 3, 8),
    "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "diabetes": median_of_diabetes,
    "classification": lambda: odd_scales(datasets.make_classification),
    "moons": lambda: odd_scales(datasets.make_moons, noise=0.3),
    "gaussian": lambda: odd_scales(datasets.make_hastie_10_2),
    "german": lambda: embedded("german", 1_000),
    "credit": lambda: embedded("credit", 1_500),
}


@cache
def halves(name: str) -> tuple[np.ndarray, ...]:
    X, y = TABLES[name]()
    order = np.random.default_rng(0).permutation(len(y))
    learn, judge = order[: len(y) // 2], order[len(y) // 2 :]
    return X[learn], np.asarray(y)[learn], X[judge], np.asarray(y)[judge]


@pytest.mark.parametrize("name", TABLES)
def test_blind_training_is_logistic_regression_within_noise(name):
    X, y, others, truth = halves(name)
    ours = StrategicClassifier(response="none").fit(X, y).predict(others) == truth
    usual = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2_000)).fit(X, y)
    theirs = usual.predict(others) == truth
    differ = np.count_nonzero(ours != theirs)
    # Decisions that differ are right for either rule like tosses of a coin.
    assert ours.sum() >= theirs.sum() - 2.5 * np.sqrt(differ) - 1


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("response", ["none", "best"])
def test_units_do_not_matter(name, response):
    X, y, others, truth = halves(name)
    settings = {"response": response, "selection": "none"}
    raw = StrategicClassifier(**settings).fit(X, y)
    unit = StandardScaler().fit(X)
    plain = StrategicClassifier(**settings).fit(unit.transform(X), y)
    standardised = unit.transform(others)
    np.testing.assert_array_equal(raw.predict(others), plain.predict(standardised))
    judged = raw.score_after_response(others, truth)
    assert judged == plain.score_after_response(standardised, truth)
