"""One seed for a run, independent generators for its stages.

The generator of a stage depends on the seed and the stage's name only, so that
adding a stage never changes the numbers another stage draws.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

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
