"""Recourse on texts: which one word, replaced by an antonym, would change the decision.

Needs WordNet's files and, for its sentence encoder, the extra ``countermove[text]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from countermove._lazy import lazy
from countermove.recourse.text.antonyms import Antonyms, Replacement
from countermove.recourse.text.wordnet import WordNet, find_wordnet

if TYPE_CHECKING:
    from countermove.recourse.text.advice import TextAdvice, TextAudit, advise, audit_text
    from countermove.recourse.text.encoder import (
        Encoder,
        HashedWords,
        MiniLM,
        VectorStore,
        find_weights,
    )
    from countermove.recourse.text.objective import ReplacementRisk, train_text_score
    from countermove.recourse.text.options import Options, options_of

__all__ = [
    "Antonyms",
    "Encoder",
    "HashedWords",
    "MiniLM",
    "Options",
    "Replacement",
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
    "Encoder": "encoder",
    "HashedWords": "encoder",
    "MiniLM": "encoder",
    "Options": "options",
    "ReplacementRisk": "objective",
    "TextAdvice": "advice",
    "TextAudit": "advice",
    "VectorStore": "encoder",
    "advise": "advice",
    "audit_text": "advice",
    "find_weights": "encoder",
    "options_of": "options",
    "train_text_score": "objective",
}

__getattr__ = lazy(__name__, _HOMES)
