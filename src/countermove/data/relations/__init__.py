"""Who can exist: relations between columns, histories and usual ranges.

A schema declares them in original units (`Schema.relations`, `paths`, a feature's ``range:``).
What moves people reads them as numbers: `numeric_relations`, `path_states` and `observed_ranges`.
`contradictions` and `frozen_columns` say where they go wrong.
"""

from __future__ import annotations

from countermove.data.relations._checks import (
    broken_relations,
    contradictions,
    frozen_columns,
    relation_report,
)
from countermove.data.relations._grammar import GrammarError, parse_rule
from countermove.data.relations._numeric import (
    LinearRows,
    NumericRelations,
    numeric_relations,
)
from countermove.data.relations._paths import HistoryPath, PathStates, path_states
from countermove.data.relations._ranges import ObservedRanges, Tails, observed_ranges
from countermove.data.relations._rules import (
    ConditionalRow,
    LevelRow,
    LinearRow,
    Relation,
)

__all__ = [
    "ConditionalRow",
    "GrammarError",
    "HistoryPath",
    "LevelRow",
    "LinearRow",
    "LinearRows",
    "NumericRelations",
    "ObservedRanges",
    "PathStates",
    "Relation",
    "Tails",
    "broken_relations",
    "contradictions",
    "frozen_columns",
    "numeric_relations",
    "observed_ranges",
    "parse_rule",
    "path_states",
    "relation_report",
]
