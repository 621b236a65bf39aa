"""A first schema for a table nobody has described yet.

Every guess that a person has to confirm is marked ``# TODO``. Nobody may change
anything until the schema's owner allows it: a wrong ``immutable`` asks nothing of
anyone, a wrong ``both`` promises people a recourse that does not exist.
"""

from __future__ import annotations

from countermove.data.drafting._draft import (
    Draft,
    draft_file,
    draft_schema,
    next_steps,
    open_guesses,
    save_draft,
)

__all__ = ["Draft", "draft_file", "draft_schema", "next_steps", "open_guesses", "save_draft"]
