"""Recourse on texts: which one word, replaced by an antonym, would change the decision.

Needs WordNet's files and, for its sentence encoder, the extra ``countermove[text]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy
from countermove.recourse.text._encoder import (
    Encoder,
    HashedWords,
    MiniLM,
    VectorStore,
    find_weights,
)
from countermove.recourse.text._replacements import Antonyms, Options, options_of
from countermove.recourse.text._wordnet import WordNet, find_wordnet

if TYPE_CHECKING:
    from countermove.recourse.text._advice import TextAdvice, TextAudit, advise, audit_text
    from countermove.recourse.text._objective import ReplacementRisk, train_text_score

__all__ = [
    "Antonyms",
    "Encoder",
    "HashedWords",
    "MiniLM",
    "Options",
    "ReplacementRisk",
    "TextAdvice",
    "TextAudit",
    "VectorStore",
    "WordNet",
    "advise",
    "audit_text",
    "find_weights",
    "find_wordnet",
    "options_of",
    "train_text_score",
]

_HOMES = {
    "ReplacementRisk": "_objective",
    "TextAdvice": "_advice",
    "TextAudit": "_advice",
    "advise": "_advice",
    "audit_text": "_advice",
    "train_text_score": "_objective",
}

__getattr__ = lazy(__name__, _HOMES)
