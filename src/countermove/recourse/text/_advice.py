"""One word to change, for every sentence that is refused."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from countermove._types import Floats
from countermove.recourse.audit_shares import ShareInterval, share_of
from countermove.recourse.performance import Performance, performance
from countermove.recourse.problem import ApprovalThreshold
from countermove.recourse.recommend import FOUND, NOT_FOUND, NOT_NEEDED, PROVEN_NONE
from countermove.recourse.text._encoder import Encoder
from countermove.recourse.text._replacements import Options, Replacement
from countermove.scores import Score
from countermove.scores.base import values

ROUNDING = 1e-4
"""Single-precision vectors differ in their last digits with their batch; on the score's scale,
relative. Nothing is called proven this near to the threshold."""


@dataclass(frozen=True)
class TextAdvice:
    """What each author can change to be approved.

    Parameters
    ----------
    options
        The sentences.
    status
        ``FOUND`` (the changed sentence was encoded again and the rule approves it),
        ``PROVEN_NONE`` (every single replacement was tried), ``NOT_FOUND`` (some were
        not tried, or one ends within rounding of the threshold) or ``NOT_NEEDED``.
    replacement
        The best replacement tried; None where there is none or none is needed.
    probability_before, probability_after
        Of the rule; NaN after where nothing was tried.
    """

    options: Options
    status: NDArray[np.str_]
    replacement: tuple[Replacement | None, ...]
    probability_before: Floats
    probability_after: Floats

    def words(self) -> list[str]:
        """Return the advice in words, empty where there is none."""
        return [
            found.words() if found is not None and status == FOUND else ""
            for found, status in zip(self.replacement, self.status, strict=True)
        ]

    def new_sentences(self) -> list[str]:
        """Return the sentences after the advice, as they are where there is none."""
        return [
            found.applied(sentence) if found is not None and status == FOUND else sentence
            for sentence, found, status in zip(
                self.options.texts.sentence, self.replacement, self.status, strict=True
            )
        ]

    def frame(self) -> pd.DataFrame:
        """Return one row per sentence."""
        return pd.DataFrame(
            {
                "row": self.options.texts.row,
                "text": self.options.texts.sentence,
                "status": self.status,
                "probability": self.probability_before,
                "words": self.words(),
                "new_text": self.new_sentences(),
                "probability_after": np.where(self.status == FOUND, self.probability_after, np.nan),
                "replacements": [len(found) for found in self.options.replacements],
            }
        )


@dataclass(frozen=True)
class TextAudit:
    """How a rule decides, and for how many of those it refuses a word would do.

    ``recourse_neg`` is the share of the refused with recourse, ``recourse_all`` the share
    approved or with recourse, both with exact intervals.
    """

    performance: Performance
    recourse_neg: ShareInterval
    recourse_all: ShareInterval


def advise(
    score: Score,
    options: Options,
    encoder: Encoder,
    threshold: float = 0.5,
    candidates: int | None = None,
) -> TextAdvice:
    r"""Find for every refused sentence the replacement of the highest score.

    .. math:: \delta^* = \arg\max_{\delta \in \Delta} s(x \oplus \delta)

    Parameters
    ----------
    score
        The rule.
    options
        Sentences with their alternatives.
    encoder
        Encodes each advised sentence once more, from its words, before it counts as found.
    threshold
        Probability from which a sentence is approved.
    candidates
        Try only so many replacements, the first in word order; None: every one.
    """
    cut = ApprovalThreshold(threshold)
    before = values(score, options.vectors.astype(np.float64))
    reached = values(score, options.alternatives.astype(np.float64))
    starts, approved = options.starts, cut.approved(before)
    best: list[Replacement | None] = []
    after, complete = np.full(len(options), -np.inf), np.ones(len(options), np.bool_)
    for row, found in enumerate(options.replacements):
        tried = reached[starts[row] : starts[row + 1]][:candidates]
        complete[row] = len(tried) == len(found)
        best.append(found[int(tried.argmax())] if len(tried) and not approved[row] else None)
        if best[-1] is not None:
            after[row] = tried.max()
    confirmed = _confirmed(score, options, encoder, best, ~approved & cut.approved(after), cut)
    out_of_reach = after < cut.aim - ROUNDING * (1.0 + abs(cut.aim))
    status = np.select(
        [approved, confirmed, complete & out_of_reach],
        [NOT_NEEDED, FOUND, PROVEN_NONE],
        NOT_FOUND,
    )
    probable = np.where(np.isfinite(after), cut.probability(after), np.nan)
    return TextAdvice(options, status, tuple(best), cut.probability(before), probable)


def audit_text(score: Score, advice: TextAdvice, threshold: float) -> TextAudit:
    """Measure a rule and its recourse on the sentences of an advice."""
    options = advice.options
    cut = ApprovalThreshold(threshold)
    scores = values(score, options.vectors.astype(np.float64))
    # To the last digit the rule is that of the advice, on the score's scale.
    decided = np.where(cut.approved(scores), np.abs(scores - cut.aim), -np.abs(scores - cut.aim))
    needed, found = advice.status != NOT_NEEDED, advice.status == FOUND
    n, n_found = len(options), int(found.sum())
    return TextAudit(
        performance(decided, options.texts.favourable),
        share_of(n_found, int(needed.sum())),
        share_of(n - int(needed.sum()) + n_found, n),
    )


def _confirmed(
    score: Score,
    options: Options,
    encoder: Encoder,
    best: list[Replacement | None],
    promising: NDArray[np.bool_],
    cut: ApprovalThreshold,
) -> NDArray[np.bool_]:
    """Return for whom the rule approves the changed sentence, encoded again from its words."""
    rows, changed = [], []
    for row in np.flatnonzero(promising):
        replacement = best[row]
        if replacement is not None:
            rows.append(int(row))
            changed.append(replacement.applied(options.texts.sentence[row]))
    confirmed = np.zeros(len(options), np.bool_)
    if rows:
        confirmed[rows] = cut.approved(values(score, encoder.encode(changed).astype(np.float64)))
    return confirmed
