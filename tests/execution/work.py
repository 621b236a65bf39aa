"""Work the tests give to workers; a module of its own, so that processes can import it."""

import os
import time
from pathlib import Path

import numpy as np
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


def large_numbers(size, item):
    """Return so many numbers, different for every item."""
    return np.arange(size, dtype=np.float64) * (item + 1)


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


class StubbornTask(AddTask):
    """Add a number; one part takes its worker with it, always or once."""

    def __init__(self, amount, first_row, flag=None):
        super().__init__(amount)
        self.first_row, self.flag = first_row, flag

    def __call__(self, rows, first_row):
        if first_row == self.first_row and (self.flag is None or not Path(self.flag).exists()):
            if self.flag is not None:
                Path(self.flag).touch()
            os._exit(9)
        time.sleep(0.02)
        return super().__call__(rows, first_row)


class HungryTask(AddTask):
    """Add a number and take a gigabyte for it."""

    def __call__(self, rows, first_row):
        hoard = bytearray(os.urandom(1024)) * (1 << 20)
        time.sleep(2.0)
        assert len(hoard) == 1 << 30
        return super().__call__(rows, first_row)


class SlowTask(AddTask):
    """Add a number, slowly; say when begun."""

    def __call__(self, rows, first_row):
        time.sleep(0.5)
        return super().__call__(rows, first_row)
