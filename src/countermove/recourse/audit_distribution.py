"""Whether people after recourse look like people who are approved already.

Classifier two-sample tests: a discriminator learns to tell both samples apart
on one half; on the other half, if they are alike, its labels are exchangeable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from countermove._types import Floats, Mask
from countermove.randomness import generator, seed_of, torch_generator
from countermove.recourse.intervals import Share, share
from countermove.recourse.objective import RecourseRisk
from countermove.recourse.performance import area_under_curve, scores_of
from countermove.scores import MLPScore
from countermove.training import Sample, Trainer

LEAST = 10
"""People per half and sample below which nothing is tested."""
PERMUTATIONS = 999
MOST = 2_000
"""People per sample: more would make every test reject what no one could see."""


@dataclass(frozen=True)
class TwoSampleTest:
    """One discriminator on the held-out half; accuracy one half means it cannot tell.

    ``p_accuracy`` is exact (hypergeometric: both halves hold as many of either sample),
    ``p_auc`` is a permutation p-value; each holds at its level if the samples are alike.
    """

    discriminator: str
    accuracy: Share
    auc: float
    p_accuracy: float
    p_auc: float


def in_distribution(
    moved: Floats, approved: Floats, *, level: float = 0.95, seed: int = 0
) -> tuple[TwoSampleTest, ...]:
    """Test whether two samples of people can be told apart; empty with too few people.

    Parameters
    ----------
    moved, approved
        People after their recourse, and real approved people, shapes (n, d) and (m, d);
        the larger sample is cut to the size of the smaller at random.
    """
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
        _tested(name, fit(learn, label, seed)(judge), label, level, seed)
        for name, fit in DISCRIMINATORS.items()
    )


def _tested(name: str, scores: Floats, label: Mask, level: float, seed: int) -> TwoSampleTest:
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
    """Train a small network with the one trainer, a fifth of the rows choosing the epoch."""
    order = generator(seed, "neural halves").permutation(len(X))
    rows, signs = torch.from_numpy(X[order]), torch.from_numpy(np.where(label[order], 1.0, -1.0))
    held = len(X) // 5
    sample = Sample(rows[held:], signs[held:], rows[:held], signs[:held])
    score = MLPScore(X.shape[1], (32, 32), dropout=0.1, generator=torch_generator(seed, "neural"))
    plain = RecourseRisk(X.shape[1], recourse_weight=0.0, selection="loss")
    Trainer(learning_rate=0.005, max_epochs=30, patience=5, seed=seed).fit(score, plain, sample)

    return partial(scores_of, score)


DISCRIMINATORS: Mapping[str, Callable[[Floats, Mask, int], Scorer]] = {
    "logistic": _logistic,
    "random_forest": _random_forest,
    "neural": _neural,
}
