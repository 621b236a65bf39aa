"""Exploration: refused people approved by a keyed draw of their id, with a recorded propensity.

Labels of the approved only never say whom the rule refuses wrongly. The draw is the HMAC of the
id: the same on every call, foreseen by nobody without the key, checked by whoever has it.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from countermove._types import Floats
from countermove.data.schema import ROW_ID
from countermove.errors import ParameterError
from countermove.production.open_advice.honour import approved_instead
from countermove.production.registry.signing import SHORTEST, checked_key, key_name

KEY_VARIABLE = "COUNTERMOVE_DRAW_KEY"
"""Names the key of all draws; it is kept nowhere else."""
EXPLORED, PROPENSITY = "explored", "propensity"
BITS = 53
"""Of a draw: every one is a double of its own."""


@dataclass(frozen=True)
class ExplorationTerms:
    """Refused people who are approved by draw, so that labels of such people come in.

    Parameters
    ----------
    share
        Of the refused: everybody's probability to be approved by draw.
    """

    share: float = 0.02

    def __post_init__(self) -> None:
        if not 0.0 < self.share < 1.0:
            raise ParameterError(
                f"score.exploration.share is a share strictly between 0 and 1, got {self.share!r}"
            )

    def keyed(self, identified: bool) -> Exploration:
        """Return the draws under the key of the environment; refuse them without a key or ids."""
        if not identified:
            raise ParameterError(
                "score.exploration draws people by their id, and the schema names no id column: "
                "name one (id: in the schema), or leave score.exploration out"
            )
        given = os.environ.get(KEY_VARIABLE)
        if given is None:
            raise ParameterError(
                f"score.exploration draws people under a secret key: set {KEY_VARIABLE} to at "
                f'least {SHORTEST} random characters, as `python -c "import secrets; '
                'print(secrets.token_hex(32))"` prints them'
            )
        return Exploration(self.share, checked_key(given, f"the variable {KEY_VARIABLE}"))


@dataclass(frozen=True)
class Exploration:
    """Approves a share of the refused, by the draws of a key."""

    share: float
    key: bytes = field(repr=False)

    def draws(self, ids: Iterable[str]) -> Floats:
        """Return everybody's draw, uniform on [0, 1)."""
        found = [
            hmac.digest(self.key, f"exploration\n{row_id}".encode(), "sha256")[:8] for row_id in ids
        ]
        whole = np.array([int.from_bytes(each, "big") >> (64 - BITS) for each in found], np.float64)
        draws: Floats = whole / 2.0**BITS
        return draws

    def applied(self, table: pd.DataFrame, words: str) -> pd.DataFrame:
        """Return decisions with those approved whom the draw chooses, and all propensities."""
        refused = (table["decision"] < 0).to_numpy(np.bool_)
        chosen = refused.copy()
        chosen[refused] = self.draws(table[ROW_ID][refused].astype(str)) < self.share
        places = np.flatnonzero(chosen).tolist()
        found = approved_instead(table, places, [words] * len(places))
        return found.assign(**{EXPLORED: chosen, PROPENSITY: np.where(refused, self.share, 1.0)})

    def describe(self) -> dict[str, float | str]:
        """Return the share and the name of the key, which gives nothing of it away."""
        return {"share": self.share, "key": key_name(self.key)}
