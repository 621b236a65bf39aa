"""Words in several spellings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from countermove.data.parsing import is_number, texts
from countermove.data.reading._cells import CellReading, folded

Unseen: TypeAlias = Literal["quarantine", "pooled"]
UNSEEN: tuple[Unseen, ...] = ("quarantine", "pooled")


@dataclass(frozen=True)
class WordReading(CellReading):
    """Words in several spellings.

    Parameters
    ----------
    fold
        Whether capitals, blanks and the unicode form of a word do not matter.
    spellings
        Other words for a category.
    pooled
        The category of rare levels.
    rare
        Share of the rows below which the draft pooled a level; for people to read.
    unseen
        Where a word that is no category goes: into ``pooled``, or the row into quarantine.
    """

    fold: bool = False
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    pooled: str | None = None
    rare: float | None = None
    unseen: Unseen = "quarantine"

    def to_entry(self) -> dict[str, Any]:
        """Return the recipe as a schema's ``read:`` would hold it."""
        entry: dict[str, Any] = {
            "fold": self.fold or None,
            "spellings": {word: list(others) for word, others in self.spellings} or None,
            "rare": self.rare,
            "pooled": self.pooled,
            "unseen": self.unseen if self.unseen != "quarantine" else None,
        }
        return super().to_entry() | {k: v for k, v in entry.items() if v is not None}

    def meaning(self) -> dict[str, Any]:
        """Return what a rule's reading of the column depends on."""
        pooled = {"pooled": self.pooled} if self.unseen == "pooled" else {}
        return super().meaning() | pooled

    def read(self, values: pd.Series, categories: Iterable[str] = ()) -> pd.Series:
        """Return a column in the spelling of the categories; words of none stay as they are.

        Without categories a folded column takes the folded form itself.
        """
        known = list(categories)
        words = texts(values, numeric=bool(known) and all(map(is_number, known)))
        codes, distinct = pd.factorize(words)
        table = pd.Series(self._translated(map(str, distinct), known), dtype="str")
        padded = pd.concat([table, pd.Series([None], dtype="str")], ignore_index=True)
        return padded.iloc[codes].set_axis(words.index)

    def _translated(self, words: Iterable[str], categories: list[str]) -> list[str | None]:
        """Return the category each word stands for, itself if for none; None if for no value."""
        form = folded if self.fold else str
        listed = {form(other): word for word, others in self.spellings for other in (word, *others)}
        listed |= {form(category): category for category in categories}
        nothing = self.nothing
        pooled = self.pooled if categories and self.unseen == "pooled" else None
        return [
            None
            if nothing and folded(word) in nothing
            else listed.get(form(word), pooled or (word if categories else form(word)))
            for word in words
        ]
