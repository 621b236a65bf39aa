"""Every sentence keeps what it can become, through subsets and padding."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.errors import ParameterError
from countermove.recourse.text import HashedWords, Options


def test_alternatives_are_the_changed_sentences(options: Options, encoder: HashedWords) -> None:
    row = next(i for i, s in enumerate(options.texts.sentence) if " dull " in s)
    start, end = options.starts[row : row + 2]
    changed = [r.applied(options.texts.sentence[row]) for r in options.replacements[row]]
    assert [sentence.split()[2] for sentence in changed] == ["lively", "sharp"]
    assert np.array_equal(options.alternatives[start:end], encoder.encode(changed))


def test_some_sentences_keep_what_is_theirs(options: Options) -> None:
    rows = np.array([200, 3, 77])
    part = options.some(rows)
    for new, old in enumerate(rows):
        assert part.texts.row[new] == old
        assert part.replacements[new] == options.replacements[old]
        ours = part.alternatives[slice(*part.starts[new : new + 2])]
        assert np.array_equal(ours, options.alternatives[slice(*options.starts[old : old + 2])])


def test_padding_is_the_sentence_itself(options: Options) -> None:
    padded = options.first(3)
    for row, found in enumerate(options.replacements):
        assert np.array_equal(padded[row, 0], options.vectors[row])
        begin = options.starts[row]
        assert np.array_equal(
            padded[row, 1 : 1 + len(found)], options.alternatives[begin : begin + len(found)]
        )
        assert (padded[row, 1 + len(found) :] == options.vectors[row]).all()
    assert options.first(1).shape == (len(options), 2, 2048)


@pytest.mark.parametrize("most", [0, 1.5, True])
def test_at_least_one_candidate(options: Options, most) -> None:
    with pytest.raises(ParameterError, match="candidates is a whole number ≥ 1"):
        options.first(most)
