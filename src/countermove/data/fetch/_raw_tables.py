"""From the files of a publication to one raw table with a header.

Nothing is cleaned here: names are given where a file has none, and what
identifies a person is left out. FICO is the exception: only aggregates were
published, and people are drawn from them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from countermove.data.recipes._fetched import ADULT_COLUMNS, COMPAS_COLUMNS, MNIST_COLUMNS
from countermove.errors import DataError
from countermove.randomness import generator

FICO_PEOPLE = 3_000
"""As many as the transferability paper draws; a quarter from each group."""

FICO_SEED = 2007
"""Fixed, so that everybody's table is the same."""

FICO_GROUPS = {
    "Non- Hispanic white": "white",
    "Black": "black",
    "Hispanic": "hispanic",
    "Asian": "asian",
}


def raw_table(name: str, contents: Sequence[bytes]) -> pd.DataFrame:
    """Return the raw table of a dataset from the contents of its files on record, unpacked."""
    try:
        return _READERS.get(name, _as_published)(*contents)
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise DataError(f"the files of {name!r} do not hold its table: {error}") from error


def _as_published(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)


def _adult(content: bytes) -> pd.DataFrame:
    return pd.read_csv(
        io.BytesIO(content),
        header=None,
        names=list(ADULT_COLUMNS),
        dtype=str,
        skipinitialspace=True,
        keep_default_na=False,
    )


def _compas(content: bytes) -> pd.DataFrame:
    # Names, birthdays and case numbers stay behind, as does all that nobody reads.
    return _as_published(content)[list(COMPAS_COLUMNS)]


def _give_me_some_credit(content: bytes) -> pd.DataFrame:
    table = _as_published(content)
    # The first column has no name; it numbers the rows.
    return table.rename(columns={table.columns[0]: "Id"})


def _mnist(content: bytes) -> pd.DataFrame:
    cells = pd.read_csv(io.BytesIO(content), header=None, dtype=np.uint8)
    return cells.set_axis(list(MNIST_COLUMNS), axis=1)


def _fraud(content: bytes) -> pd.DataFrame:
    from pyarrow import BufferReader, csv

    table: pd.DataFrame = csv.read_csv(BufferReader(content)).to_pandas()
    return table


def _film_reviews(content: bytes) -> pd.DataFrame:
    """Keep the verdicts (not the plots), each text once; none has two verdicts."""
    table = _as_published(content)
    table = table[table["category"].isin(("fresh", "rotten"))]
    words = table["text"].str.split().str.join(" ")
    once = pd.DataFrame({"text": words, "label": table["category"], "film": table["movie_name"]})
    return once.drop_duplicates("text", ignore_index=True)


def _fico(distribution: bytes, performance: bytes) -> pd.DataFrame:
    r"""Draw people from the published aggregates.

    For each group the score is drawn from :math:`P(\text{score} \le s)`, and the
    outcome from the share of people of that group and score who defaulted.
    """
    cdf, failed = (
        pd.read_csv(io.BytesIO(f), index_col=0) / 100 for f in (distribution, performance)
    )
    rng = generator(FICO_SEED, "fico people")
    each = FICO_PEOPLE // len(FICO_GROUPS)
    people = []
    for column, group in FICO_GROUPS.items():
        # The lowest score whose cumulative share reaches the draw.
        rungs = np.searchsorted(cdf[column].to_numpy(), rng.random(each), side="left")
        defaulted = rng.random(each) < failed[column].to_numpy()[rungs]
        scores = cdf.index.to_numpy(np.float64)[rungs]
        repaid = np.where(defaulted, "no", "yes")
        people.append(pd.DataFrame({"score": scores, "race": group, "repaid": repaid}))
    return pd.concat(people, ignore_index=True)


_READERS: Mapping[str, Callable[..., pd.DataFrame]] = {
    "adult": _adult,
    "compas": _compas,
    "fico": _fico,
    "film-reviews": _film_reviews,
    "fraud": _fraud,
    "give-me-some-credit": _give_me_some_credit,
    "mnist-5k": _mnist,
}
"""Tables that need a hand; the others are read as they are."""
