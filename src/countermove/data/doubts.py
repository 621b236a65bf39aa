"""What is allowed in a table but rarely meant."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from countermove.data.leaks import gives_away
from countermove.data.schema import LABEL, Schema
from countermove.data.splits import feature_hashes, repeated

NEARLY_CONSTANT = 0.99
"""Share of the rows from which one value makes a feature all but constant."""

RARE_OUTCOME = 0.05
"""Share of the rarer outcome below which accuracy says little."""


def doubts(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield what is doubtful about a typed table, one sentence each.

    Parameters
    ----------
    table
        A typed table.
    schema
        What its columns mean.
    """
    if all(feature.change == "immutable" for feature in schema.features):
        yield (
            "nobody can change anything: every feature is immutable, so no one will move and no "
            "refused person has a way back; set `change:` where people can act"
        )
    favourable = (table[LABEL] == 1).to_numpy(np.bool_)
    rare = float(min(favourable.mean(), 1 - favourable.mean()))
    if rare < RARE_OUTCOME:
        yield (
            f"the rarer outcome is that of {rare:.1%} of the rows: a rule that always says the "
            f"other is right in {1 - rare:.1%}; consider `--params ingest.balance=true`"
        )
    yield from _nearly_constant(table, schema)
    for feature in schema.features:
        if gives_away(table[feature.name], favourable):
            yield (
                f"column {feature.name!r} separates the outcomes without an error: was it "
                "recorded afterwards? If so, move it to `ignore:`"
            )
    yield from _alike(table, schema)


def _nearly_constant(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    for feature in schema.features:
        counts = table[feature.name].value_counts()
        if counts.iloc[0] >= NEARLY_CONSTANT * len(table):
            others = len(table) - int(counts.iloc[0])
            yield (
                f"column {feature.name!r} is nearly constant: all but {others} row(s) hold "
                f"{counts.index[0]!s}"
            )


def _alike(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    hashes = feature_hashes(table, schema)
    alike = repeated(hashes)
    if not alike.any():
        return
    outcomes = table[LABEL].groupby(hashes).transform("nunique").to_numpy()
    split = int((alike & (outcomes > 1)).sum())
    yield (
        f"{int(alike.sum())} rows have the same features as another row (they stay in one split); "
        f"{split} of them with differing outcomes"
    )
