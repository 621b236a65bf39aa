"""How robust decisions are, and whether people after recourse look real.

Decisions are tried under Gaussian noise, under the nearest boundary (DeepFool) and under
changes drawn from a mixture of Gaussians fitted on real rows. People after recourse are
compared with people who are approved already, by classifier two-sample tests.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from countermove._types import Floats, Mask
from countermove.randomness import generator, seed_of
from countermove.recourse.audit_shares import ShareInterval, share
from countermove.recourse.performance import approves, area_under_curve
from countermove.scores import Score

DEEPFOOL_STEPS = 50
OVERSHOOT = 0.02  # of the DeepFool paper: crosses the boundary instead of sitting on it
MOST_COMPONENTS, FITTED_ROWS = 5, 5_000
TRIES = 20  # draws per person of the searched on-manifold change


@dataclass(frozen=True)
class Brittleness:
    """Shares of people whose decision stays the same, each person counted once."""

    gaussian: ShareInterval  # under N(0, sd²) on every actionable feature
    deepfool: ShareInterval  # under the nearest change DeepFool finds within `radius`
    median_distance: float | None  # length of that change; None: half of the people have none
    on_manifold: ShareInterval  # under sd times one draw of the local covariance
    on_manifold_searched: ShareInterval  # under all of 20 such draws
    generator_components: int  # Gaussians of the mixture, chosen by BIC
    sd: float
    radius: float


def brittleness(
    rule: Score,
    X: Floats,
    columns: Mask,
    real: Floats,
    *,
    sd: float = 0.1,
    radius: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
) -> Brittleness:
    """Measure how often small changes of ``columns`` turn a decision around."""
    before = approves(rule, X)
    draws = generator(seed, "gaussian brittleness")
    noisy = X + sd * draws.standard_normal(X.shape) * columns
    nearest, crossed = deepfool(rule, X, columns)
    length = np.where(crossed, np.linalg.norm(nearest, axis=1), np.inf)
    median = float(np.median(length)) if len(X) else np.inf
    change, components = manifold_generator(real, seed)
    local = generator(seed, "on-manifold brittleness")
    tries = [approves(rule, X + sd * change(X, local) * columns) == before for _ in range(TRIES)]
    return Brittleness(
        gaussian=share(approves(rule, noisy) == before, level),
        deepfool=share(length > radius, level),
        median_distance=median if np.isfinite(median) else None,
        on_manifold=share(tries[0], level),
        on_manifold_searched=share(np.logical_and.reduce(tries), level),
        generator_components=components,
        sd=sd,
        radius=radius,
    )


def deepfool(
    rule: Score, X: Floats, columns: Mask, max_steps: int = DEEPFOOL_STEPS
) -> tuple[Floats, Mask]:
    """Return a short change across the boundary, shape (n, d), and whose decision it changes."""
    # Each step goes to the boundary of the linearised score, r - s(x + r) g / |g|², until
    # x + (1 + overshoot) r is on the other side; exact on a linear score.
    start = torch.from_numpy(np.ascontiguousarray(X))
    mask = torch.from_numpy(columns.astype(np.float64))
    with torch.no_grad():
        side = rule(start) >= 0.0
    change = torch.zeros_like(start)
    crossed = torch.zeros(len(X), dtype=torch.bool)
    for _ in range(max_steps):
        active = torch.nonzero(~crossed).squeeze(1)
        if not len(active):
            break
        at = start[active] + change[active]
        moved = change[active] + _to_boundary(rule, at, mask)
        with torch.no_grad():
            there = (rule(start[active] + (1.0 + OVERSHOOT) * moved) >= 0.0) != side[active]
        change[active] = moved
        crossed[active] = there
    return change.numpy(), crossed.numpy()


def _to_boundary(rule: Score, at: Tensor, mask: Tensor) -> Tensor:
    gradient = rule.gradient(at) * mask
    with torch.no_grad():
        value = rule(at)
    squared = gradient.square().sum(1)
    # A person on the boundary still has to leave it; one on a plateau has nowhere to go.
    value = torch.where(value.abs() < 1e-12, torch.full_like(value, 1e-12), value)
    factor = torch.where(squared > 0.0, -value / squared.clamp_min(1e-300), 0.0)
    return factor[:, None] * gradient


ChangeGenerator = Callable[[Floats, np.random.Generator], Floats]


def manifold_generator(real: Floats, seed: int) -> tuple[ChangeGenerator, int]:
    """Return a generator of changes that look like people, and its number of Gaussians."""
    from sklearn.mixture import GaussianMixture

    rows = real
    if len(real) > FITTED_ROWS:
        picked = generator(seed, "generator rows").choice(len(real), FITTED_ROWS, replace=False)
        rows = real[picked]
    most = max(1, min(MOST_COMPONENTS, len(rows) // (5 * rows.shape[1] + 5)))
    state = seed_of(seed, "generator") % 2**31
    fitted = [
        GaussianMixture(
            k, init_params="k-means++", reg_covar=1e-6, random_state=state, max_iter=500, tol=1e-2
        ).fit(rows)
        for k in range(1, most + 1)
    ]
    model = min(fitted, key=lambda mixture: mixture.bic(rows))
    roots = np.linalg.cholesky(model.covariances_)

    # A standard normal draw times a root of the covariance of a component, which is drawn
    # by the person's membership.
    def change(X: Floats, draws: np.random.Generator) -> Floats:
        cumulated = np.cumsum(model.predict_proba(X), axis=1)
        component = (draws.random((len(X), 1)) > cumulated).sum(axis=1)
        component = np.minimum(component, len(roots) - 1)
        result: Floats = np.einsum("nij,nj->ni", roots[component], draws.standard_normal(X.shape))
        return result

    return change, int(model.n_components)


LEAST = 10
"""People per half and sample below which nothing is tested."""
PERMUTATIONS = 999
MOST = 2_000
"""People per sample: with more, every test would reject differences too small to matter."""


@dataclass(frozen=True)
class TwoSampleTest:
    """One discriminator on the held-out half; accuracy one half: the samples look alike to it."""

    discriminator: str
    accuracy: ShareInterval
    auc: float
    p_accuracy: float  # exact: both halves hold as many of either sample
    p_auc: float  # by permutation


def in_distribution(
    moved: Floats, approved: Floats, *, level: float = 0.95, seed: int = 0
) -> tuple[TwoSampleTest, ...]:
    """Test whether people after recourse differ from real approved people; empty with too few."""
    # The larger sample is cut to the size of the smaller at random.
    size = min(len(moved), len(approved), MOST) // 2
    if size < LEAST:
        return ()
    shuffler = generator(seed, "two-sample halves")
    parts = [rows[shuffler.permutation(len(rows))[: 2 * size]] for rows in (moved, approved)]
    label = np.repeat([True, False], size)
    learn, judge = (
        np.vstack([part[half] for part in parts])
        for half in (slice(0, size), slice(size, 2 * size))
    )
    return tuple(
        discriminator_test(name, fit(learn, label, seed)(judge), label, level, seed)
        for name, fit in DISCRIMINATORS.items()
    )


def discriminator_test(
    name: str, scores: Floats, label: Mask, level: float, seed: int
) -> TwoSampleTest:
    """Return how well the scores of held-out rows tell the two samples apart, and how sure."""
    from scipy.stats import hypergeom, rankdata

    called = scores > 0.0
    hits, n = int((called & label).sum()), len(label)
    auc = area_under_curve(scores, label)
    # Given how many were called moved, alike samples make the hits hypergeometric.
    p_accuracy = float(hypergeom.sf(hits - 1, n, n // 2, int(called.sum())))
    ranks, shuffler = rankdata(scores), generator(seed, f"permutations:{name}")
    shuffled = shuffler.permuted(np.tile(ranks, (PERMUTATIONS, 1)), axis=1)[:, : n // 2].sum(axis=1)
    as_high = int((shuffled >= ranks[label].sum() - 1e-9).sum())
    return TwoSampleTest(
        discriminator=name,
        accuracy=share(called == label, level),
        auc=0.5 if auc is None else auc,
        p_accuracy=p_accuracy,
        p_auc=(1 + as_high) / (1 + PERMUTATIONS),
    )


Scorer = Callable[[Floats], Floats]


def _logistic(X: Floats, label: Mask, seed: int) -> Scorer:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X, label)
    scorer: Scorer = model.decision_function
    return scorer


def _random_forest(X: Floats, label: Mask, seed: int) -> Scorer:
    from sklearn.ensemble import RandomForestClassifier

    state = seed_of(seed, "forest") % 2**31
    model = RandomForestClassifier(100, min_samples_leaf=3, random_state=state).fit(X, label)

    def scorer(rows: Floats) -> Floats:
        chance: Floats = model.predict_proba(rows)[:, 1] - 0.5
        return chance

    return scorer


def _neural(X: Floats, label: Mask, seed: int) -> Scorer:
    """Train a small network, a fifth of the rows choosing the epoch."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = MLPClassifier(
        (32, 32),
        learning_rate_init=0.005,
        max_iter=60,
        early_stopping=True,
        validation_fraction=0.2,
        random_state=seed_of(seed, "neural") % 2**31,
    )
    with warnings.catch_warnings():  # The best epoch of those tried is kept: no more is asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = make_pipeline(StandardScaler(), network).fit(X, label)

    def scorer(rows: Floats) -> Floats:
        chance: Floats = model.predict_proba(rows)[:, 1] - 0.5
        return chance

    return scorer


DISCRIMINATORS: Mapping[str, Callable[[Floats, Mask, int], Scorer]] = {
    "logistic": _logistic,
    "random_forest": _random_forest,
    "neural": _neural,
}
