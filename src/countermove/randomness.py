"""One seed for a run, independent generators for its stages.

The generator of a stage depends on the seed and the stage's name only, so that
adding a stage never changes the numbers another stage draws.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


def seed_of(seed: int, stage: str) -> int:
    """Return the 63-bit seed of a stage."""
    digest = hashlib.sha256(f"{seed}:{stage}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, stage: str) -> np.random.Generator:
    """Return the NumPy generator of a stage."""
    return np.random.default_rng(seed_of(seed, stage))


def torch_generator(seed: int, stage: str) -> torch.Generator:
    """Return the torch generator of a stage (CPU)."""
    import torch

    return torch.Generator().manual_seed(seed_of(seed, stage))


def row_uniforms(seed: int, stage: str, rows: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Return one number in (0, 1) per row number; it depends on seed, stage and that row alone."""
    # A counter-based generator (splitmix64): a table may be cut into parts in any way.
    counter = np.asarray(rows).astype(np.uint64) + np.uint64(1)
    bits = np.uint64(seed_of(seed, stage)) + counter * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits = bits ^ (bits >> np.uint64(31))
    drawn: NDArray[np.float64] = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return drawn
