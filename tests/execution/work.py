"""Work the tests give to workers; a module of its own, so that processes can import it."""

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from countermove.errors import DataError
from countermove.execution import PartTask


def double(shared, item):
    return item * (2 if shared is None else shared)


def fail_at_three(shared, item):
    if item == 3:
        raise DataError("three is not a number we like", rows=[3])
    return item


def own_process(shared, item):
    time.sleep(0.05)
    return os.getpid()


def die_once(flag, item):
    """Take the worker down the first time item 2 comes along."""
    if item == 2 and not Path(flag).exists():
        Path(flag).touch()
        os._exit(9)
    return item


def die_always(shared, item):
    os._exit(9)


class AddTask(PartTask):
    """Add a number to a column; refuse rows above a limit."""

    def __init__(self, amount, limit=None, seen=None):
        self.amount, self.limit, self.seen = amount, limit, seen
        self.columns = ("id", "x")

    def __call__(self, rows, first_row):
        if self.seen is not None:
            with Path(self.seen).open("a") as log:
                log.write(f"{first_row}\n")
        if self.limit is not None:
            over = pc.greater(rows["x"], self.limit).to_numpy(zero_copy_only=False)
            if over.any():
                raise DataError(f"x is above {self.limit}", rows=over.nonzero()[0])
        return pa.table({"id": rows["id"], "x": pc.add(rows["x"], self.amount)})

    def fingerprint(self):
        return f"add {self.amount}"
