"""The only training loop, its losses, its history and its checkpoints."""

from countermove.training.history import EpochRecord, History
from countermove.training.losses import Loss, balanced_weights
from countermove.training.sample import Objective, Sample, Verdict
from countermove.training.trainer import Trainer

__all__ = [
    "EpochRecord",
    "History",
    "Loss",
    "Objective",
    "Sample",
    "Trainer",
    "Verdict",
    "balanced_weights",
]
