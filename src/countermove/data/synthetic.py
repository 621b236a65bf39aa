"""Populations whose best rules are known, for tests and for trying things out.

A Gaussian population knows its best rule and the accuracy of every linear rule;
the fabricated ``tiny`` table knows the rule its labels were drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.randomness import generator

EDUCATION = ("school", "college", "university")

TINY_WEIGHTS: Mapping[str, float] = {
    "income": 0.08,
    "savings": 0.15,
    "open_loans": -0.7,
    "years_at_job": 0.05,
    "owns_home": 0.5,
    "education": 0.4,
}
"""Weights of the rule behind ``tiny``, per original unit of each model column."""

TINY_BIAS = -4.5
TINY_NOISE = 0.35
"""Scale of the logistic noise added to the rule's score before the label is read off."""


@dataclass(frozen=True)
class GaussianPopulation:
    r"""Two Gaussian classes, :math:`x \mid y \sim N(y\,\mu, I)`, :math:`P(y = 1) = p`.

    The best rule is linear, :math:`2 \mu \cdot x + \log\frac{p}{1 - p} \ge 0`, and the
    accuracy of any linear rule has a closed form.

    Parameters
    ----------
    centre
        :math:`\mu`, the centre of the favourable class; the other sits opposite.
    favourable_share
        :math:`p`.
    """

    centre: tuple[float, ...]
    favourable_share: float = 0.5

    def __post_init__(self) -> None:
        centre = tuple(float(value) for value in self.centre)
        if not any(centre) or not all(map(math.isfinite, centre)):
            raise ParameterError(f"centre is {centre}; expected finite numbers, not all zero")
        if not 0 < self.favourable_share < 1:
            raise ParameterError(f"favourable_share is {self.favourable_share}; expected in (0, 1)")
        object.__setattr__(self, "centre", centre)

    def sample(self, n: int, seed: int) -> tuple[Floats, Floats]:
        """Return ``n`` people: features (n, d) and labels (n,) in {-1, +1}."""
        rng = generator(seed, "gaussian population")
        y = np.where(rng.random(n) < self.favourable_share, 1.0, -1.0)
        X = y[:, None] * np.asarray(self.centre) + rng.standard_normal((n, len(self.centre)))
        return X, y

    def best_rule(self) -> tuple[Floats, float]:
        """Return weights and bias of the most accurate rule."""
        p = self.favourable_share
        return 2 * np.asarray(self.centre), math.log(p / (1 - p))

    def accuracy(self, weights: ArrayLike, bias: float) -> float:
        r"""Return the exact accuracy of the rule :math:`w \cdot x + b \ge 0`.

        Given :math:`y`, the score is normal with mean :math:`y\,w \cdot \mu + b` and
        deviation :math:`\|w\|`. People who reach the rule from a distance
        :math:`r` face the bias :math:`b + r \|w\|`.
        """
        w = np.asarray(weights, dtype=np.float64)
        norm = float(np.linalg.norm(w))
        if norm == 0:
            return self.favourable_share if bias >= 0 else 1 - self.favourable_share
        along = float(w @ np.asarray(self.centre))
        hit_favourable = _normal_cdf((along + bias) / norm)
        hit_other = _normal_cdf((along - bias) / norm)
        p = self.favourable_share
        return p * hit_favourable + (1 - p) * hit_other


def fabricate(name: str, n: int = 240, seed: int = 0) -> pd.DataFrame:
    """Fabricate the raw table of a made-up dataset.

    Parameters
    ----------
    name
        ``tiny``.
    n
        Number of people.
    seed
        Seed; the same table every time.

    Raises
    ------
    UnknownNameError
        If nothing of that name can be fabricated.
    """
    if name not in _FABRICATORS:
        raise UnknownNameError(f"cannot fabricate {name!r}; {nearest(name, _FABRICATORS)}")
    if n < 1:
        raise ParameterError(f"n is {n}; expected at least one person")
    return _FABRICATORS[name](n, seed)


def _tiny(n: int, seed: int) -> pd.DataFrame:
    rng = generator(seed, "fabricate tiny")
    group = rng.choice(["blue", "green"], size=n, p=[0.6, 0.4])
    education = rng.choice(len(EDUCATION), size=n, p=[0.4, 0.35, 0.25])
    features: dict[str, NDArray[np.generic]] = {
        # Groups differ a little, so that an audit has something to find.
        "income": np.clip(rng.normal(38 + 4 * (group == "blue") + 3 * education, 10), 5, 120).round(
            2
        ),
        "savings": np.clip(rng.gamma(2.0, 4.0, size=n), 0, 100).round(2),
        "open_loans": np.clip(rng.poisson(1.5, size=n), 0, 6),
        "years_at_job": rng.integers(0, 21, size=n),
        "owns_home": (rng.random(n) < 0.35).astype(np.int64),
        "education": education,
    }
    score = TINY_BIAS + sum(
        (weight * features[column].astype(np.float64) for column, weight in TINY_WEIGHTS.items()),
        start=np.zeros(n),
    )
    repaid = score + rng.logistic(0.0, TINY_NOISE, size=n) >= 0
    columns: dict[str, object] = {"person": [f"p{number:04d}" for number in range(n)], **features}
    columns["education"] = np.asarray(EDUCATION, dtype=object)[education]
    return pd.DataFrame({**columns, "group": group, "repaid": np.where(repaid, "yes", "no")})


def _normal_cdf(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2))


_FABRICATORS: Mapping[str, Callable[[int, int], pd.DataFrame]] = {"tiny": _tiny}
