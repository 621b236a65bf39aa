"""How a column is spoken of: its display name, what people do about it, what time does alone.

None of it changes what a model reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VALUE = "{value}"
"""The place of the value in a verb; a schema file may also write ``…``."""


@dataclass(frozen=True)
class Wording:
    """The words for one column; an empty text where nothing is said.

    Parameters
    ----------
    name
        Display name.
    raising, lowering
        What people do to raise or lower it, with ``{value}`` where the new value stands.
    horizon
        What time does by itself, a sentence.
    """

    name: str = ""
    raising: str = ""
    lowering: str = ""
    horizon: str = ""

    def to_entry(self) -> dict[str, Any]:
        """Return the entries as a schema file would hold them."""
        ways = {"up": self.raising, "down": self.lowering}
        said = {way: verb for way, verb in ways.items() if verb}
        verb = self.raising if self.raising == self.lowering else said
        entry = {"name": self.name, "verb": verb, "horizon": self.horizon}
        return {key: value for key, value in entry.items() if value}
