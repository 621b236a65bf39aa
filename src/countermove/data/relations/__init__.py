"""Who can exist: relations between columns, functions of others, histories and usual ranges.

A schema declares them in original units (`Schema.relations`, `derived`, `paths`, a feature's
``range:``). What moves people reads them as numbers: `numeric_relations`, `path_states` and
`observed_ranges`. `contradictions` and `frozen_columns` say where they go wrong.
"""

from __future__ import annotations

from countermove.data.relations._checks import broken_relations, relation_report
from countermove.data.relations._contradictions import contradictions, frozen_columns
from countermove.data.relations._grammar import GrammarError, parse_formula, parse_rule
from countermove.data.relations._numeric import (
    LinearRows,
    NumericDerived,
    NumericRelations,
    numeric_relations,
)
from countermove.data.relations._paths import HistoryPath, PathStates, coded_states, path_states
from countermove.data.relations._ranges import ObservedRanges, Tails, observed_ranges
from countermove.data.relations._rules import (
    ConditionalRow,
    DerivedColumn,
    LevelRow,
    LinearRow,
    Relation,
)

__all__ = [
    "ConditionalRow",
    "DerivedColumn",
    "GrammarError",
    "HistoryPath",
    "LevelRow",
    "LinearRow",
    "LinearRows",
    "NumericDerived",
    "NumericRelations",
    "ObservedRanges",
    "PathStates",
    "Relation",
    "Tails",
    "broken_relations",
    "coded_states",
    "contradictions",
    "frozen_columns",
    "numeric_relations",
    "observed_ranges",
    "parse_formula",
    "parse_rule",
    "path_states",
    "relation_report",
]
