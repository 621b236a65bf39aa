"""Draws by id: the same for a person on every call, uniform, and closed without the key."""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
import pytest
from scipy.stats import kstest

from countermove.errors import ParameterError
from countermove.production.draws import (
    KEY_VARIABLE,
    ChallengerTerms,
    ExplorationTerms,
    PersonDraws,
    draws_for,
)

KEY = b"k" * 40
IDS = [f"p{place}" for place in range(4000)]


def test_a_draw_is_the_hmac_of_purpose_and_id():
    """So that an auditor with the key can compute it elsewhere."""
    (found,) = PersonDraws("canary", KEY).of(["anna"])
    digest = hmac.new(KEY, b"canary\nanna", hashlib.sha256).digest()
    assert found == (int.from_bytes(digest[:8], "big") >> 11) / 2**53


def test_draws_are_uniform_and_those_of_two_purposes_and_keys_independent():
    draws = PersonDraws("canary", KEY).of(IDS)
    assert kstest(draws, "uniform").pvalue > 0.001
    for other in (PersonDraws("exploration", KEY), PersonDraws("canary", b"o" * 40)):
        assert abs(np.corrcoef(draws, other.of(IDS))[0, 1]) < 0.06


def test_the_key_is_not_shown():
    draws = PersonDraws("canary", KEY)
    assert "kkkk" not in repr(draws) + "".join(draws.fingerprint())
    assert draws.fingerprint() != PersonDraws("canary", b"o" * 40).fingerprint()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_a_share_outside_0_and_1_is_refused(share):
    for terms in (ChallengerTerms, ExplorationTerms):
        with pytest.raises(ParameterError, match=r"share strictly between 0 and 1"):
            terms(share=share)
    with pytest.raises(ParameterError, match="most is at least 1"):
        ExplorationTerms(most=0)


def test_without_a_key_or_ids_nothing_is_drawn(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(ParameterError, match=f"set {KEY_VARIABLE} to at least 32"):
        draws_for("canary", "score.challenger.share", identified=True)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ParameterError, match=f"{KEY_VARIABLE} has 5 characters"):
        draws_for("canary", "score.challenger.share", identified=True)
    monkeypatch.setenv(KEY_VARIABLE, "k" * 40)
    with pytest.raises(ParameterError, match="the schema names no id column"):
        draws_for("canary", "score.challenger.share", identified=False)
    assert draws_for("canary", "x", identified=True) == PersonDraws("canary", KEY)
