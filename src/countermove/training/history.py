"""What happened during training, epoch by epoch, and the progress bar that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from countermove.execution import counting_bar

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class EpochRecord:
    """One epoch; epoch 0 is the start, before any step.

    ``train_loss`` is the mean over the epoch's batches, each at the weights it
    met; ``validation_accuracy`` is measured after people's response;
    ``validation_merit`` is what the objective chooses epochs by, None: the accuracy.
    """

    epoch: int
    train_loss: float
    validation_loss: float
    validation_accuracy: float
    seconds: float
    validation_merit: float | None = None

    @property
    def merit(self) -> float:
        """What epochs are chosen by; higher is better."""
        given = self.validation_merit
        return self.validation_accuracy if given is None else given

    def better_than(self, other: EpochRecord, by: str = "accuracy") -> bool:
        """Return whether to prefer this epoch: merit, then loss; either alone; or the later."""
        if by == "average":
            return self.epoch >= other.epoch
        if by == "merit" or (by == "accuracy" and self.merit != other.merit):
            return self.merit > other.merit
        return self.validation_loss < other.validation_loss


@dataclass(frozen=True)
class Optimum:
    """Where one descent ended; the first of a history is the one that was kept.

    Attributes
    ----------
    start
        What it started from.
    loss
        The training loss there.
    gradient
        The largest entry of its gradient.
    ended
        Why it ended.
    cosine
        Between its weights and those kept.
    """

    start: str
    loss: float
    gradient: float
    ended: str
    cosine: float


@dataclass(frozen=True)
class History:
    """All epochs of a run.

    Attributes
    ----------
    records
        One per epoch, the start first.
    best_epoch
        The epoch whose weights were kept.
    stopped_early
        Whether patience ran out before the epochs did.
    method
        The optimiser that was used: ``"adam"``, ``"lbfgs"`` or ``"newton"``, whose epochs are
        steps on all rows at once.
    converged
        Whether the gradient on all rows is as small as ``ended`` says, for Newton, L-BFGS and
        the polish that follows Adam on rows in parts; None where nothing tells.
    ended
        Why training ended.
    optima
        Where Newton's method ended from each of its starts, distinct ends only; the first was
        kept: the lowest, or the one that a softer step (``"softer"``) leads to unless another's
        log-likelihood is higher by one. Several only where the loss may have several.
    """

    records: tuple[EpochRecord, ...]
    best_epoch: int
    stopped_early: bool
    method: str = "adam"
    converged: bool | None = None
    ended: str = ""
    optima: tuple[Optimum, ...] = ()

    @property
    def best(self) -> EpochRecord:
        """Record of the epoch whose weights were kept."""
        return self.records[self.best_epoch]

    def __len__(self) -> int:
        return len(self.records)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per epoch, with a column that marks the epoch kept."""
        import pandas as pd

        frame = pd.DataFrame([asdict(record) for record in self.records])
        frame["kept"] = frame["epoch"] == self.best_epoch
        return frame

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready description."""
        return {
            "records": [asdict(record) for record in self.records],
            "best_epoch": self.best_epoch,
            "stopped_early": self.stopped_early,
            "method": self.method,
            "converged": self.converged,
            "ended": self.ended,
            "optima": [asdict(optimum) for optimum in self.optima],
        }

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> History:
        """Rebuild a history from :meth:`to_json`."""
        records: Sequence[Mapping[str, Any]] = description["records"]
        return cls(
            records=tuple(EpochRecord(**record) for record in records),
            best_epoch=int(description["best_epoch"]),
            stopped_early=bool(description["stopped_early"]),
            method=str(description.get("method", "adam")),
            converged=description.get("converged"),
            ended=str(description.get("ended", "")),
            optima=tuple(Optimum(**one) for one in description.get("optima", ())),
        )


@contextmanager
def epoch_bar(total: int, done: int = 0) -> Iterator[Callable[[EpochRecord], None]]:
    """Yield a function that moves the bar by one epoch; silent where nobody watches."""
    from rich.progress import TextColumn

    reached = TextColumn("validation accuracy after response {task.fields[accuracy]}")
    with counting_bar(reached) as bar:
        task = bar.add_task("epoch", total=total, completed=done, accuracy="-")

        def advance(record: EpochRecord) -> None:
            accuracy = f"{record.validation_accuracy:.4f}"
            bar.update(task, advance=1, accuracy=accuracy)

        yield advance
