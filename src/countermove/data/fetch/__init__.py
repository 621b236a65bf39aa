"""Tables that others published: where they are, fetching them, and listing what is there."""

from __future__ import annotations

from countermove.data.fetch._fetching import (
    HEADINGS,
    Fetched,
    Listed,
    fetch,
    list_datasets,
    publication_of,
    was_fetched,
)
from countermove.data.fetch._publications import (
    PUBLISHED,
    TEXTS,
    WITHOUT_FETCHING,
    Publication,
    TableFacts,
    known_facts,
)

__all__ = [
    "HEADINGS",
    "PUBLISHED",
    "TEXTS",
    "WITHOUT_FETCHING",
    "Fetched",
    "Listed",
    "Publication",
    "TableFacts",
    "fetch",
    "known_facts",
    "list_datasets",
    "publication_of",
    "was_fetched",
]
