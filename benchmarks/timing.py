"""CPU seconds of one piece of work: the least of as many turns for each side of a comparison."""

from __future__ import annotations

import time
from collections.abc import Callable

TURNS = 5


def cpu_seconds(work: Callable[[], object], turns: int = TURNS) -> float:
    """Return the least CPU seconds of several turns, after one that loads what is compiled."""
    work()
    spent = []
    for _ in range(turns):
        start = time.process_time()
        work()
        spent.append(time.process_time() - start)
    return min(spent)
