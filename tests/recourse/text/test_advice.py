"""Advice is what trying everything finds; proofs and failures are distinguished."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from countermove.errors import ParameterError
from countermove.recourse.text import HashedWords, Options, advise, audit_text
from countermove.scores import LinearScore
from countermove.scores.base import values


@pytest.fixture(scope="module")
def score(encoder: HashedWords) -> LinearScore:
    """A rule that likes 'sharp' and dislikes 'dull', 'insipid' and 'small'."""
    rule = LinearScore(encoder.n_features)
    liked = encoder.encode(["sharp"])[0] - encoder.encode(["dull", "insipid", "small"]).sum(0)
    with torch.no_grad():
        rule.weight.copy_(torch.from_numpy(10.0 * liked).double())
        rule.bias.fill_(-1.0)
    return rule


def by_word(options: Options, advice, word: str) -> set[str]:
    rows = [i for i, s in enumerate(options.texts.sentence) if f" {word} " in s]
    return set(advice.status[rows])


def test_statuses_are_those_of_trying_everything(options, score, encoder) -> None:
    advice = advise(score, options, encoder)
    before = values(score, options.vectors.astype(float))
    for row, found in enumerate(options.replacements):
        sentence = options.texts.sentence[row]
        tried = [
            values(score, encoder.encode([r.applied(sentence)]).astype(float))[0] for r in found
        ]
        if before[row] >= 0:
            expected = "NOT_NEEDED"
        else:
            expected = "FOUND" if max(tried, default=-1.0) >= 0 else "PROVEN_NONE"
        assert advice.status[row] == expected, sentence
    assert by_word(options, advice, "sharp") == {"NOT_NEEDED"}
    assert by_word(options, advice, "dull") == {"FOUND"}
    assert by_word(options, advice, "insipid") == {"PROVEN_NONE"}


def test_what_is_found_is_said_in_words_and_holds(options, score, encoder) -> None:
    advice = advise(score, options, encoder)
    found = advice.status == "FOUND"
    assert set(np.array(advice.words())[found]) == {"replace 'dull' by 'sharp'"}
    assert set(np.array(advice.words())[~found]) == {""}
    new = values(score, encoder.encode(np.array(advice.new_sentences())[found]).astype(float))
    assert (new >= 0).all()
    assert np.allclose(expit(new), advice.probability_after[found])
    frame = advice.frame()
    assert frame.loc[~found, "probability_after"].isna().all()
    assert (frame.loc[~found, "new_text"] == frame.loc[~found, "text"]).all()


def test_what_was_not_tried_is_not_proven(options, score, encoder) -> None:
    """The first antonym of dull is lively; sharp, which would do, comes second."""
    advice = advise(score, options, encoder, candidates=1)
    assert by_word(options, advice, "dull") == {"NOT_FOUND"}
    assert by_word(options, advice, "insipid") == {"PROVEN_NONE"}


def test_a_vector_that_the_words_do_not_confirm_is_not_found(options, score, encoder) -> None:
    """Alternatives that were tampered with promise what the sentences do not keep."""
    lifted = options.alternatives + encoder.encode(["sharp"])[0]
    wrong = Options(options.texts, options.replacements, options.vectors, lifted)
    advice = advise(score, wrong, encoder)
    assert by_word(options, advice, "insipid") == {"NOT_FOUND"}


def test_the_audit_counts_people(options, score, encoder) -> None:
    advice = advise(score, options, encoder)
    audit = audit_text(score, advice, 0.5)
    approved = int((advice.status == "NOT_NEEDED").sum())
    found = int((advice.status == "FOUND").sum())
    assert audit.performance.positive_rate == approved / len(options)
    assert audit.recourse_neg.value == found / (len(options) - approved)
    assert audit.recourse_all.value == (approved + found) / len(options)
    assert audit.recourse_neg.low < audit.recourse_neg.value < audit.recourse_neg.high


def test_a_stricter_threshold_refuses_more(options, score, encoder) -> None:
    refused = [
        int((advise(score, options, encoder, p).status != "NOT_NEEDED").sum())
        for p in (0.1, 0.9999)
    ]
    assert refused[0] < refused[1] == len(options)
    with pytest.raises(ParameterError, match="strictly between 0 and 1"):
        advise(score, options, encoder, 1.0)
