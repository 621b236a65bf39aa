"""Which applicants are scored, and how advice is looked for."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from countermove.errors import ParameterError
from countermove.params.base import Parameters
from countermove.params.recourse import SearchName

BatchId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]


class ScoreParameters(Parameters):
    """Parameters of a batch of applicants.

    ``batch`` is its id: the name of its file or folder, and of the folder of its output. The
    pipeline needs one. ``method`` is how recourse is searched for; what a person may be asked,
    and by which margin, is what the champion was calibrated for.
    """

    batch: BatchId | None = Field(default=None)
    method: SearchName = "linear_program"

    @field_validator("batch", mode="before")
    @classmethod
    def _whole_number(cls, batch: object) -> object:
        # `--params score.batch=7` arrives as a number.
        return str(batch) if isinstance(batch, int) and not isinstance(batch, bool) else batch

    def named(self) -> str:
        """Return the id of the batch; refuse to go on without one."""
        if self.batch is None:
            raise ParameterError(
                "which applicants? Put them into data/01_raw/applicants/<dataset>/<batch id>.csv "
                "(or .parquet, or a folder of that name) and run with --params score.batch=<batch "
                "id>"
            )
        return self.batch
