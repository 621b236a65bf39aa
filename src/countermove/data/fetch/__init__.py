"""Tables that others published: where they are, fetching them, and listing what is there."""

from __future__ import annotations

from countermove.data.fetch.fetching import HEADINGS, fetch, list_datasets, publication_of
from countermove.data.fetch.publications import PUBLISHED, TEXTS, known_facts

__all__ = [
    "HEADINGS",
    "PUBLISHED",
    "TEXTS",
    "fetch",
    "known_facts",
    "list_datasets",
    "publication_of",
]
