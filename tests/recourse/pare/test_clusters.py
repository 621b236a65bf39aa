"""Promises to rows that belong together: at most five of a cluster count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from countermove.certificates.betting import ratio_p_values
from countermove.data.synthetic import GaussianPopulation
from countermove.errors import CalibrationError, DataError
from countermove.people import QuadraticCost
from countermove.recourse import (
    calibrate_after_response,
    calibrate_pare,
    calibrate_pare_by_group,
    certify_refused,
)
from countermove.recourse.pare import reach_of, refused_certificate
from countermove.recourse.pare.inputs import ClusterRows
from countermove.response import BestResponse, NoResponse, Population
from countermove.scores.base import values

GRID = expit(np.linspace(-4.0, 1.0, 21))


@pytest.fixture(scope="module")
def families() -> tuple[np.ndarray, np.ndarray]:
    """Return 1,000 people of 300 families of one to twenty rows."""
    X, _ = GaussianPopulation(centre=(1.0, 0.5)).sample(1000, seed=0)
    names = np.concatenate([np.arange(300), np.random.default_rng(0).integers(0, 300, 680)])
    return X, np.concatenate([names, np.full(20, 7)]).astype(str)


def test_at_most_five_rows_of_a_cluster_are_drawn_whatever_the_order(families):
    _, names = families
    ids = np.array([f"p{row}" for row in range(1000)])
    drawn = ClusterRows.drawn(names, 1000, ids)
    sizes = np.unique(names, return_counts=True)[1]
    assert drawn.totals(np.ones(len(drawn.rows))).tolist() == np.minimum(sizes, 5).tolist()
    shuffle = np.random.default_rng(3).permutation(1000)
    again = ClusterRows.drawn(names[shuffle], 1000, ids[shuffle])
    assert set(ids[shuffle][again.rows]) == set(ids[drawn.rows])
    # By chance, not the first five of the table.
    assert set(drawn.rows[names[drawn.rows] == "7"]) != set(np.flatnonzero(names == "7")[:5])


def test_the_bound_is_the_last_of_all_thresholds_that_passes(score, half, families):
    X, names = families
    found = calibrate_pare(score, X, actions=half, clusters=names)
    drawn = ClusterRows.drawn(names, len(X))
    best = reach_of(score, half)(X)[drawn.rows]
    sizes = drawn.totals(np.ones(len(best)))[None]

    def passes(cut: float) -> bool:
        return ratio_p_values(drawn.totals(best < cut)[None], sizes, 5, 0.05)[0] <= 0.05

    cut = logit(found.bound)
    assert all(passes(value) for value in np.sort(best[best <= cut + 1e-6]))
    assert not passes(np.min(best[best > cut + 1e-6]))
    # Rows that belong together say less than as many independent ones.
    assert found.bound < calibrate_pare(score, X, actions=half).bound


def test_the_certificate_names_its_target(score, half, families):
    X, names = families
    certificate = calibrate_pare(score, X, actions=half, clusters=names).certificate
    assert "counting at most 5 rows of a cluster" in certificate.words
    stated = certificate.assumptions[0].statement
    assert "at most 5 rows of a cluster, drawn at random" in stated
    assert f"{certificate.n} of 1000 rows, 300 clusters" in stated
    assert "betting" in certificate.reference


def test_clusters_in_groups_after_response_and_among_the_refused(score, half, families):
    X, names = families
    groups = np.where(X[:, 1] > 0.3, "one", "other")
    by_group = calibrate_pare_by_group(
        score, X, groups, actions=half, miss_rate=0.2, clusters=names
    )
    assert by_group.bound == min(by_group.bounds.values())
    for name, said in by_group.certificates.items():
        assert said.words.endswith("counting at most 5 rows of a cluster")
        assert f"with group = {name} are approved or have recourse" in said.words
    given = {"actions": half, "miss_rate": 0.2, "clusters": names}
    people = Population(BestResponse(QuadraticCost(2.0)), never=0.03, log_sd=0.5)
    for response, promise in ((NoResponse(), "can"), (people, "can"), (people, "will")):
        found = calibrate_after_response(score, X, response, GRID, promise=promise, **given)
        assert found.passed.any()
        assert (found.miss_bound >= found.miss_share).all()
        assert "clusters as units" in found.certificate(found.threshold).reference
    refused = certify_refused(score, X, GRID[12:], **given | {"miss_rate": 0.8})
    assert refused.passed[0]
    alone = refused_certificate(
        score, X, GRID, GRID[12], 0.05, reach=reach_of(score, half), clusters=names
    )
    now = values(score, X)[ClusterRows.drawn(names, len(X)).rows]
    assert alone.n == np.sum(now < logit(GRID[12]))
    assert refused.miss_share[0] < alone.value < 1.0


def test_on_the_same_thresholds_grid_and_order_statistic_agree(score, half, families):
    X, names = families
    bound = calibrate_pare(score, X, actions=half, clusters=names).bound
    found = calibrate_after_response(score, X, NoResponse(), GRID, actions=half, clusters=names)
    assert found.threshold == GRID[bound >= GRID].max()


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (np.zeros(999), "1000 people need one cluster each, got shape"),
        (np.where(np.arange(1000) == 4, np.nan, 1.0), "rows 4 have no cluster"),
        (np.where(np.arange(1000) == 4, None, "a"), "rows 4 have no cluster"),
    ],
)
def test_clusters_that_do_not_fit_are_named(score, half, families, clusters, message):
    with pytest.raises(DataError, match=message):
        calibrate_pare(score, families[0], actions=half, clusters=clusters)


@pytest.mark.parametrize("kept", [1, 30])
def test_too_few_clusters_say_how_many_are_needed(score, half, families, kept):
    X, _ = families
    names = np.arange(1000) % kept
    with pytest.raises(
        CalibrationError, match=f"{kept} clusters with .* at least 65 clusters of 5"
    ):
        calibrate_pare(score, X, actions=half, clusters=names)
    with pytest.raises(CalibrationError, match="at least 65 clusters"):
        calibrate_after_response(score, X, NoResponse(), GRID, actions=half, clusters=names)


def test_a_group_with_too_few_clusters_is_named(score, half, families):
    X, names = families
    groups = np.where(np.arange(1000) < 40, "few", "many")
    with pytest.raises(CalibrationError, match="of group = few to count"):
        calibrate_pare_by_group(score, X, groups, actions=half, clusters=names)
    with pytest.raises(CalibrationError, match="of group 'few' to count"):
        calibrate_after_response(
            score, X, NoResponse(), GRID, actions=half, groups=groups, clusters=names
        )
