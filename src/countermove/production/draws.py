"""Draws that decide about people: by the HMAC of the id, so nobody without the key foresees them.

The same person has the same draw on every call, and whoever has the key can check it. Read when
settings are, so nothing heavy is imported.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from countermove._types import Floats
from countermove.errors import ParameterError

KEY_VARIABLE = "COUNTERMOVE_DRAW_KEY"
"""Names the key of all draws; it is kept nowhere else."""
NEWEST = "newest"
BITS = 53
"""Of a draw: every one is a double of its own."""


@dataclass(frozen=True)
class ChallengerTerms:
    """A challenger that decides beside the champion.

    Parameters
    ----------
    version
        Of the registry, or ``newest``: the newest that was kept since the champion was promoted.
    share
        Of the applicants whom the challenger decides for, drawn by id; None: for nobody, its
        decisions are only recorded.
    """

    version: str = NEWEST
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            check_share(self.share, "score.challenger.share")


@dataclass(frozen=True)
class ExplorationTerms:
    """Refused people who are approved by draw, so that labels of such people come in.

    Parameters
    ----------
    share
        Of the refused.
    most
        People of a batch at most.
    """

    share: float = 0.02
    most: int = 20

    def __post_init__(self) -> None:
        check_share(self.share, "score.exploration.share")
        if self.most < 1:
            raise ParameterError(f"score.exploration.most is at least 1, got {self.most}")


@dataclass(frozen=True)
class PersonDraws:
    """Draws of people by id, those of each purpose independent of the others'."""

    purpose: str
    key: bytes = field(repr=False)

    def of(self, ids: Iterable[str]) -> Floats:
        """Return everybody's draw, uniform on [0, 1)."""
        found = [
            hmac.digest(self.key, f"{self.purpose}\n{row_id}".encode(), "sha256")[:8]
            for row_id in ids
        ]
        whole = np.array([int.from_bytes(each, "big") >> (64 - BITS) for each in found], np.float64)
        draws: Floats = whole / 2.0**BITS
        return draws

    def fingerprint(self) -> list[str]:
        """Return what tells draws apart and gives nothing of the key away."""
        from countermove.production.registry.signing import key_name

        return [self.purpose, key_name(self.key)]


def draws_for(purpose: str, setting: str, identified: bool) -> PersonDraws:
    """Return the draws of a setting; refuse it without a key or ids."""
    from countermove.production.registry.signing import SHORTEST, checked_key

    if not identified:
        raise ParameterError(
            f"{setting} draws people by their id, and the schema names no id column: name one "
            f"(id: in the schema), or leave {setting} out"
        )
    given = os.environ.get(KEY_VARIABLE)
    if given is None:
        raise ParameterError(
            f"{setting} draws people under a secret key: set {KEY_VARIABLE} to at least {SHORTEST} "
            'random characters, as `python -c "import secrets; print(secrets.token_hex(32))"` '
            "prints them"
        )
    return PersonDraws(purpose, checked_key(given, f"the environment variable {KEY_VARIABLE}"))


def check_share(share: float, setting: str) -> None:
    """Refuse a share that is none, or all."""
    if not 0.0 < share < 1.0:
        raise ParameterError(f"{setting} is a share strictly between 0 and 1, got {share!r}")
