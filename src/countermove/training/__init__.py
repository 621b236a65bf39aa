"""The only training loop, its losses, its history and its checkpoints."""

from countermove.training.history import EpochRecord, History
from countermove.training.losses import Loss, balanced_weights
from countermove.training.newton import Derivatives
from countermove.training.rows import Objective, TrainingRows, Verdict
from countermove.training.trainer import Trainer

__all__ = [
    "Derivatives",
    "EpochRecord",
    "History",
    "Loss",
    "Objective",
    "Trainer",
    "TrainingRows",
    "Verdict",
    "balanced_weights",
]

__dir__ = __all__.copy
