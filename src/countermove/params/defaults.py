"""Where a run starts from another default than the library, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Different(NamedTuple):
    """A default of the settings that is not the library's, and the reason."""

    value: Any
    reason: str


DIFFERENT: Mapping[str, Different] = {
    "ExecutionParameters.rows_per_part": Different(
        250_000,
        "workers hold the few numbers of standardised rows (docs/scale.md measures parts of this "
        "size); a raw table in parts is held with all its columns",
    ),
    "RecourseParameters.largest_loss": Different(
        0.02,
        "a run must not give up more than two points of accuracy for a promise unless asked to; "
        "in Python the promise asked for is kept whatever it costs",
    ),
    "RecourseParameters.digits": Different(
        2,
        "people follow round amounts; the library returns what its search found, so that costs can "
        "be compared to the last digit",
    ),
    "RecourseParameters.confidence": Different(
        0.9,
        "half of the advice that ends on the threshold fails after one refit; in Python, and in "
        "the papers, advice has no such margin unless one is given",
    ),
    "MLPScoreParameters.hidden": Different(
        (16,),
        "people climb the network in every step of training, so a run starts from a small one; "
        "the library's is that of the recourse paper",
    ),
    "MLPScoreParameters.dropout": Different(
        0.0,
        "a small network needs none, and people would climb another score than the published one",
    ),
}
