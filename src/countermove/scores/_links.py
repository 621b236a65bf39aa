"""From a model's own sum to log-odds, by a map that never falls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError

KINDS = ("log_odds", "probability", "sigmoid", "isotonic")
CERTAIN = 1e-15
"""Probabilities nearer to 0 or 1 have no finite log-odds worth telling apart."""


@dataclass(frozen=True)
class Link:
    r"""How a sum :math:`f` becomes log-odds.

    ``log_odds``: it is them; ``probability``: :math:`p = f / a`; ``sigmoid``:
    :math:`p = 1 / (1 + \exp(a f + b))`; ``isotonic``: through the points ``x``, ``y``.
    Calibrators see :math:`f / scale`.
    """

    kind: str = "log_odds"
    a: float = 1.0
    b: float = 0.0
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"a link is one of {', '.join(KINDS)}, got {self.kind!r}")
        falls = self.kind == "sigmoid" and self.a > 0.0
        falls |= self.kind == "isotonic" and bool((np.diff(self.y) < 0.0).any())
        if falls:
            raise ParameterError(
                "the calibrator gives a lower probability to a higher score: the model predicts "
                "the wrong way round; adopt(favourable=...) names the label people want"
            )

    def log_odds(self, raw: Floats) -> Floats:
        """Return the log-odds of sums, shape (n,)."""
        if self.kind == "log_odds":
            return raw
        if self.kind == "sigmoid":
            return -(self.a * (raw / self.scale) + self.b)
        p = (
            raw / self.a
            if self.kind == "probability"
            else np.interp(raw / self.scale, self.x, self.y)
        )
        p = np.clip(p, CERTAIN, 1.0 - CERTAIN)
        result: Floats = np.log(p) - np.log1p(-p)
        return result

    def least_raw(self, log_odds: float) -> float:
        """Return the least sum whose log-odds are at least this; infinite where none is."""
        if self.kind == "log_odds":
            return log_odds
        low, high = -1e300, 1e300
        if self._reaches(low, log_odds):
            return -np.inf
        if not self._reaches(high, log_odds):
            return np.inf
        # Bisection over the doubles themselves, in the order of their bits.
        first, last = ordinal_of(low), ordinal_of(high)
        while last - first > 1:
            middle = (first + last) // 2
            if self._reaches(double_of(middle), log_odds):
                last = middle
            else:
                first = middle
        return double_of(last)

    def _reaches(self, raw: float, log_odds: float) -> bool:
        return bool(self.log_odds(np.array([raw]))[0] >= log_odds)

    def to_json(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        said: dict[str, Any] = {"kind": self.kind, "a": self.a, "b": self.b, "scale": self.scale}
        return said | {"x": list(self.x), "y": list(self.y)}

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> Link:
        """Return what `to_json` described."""
        return cls(**said | {"x": tuple(said["x"]), "y": tuple(said["y"])})


def ordinal_of(value: float) -> int:
    """Return a whole number that orders doubles as they are ordered."""
    bits = int(np.array(value, np.float64).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def double_of(ordinal: int) -> float:
    bits = np.array(abs(ordinal), np.int64).view(np.float64)
    return float(bits if ordinal >= 0 else -bits)
