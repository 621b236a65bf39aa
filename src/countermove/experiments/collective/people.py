"""The data subjects of an experiment on recourse together: rows, classes, perhaps short codes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove.data.rows import feature_matrix
from countermove.data.schema import LABEL
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, NotEnoughRowsError, UnknownNameError, nearest
from countermove.experiments.collective.autoencoder import VariationalAutoencoder
from countermove.experiments.tables import Tables
from countermove.randomness import generator

OUTCOMES = {1: "favourable", -1: "unfavourable"}
"""The classes of a table by its schema's label."""
MANY, FEWER = 6_000, 2_000
"""Of a larger table so many people are drawn unless a number is given."""
CLASS = "class"
"""The column of the classes; the others are features."""


@dataclass(frozen=True)
class SubjectPreparation:
    """How a table becomes people: rows, classes, perhaps short codes."""

    dataset: str
    label: str | None = None  # None: the schema's
    features: Sequence[str] | None = None
    subjects: int | None = None
    standardise: bool = False
    codes: VariationalAutoencoder | None = None

    def people(self, tables: Tables, seed: int) -> pd.DataFrame:
        """Return one row per person: features, and the class as text."""
        table, schema = tables(self.dataset)
        label = LABEL if self.label is None else self.label
        if label not in table:
            raise UnknownNameError(
                f"no column {label!r} in {self.dataset}; {nearest(label, map(str, table.columns))}"
            )
        names = list(schema.feature_names)
        X = pd.DataFrame(feature_matrix(table, schema), columns=names)
        X = X[self._kept(names)]
        if self.codes is not None:
            X = self._coded(X, seed)
        elif self.standardise:
            unit = Standardiser.fit(X.to_numpy(np.float64), tuple(X.columns))
            X = pd.DataFrame(unit.transform(X.to_numpy(np.float64)), columns=X.columns)
        classes = table[label].map(OUTCOMES) if self.label is None else table[label].astype(str)
        people = X.assign(**{CLASS: classes.to_numpy()})
        wanted = FEWER if self.subjects is None and len(people) > MANY else self.subjects
        return people if wanted is None else self._drawn(people, wanted, seed)

    def _kept(self, names: list[str]) -> list[str]:
        if self.features is None:
            return names
        strange = [name for name in self.features if name not in names]
        if strange:
            raise UnknownNameError(f"no feature {strange[0]!r}; {nearest(strange[0], names)}")
        return list(self.features)

    def _coded(self, X: pd.DataFrame, seed: int) -> pd.DataFrame:
        assert self.codes is not None
        values = X.to_numpy(np.float64)
        low, high = float(values.min()), float(values.max())
        if not high > low:
            raise DataError(f"the features of {self.dataset} are all the same: no codes")
        codes = replace(self.codes, seed=seed).codes((values - low) / (high - low))
        return pd.DataFrame(codes, columns=[f"code_{j}" for j in range(codes.shape[1])])

    def _drawn(self, people: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
        """Draw people, as evenly over the classes as can be."""
        if n > len(people):
            raise NotEnoughRowsError(f"{n} people were asked for, {self.dataset} has {len(people)}")
        shuffled = people.iloc[generator(seed, "subjects").permutation(len(people))]
        turn = shuffled.groupby(CLASS).cumcount()
        chosen = turn.sort_values(kind="stable").index[:n]
        return people.loc[sorted(chosen)].reset_index(drop=True)


def random_participants(n: int, share: float, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return rows of a share of n people, drawn without replacement."""
    count = round(share * n)
    if not 0.0 <= share <= 1.0 or count < 1:
        raise NotEnoughRowsError(
            f"a share of {share} of {n} people is nobody; give a share in (0, 1]"
        )
    return np.sort(rng.choice(np.arange(n), count, replace=False)).astype(np.intp)
