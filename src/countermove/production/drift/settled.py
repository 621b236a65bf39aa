"""People who had no reason to move: approved before, and further beyond than any answer leads.

Whoever answers stops where the rule is content. Beyond that stand only people who did not move,
whatever their costs: if they are not as before, others came.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from countermove.production.drift.comparison import ColumnTest, column_tests
from countermove.production.drift.kernel_distance import spread_of
from countermove.production.drift.samples import LEAST, Placed, Three
from countermove.production.drift.terms import DriftTerms


def settled_tests(
    three: Three, accounts: Sequence[Placed], names: Sequence[str], terms: DriftTerms
) -> tuple[ColumnTest, ...]:
    """Test whether people beyond the reach of all answers are as before, given that they are there.

    Parameters
    ----------
    three
        The samples.
    accounts
        Where people of the reference would stand by each account of how they answer.
    names
        Of the features.
    terms
        Half of the level is spent.

    Returns
    -------
    tuple of ColumnTest
        Any alarm has probability at most half of ``terms.level`` if the same kind of people came
        and answered by one of the accounts, or at other costs but stopping no further beyond. None
        where fewer than 50 people of either table stand there.
    """
    before, seen = three.reference, three.observed
    step = terms.resolution * float(spread_of(before.score[:, None])[0])
    furthest = 0.0
    for account in accounts:
        moved = np.abs(account.score - before.score) > step
        furthest = max(furthest, float(account.score[moved].max(initial=0.0)))
    old, new = (sample.X[sample.score > furthest + step] for sample in (before, seen))
    if min(len(old), len(new)) < LEAST:
        return ()
    called = [f"{name} (people approved before)" for name in names]
    pooled = np.concatenate([old, new])
    return column_tests(pooled, len(old), called, terms.resolution, 0.5 * terms.level)
