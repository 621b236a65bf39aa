"""What the columns of a table mean, written once.

A schema names the id, the label and its favourable value, the features with
their kind, unit, bounds and who may change them, and the sensitive columns that
audits need. Everything later (action sets, reports, checks) is derived from it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from countermove.data.files import PLAIN, FileFormat
from countermove.data.reading import DateReading, Reading
from countermove.data.wording import Wording
from countermove.errors import SchemaError

if TYPE_CHECKING:
    from countermove.data.relations import HistoryPath, Relation

__all__ = [
    "CAUSES",
    "CHANGES",
    "CLUSTER_PREFIX",
    "GROUP_PREFIX",
    "KINDS",
    "LABEL",
    "MISSING",
    "MISSING_POLICIES",
    "QUARANTINE",
    "ROW_ID",
    "SHORTER",
    "SOURCES",
    "SUPPLY_PRICE",
    "WINDOW_PREFIX",
    "Cause",
    "Change",
    "Feature",
    "Kind",
    "Label",
    "MissingCells",
    "ModelFeature",
    "Schema",
    "Series",
    "Value",
    "ValueRange",
    "load_schema",
    "value_text",
]

Kind: TypeAlias = Literal["numeric", "integer", "binary", "ordered", "onehot"]
Change: TypeAlias = Literal["immutable", "up", "down", "both"]
Value: TypeAlias = str | int | float
Cause: TypeAlias = Literal["yes", "no", "unknown"]

KINDS: tuple[Kind, ...] = ("numeric", "integer", "binary", "ordered", "onehot")
CHANGES: tuple[Change, ...] = ("immutable", "up", "down", "both")
CAUSES: tuple[Cause, ...] = ("yes", "no", "unknown")

MISSING = "missing"
"""Name of the level that stands for a cell without a value: the model column ``<name>=missing``."""

MissingPolicy: TypeAlias = Literal["median", "mode", "own level"]
MISSING_POLICIES: tuple[MissingPolicy, ...] = ("median", "mode", "own level")

SUPPLY_PRICE = 0.01
"""What supplying a missing cell costs unless the schema says otherwise, in units of the cost."""


@dataclass(frozen=True)
class MissingCells:
    """What stands in for a cell without a value.

    Parameters
    ----------
    policy
        ``median`` or ``mode`` of the training rows, or ``own level``, a category of its own;
        None: ``value``.
    value
        The value that an empty cell means, for everybody.
    supply
        Whether people can supply the value; else nobody can do anything about it.
    price
        What supplying it costs, in units of the cost.
    """

    policy: MissingPolicy | None = None
    value: Value | None = None
    supply: bool = False
    price: float = SUPPLY_PRICE

    def to_entry(self) -> dict[str, Any]:
        """Return the entries as a schema file would hold them."""
        stands = self.policy if self.value is None else self.value
        if not self.supply:
            return {"missing": stands}
        return {"missing": stands, "supply": True if self.price == SUPPLY_PRICE else self.price}


def value_text(value: Value) -> str:
    """Return the one spelling of a value: ``1``, ``1.0`` and ``"1"`` all read ``1``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


@dataclass(frozen=True)
class ValueRange:
    """Where advice may lead within a feature's bounds.

    Parameters
    ----------
    declared
        Anywhere that ``min``, ``max`` and ``categories`` allow.
    low, high
        Ends in the feature's unit; an end that is None is the 1st (99th) percentile of the
        training rows, of categories the first (last) that occurs there.
    """

    declared: bool = False
    low: float | None = None
    high: float | None = None

    def to_entry(self) -> str | dict[str, float]:
        """Return the entry as a schema file would hold it."""
        ends = {"low": self.low, "high": self.high}
        given = {key: value for key, value in ends.items() if value is not None}
        return given or ("declared" if self.declared else "observed")


@dataclass(frozen=True)
class Feature:
    """One column a score may read.

    Parameters
    ----------
    name
        The column.
    kind
        ``numeric``; ``integer``; ``binary`` (0 or 1, or two categories of which the
        second is 1); ``ordered`` (categories in their order, coded 0, 1, …);
        ``onehot`` (categories without an order, one model column each).
    change
        What the person may do about it: nothing, raise it, lower it, or both.
    unit
        Unit of the values, for people to read.
    min, max
        Bounds of the values, inclusive, in that unit; ``None`` is unbounded.
    step
        Smallest change that makes sense, in that unit; ``None`` is any.
    range
        Where advice may lead within the bounds; ``None`` is as observed in the training rows
        (`countermove.data.observed_ranges`).
    categories
        The values of a categorical column, as text.
    group
        For binary columns of a category that the table brings already expanded:
        the name they share. Exactly one of the group is 1 in every row.
    lag
        How many steps before the last one the value was observed (time series only).
    wording
        How it is called in front of people; ``None``: by the column's own name.
    causal
        Whether changing it changes the outcome itself, as the schema's author declares;
        ``None``: nothing is declared.
    reading
        How its cells are read; ``None``: as plain numbers and words.
    missing
        What stands in for a cell without a value; ``None``: rows with one are set aside.
    """

    name: str
    kind: Kind
    change: Change = "immutable"
    unit: str = ""
    min: float | None = None
    max: float | None = None
    step: float | None = None
    range: ValueRange | None = None
    categories: tuple[str, ...] = ()
    group: str | None = None
    lag: int = 0
    wording: Wording | None = None
    causal: Cause | None = None
    reading: Reading | None = None
    missing: MissingCells | None = None

    @property
    def own_level(self) -> bool:
        """Whether a cell without a value is a category of its own."""
        return self.missing is not None and self.missing.policy == "own level"

    @property
    def suppliable(self) -> bool:
        """Whether supplying a missing cell is an action: a category may have to be movable too."""
        # Leaving an own level is entering a category, and nobody enters one of an immutable column.
        if self.missing is None or not self.missing.supply:
            return False
        return not self.own_level or self.change != "immutable"

    @property
    def categorical(self) -> bool:
        """Whether the typed table holds this column as text."""
        return self.kind in ("ordered", "onehot")

    @property
    def column(self) -> str:
        """The column of the file it is read from."""
        return (self.reading.source if self.reading is not None else None) or self.name

    def to_mapping(self) -> dict[str, Any]:
        """Return the entry of this feature as a schema file would hold it."""
        entry: dict[str, Any] = {"kind": self.kind, "change": self.change}
        optional: dict[str, Any] = {
            "unit": self.unit,
            "min": self.min,
            "max": self.max,
            "step": self.step,
        }
        optional["group"] = self.group
        optional["range"] = None if self.range is None else self.range.to_entry()
        optional["causal"] = self.causal
        entry |= {key: value for key, value in optional.items() if value not in ("", None)}
        entry |= {} if self.wording is None else self.wording.to_entry()
        entry |= {} if self.reading is None else {"read": self.reading.to_entry()}
        entry |= {} if self.missing is None else self.missing.to_entry()
        return entry | ({"categories": list(self.categories)} if self.categories else {})

    def lagged(self, steps: int) -> Feature:
        """Return this feature as it was some steps earlier: ``<name>_t-<steps>``, a fact by now."""
        tail = f"_t-{steps}"
        group = None if self.group is None else self.group + tail
        fact = replace(self, name=self.name + tail, change="immutable", group=group, lag=steps)
        missing = None if self.missing is None else replace(self.missing, supply=False)
        return replace(fact, wording=None, causal=None, missing=missing)


@dataclass(frozen=True)
class ModelFeature:
    """One column of the design matrix.

    ``min`` and ``max`` bound the coded value (minus and plus infinity when the
    schema leaves them open); ``group`` names the one-hot columns of which exactly
    one is 1 (the source column, or the group the schema declares), else ``None``;
    ``indicator`` marks the column that is 1 where the cell had no value: nobody changes it, but
    whoever supplies the cell, where that is an action, takes it down to 0.
    """

    name: str
    source: str
    kind: Kind
    change: Change
    min: float
    max: float
    step: float | None
    group: str | None
    indicator: bool = False


def expanded(feature: Feature) -> list[ModelFeature]:
    """Return the model columns of one feature."""
    low = -math.inf if feature.min is None else float(feature.min)
    high = math.inf if feature.max is None else float(feature.max)
    step = feature.step
    if feature.kind in ("binary", "onehot"):
        low, high, step = 0.0, 1.0, 1.0
    elif feature.kind == "ordered":
        low, high, step = 0.0, float(len(feature.categories) - 1), 1.0
    elif feature.kind == "integer":
        step = 1.0 if step is None else step
    kind, change, name = feature.kind, feature.change, feature.name
    found = [ModelFeature(name, name, kind, change, low, high, step, feature.group)]
    if kind == "onehot":
        found = [
            ModelFeature(f"{name}={category}", name, kind, change, low, high, step, group=name)
            for category in feature.categories
        ]
    if feature.missing is not None:
        group = name if feature.own_level else None
        indicator: Change = "down" if feature.suppliable else "immutable"
        found.append(
            ModelFeature(f"{name}={MISSING}", name, "binary", indicator, 0.0, 1.0, 1.0, group, True)
        )
    return found


Source: TypeAlias = Literal["embedded", "fabricated", "fetched", "file"]
SOURCES: tuple[Source, ...] = ("embedded", "fabricated", "fetched", "file")

ROW_ID = "row_id"
"""Column of a typed table that names the person."""

LABEL = "label"
"""Column of a typed table with +1 (favourable) or -1."""

GROUP_PREFIX = "group:"
"""Marks the sensitive columns where they stand beside standardised features."""

WINDOW_PREFIX = "window:"
"""Marks the raw columns that only paths read where typed and standardised tables carry them."""

CLUSTER_PREFIX = "cluster:"
"""Marks the column of ``group_by`` there."""

Shorter: TypeAlias = Literal["leave_out", "repeat_first"]
SHORTER: tuple[Shorter, ...] = ("leave_out", "repeat_first")
"""What happens to entities with fewer steps than a series has."""

QUARANTINE = 0.05
"""Share of a table's rows that may be set aside, unless the schema says otherwise."""

_POSSIBLE = ("relations", "path")
_NOT_READ = ("range", "name", "verb", "horizon", "causal", "read", "supply")
"""Entries of a feature that change nothing in what a rule reads."""
_NOT_LABEL = ("unfavourable", "read", "date")
_NOT_MEANT = (
    "description", "source", "ignore", "group_by", "time", "file", "read", "quarantine", *_POSSIBLE,
)  # fmt: skip
"""Entries of a schema that change nothing in what a rule reads."""


@dataclass(frozen=True)
class Label:
    """The outcome column and the value people hope for.

    Exactly one of the three is given: the favourable one of two values, or, for a
    column of numbers, the least (the greatest) value that is still favourable. With the
    ``unfavourable`` value any third one is a wrong row; without it the table must hold two values.
    ``date`` names the column with the day of the outcome, which features should not lie after; a
    table may hold it, and need not.
    """

    column: str
    favourable: Value | None = None
    at_least: float | None = None
    at_most: float | None = None
    unfavourable: Value | None = None
    reading: Reading | None = None
    date: str | None = None

    def to_mapping(self) -> dict[str, Any]:
        """Return the entry as a schema file would hold it."""
        entry = asdict(replace(self, reading=None))
        entry |= {} if self.reading is None else {"read": self.reading.to_entry()}
        return {key: value for key, value in entry.items() if value is not None}


@dataclass(frozen=True)
class Series:
    """A table with several rows per person, company, …, distinguished by time.

    Parameters
    ----------
    entity
        Column that says whose row it is; it becomes the id.
    time
        Column that orders an entity's rows: numbers or dates.
    steps
        How many of the last steps become features: 1 is the last row alone; more
        add the columns ``<feature>_t-1``, …, which nobody can change any more.
    shorter
        What happens to entities with fewer steps: ``leave_out``, or
        ``repeat_first``, their first row standing in for the missing earlier ones.
    earlier
        The features whose earlier values become columns; all of them when empty.
    """

    entity: str
    time: str
    steps: int = 1
    shorter: Shorter = "leave_out"
    earlier: tuple[str, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """Return the entry as a schema file would hold it."""
        entry = asdict(self)
        earlier = list(entry.pop("earlier"))
        return entry | ({"earlier": earlier} if earlier else {})

    def lagged(self, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
        """Return the features of earlier steps that this series adds."""
        chosen = [f for f in features if not self.earlier or f.name in self.earlier]
        return tuple(f.lagged(lag) for lag in range(1, self.steps) for f in chosen)


@dataclass(frozen=True)
class Schema:
    """A table, described.

    Parameters
    ----------
    name
        Name of the dataset.
    label, features
        The outcome and the columns a score reads, in order.
    id
        Column that identifies a row, or ``None`` to number the rows.
    sensitive
        Group columns kept for audits. One of them is a feature only when it is
        listed under the features as well.
    references
        Sensitive columns with the group that the others are compared with; of a column that is
        not among them it is the largest.
    ignore
        Columns of the file that are dropped unread.
    cleaning
        Name of the recipe that turns the raw layout into these columns.
    source
        Where the table comes from when the user brings no file.
    description
        One line for people.
    series
        How to make one row per entity when the table has several.
    group_by
        Column whose equal values keep rows in one split: a household, a customer who
        applied twice.
    time
        Column by which rows are split, earlier ones for training and later ones for
        testing: numbers or ISO dates.
    relations
        What is true of everybody who can exist, between columns.
    paths
        The ordered states that histories can go through.
    file
        How the files of the table are laid out.
    readings
        How the cells of columns are read that are neither features nor the label.
    quarantine
        Largest share of a table's rows that may be set aside because they cannot be used.
    """

    name: str
    label: Label
    features: tuple[Feature, ...]
    id: str | None = None
    sensitive: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    cleaning: str | None = None
    source: Source = "file"
    description: str = field(default="", compare=False)
    series: Series | None = None
    group_by: str | None = None
    time: str | None = None
    relations: tuple[Relation, ...] = ()
    paths: tuple[HistoryPath, ...] = ()
    file: FileFormat = PLAIN
    readings: tuple[tuple[str, Reading], ...] = ()
    quarantine: float = QUARANTINE
    references: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_mapping(cls, name: str, mapping: Mapping[str, Any], origin: str = "") -> Schema:
        """Read a schema from the mapping a YAML file holds.

        Parameters
        ----------
        name
            Name of the dataset.
        mapping
            The content.
        origin
            File named in errors; the dataset's name when empty.

        Raises
        ------
        SchemaError
            If it contradicts itself; the message names the file and the key.
        """
        from countermove.data._schema_reading import schema_from_mapping

        return schema_from_mapping(name, mapping, origin or f"schema {name!r}")

    def to_mapping(self) -> dict[str, Any]:
        """Return the mapping that :meth:`from_mapping` reads back to an equal schema."""
        mapping: dict[str, Any] = {
            "label": self.label.to_mapping(),
            "features": {feature.name: feature.to_mapping() for feature in self.observed},
            "source": self.source,
        }
        references = dict(self.references)
        optional = {
            "description": self.description,
            "id": self.id,
            "series": None if self.series is None else self.series.to_mapping(),
            "group_by": self.group_by,
            "time": self.time,
            "cleaning": self.cleaning,
            "sensitive": [
                {"column": column, "reference": references[column]}
                if column in references
                else column
                for column in self.sensitive
            ],
            "ignore": list(self.ignore),
            "relations": [relation.to_entry() for relation in self.relations],
            "path": {path.name: path.to_entry() for path in self.paths},
            "file": self.file.to_mapping(),
            "read": {column: reading.to_entry() for column, reading in self.readings},
        }
        if self.quarantine != QUARANTINE:
            mapping["quarantine"] = self.quarantine
        return mapping | {key: value for key, value in optional.items() if value}

    def digest(self) -> str:
        """Return the SHA-256 of everything that gives the columns their meaning.

        The order of the features counts (it is the order of a model's weights), and what a cell
        means: which numbers stand for no value, what becomes of a date, which levels are pooled.
        The description, the source, the wording, what is causal, how rows are split and how a
        file writes its cells do not, nor what `relations_digest` covers: a rule reads its columns
        the same with and without it.
        """
        mapping = self.to_mapping()
        mapping["label"] = {
            key: value for key, value in mapping["label"].items() if key not in _NOT_LABEL
        }
        if self.label.favourable is not None:
            mapping["label"]["favourable"] = value_text(self.label.favourable)
        mapping["features"] = [
            [feature.name, self._meaning(feature, mapping["features"][feature.name])]
            for feature in self.observed
        ]
        if self.sensitive:
            mapping["sensitive"] = list(self.sensitive)
        for key in _NOT_MEANT:
            mapping.pop(key, None)
        return _sha256(mapping)

    @staticmethod
    def _meaning(feature: Feature, entry: dict[str, Any]) -> dict[str, Any]:
        """Return what of a feature's entry a rule depends on."""
        kept = {key: entry[key] for key in entry if key not in _NOT_READ}
        meaning = {} if feature.reading is None else feature.reading.meaning()
        return kept | ({"read": meaning} if meaning else {})

    def relations_digest(self) -> str:
        """Return the SHA-256 of who can exist: relations, paths and ranges.

        Reasons do not count. The empty text for a schema that says nothing of the kind.
        """
        facts: dict[str, Any] = {
            "relations": [relation.text for relation in self.relations],
            "path": [path.facts() for path in self.paths],
            "range": {f.name: f.range.to_entry() for f in self.features if f.range is not None},
        }
        return _sha256(facts) if any(facts.values()) else ""

    @property
    def observed(self) -> tuple[Feature, ...]:
        """The features that are columns of the file: all but those of earlier steps."""
        return tuple(feature for feature in self.features if not feature.lag)

    @property
    def raw_columns(self) -> tuple[str, ...]:
        """The columns this schema names: id (or entity, time), features, …; each once."""
        named = [self.id] if self.id is not None else []
        named += [self.series.entity, self.series.time] if self.series is not None else []
        named += [*self.feature_columns, *self.sensitive, *self.split_columns, self.label.column]
        return tuple(dict.fromkeys(named))

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """The columns of the file that the features are read from, each once."""
        named = []
        for feature in self.observed:
            named.append(feature.column)
            if isinstance(feature.reading, DateReading) and feature.reading.until_column:
                named.append(feature.reading.until_column)
        return tuple(dict.fromkeys(named))

    def recipes(self) -> dict[str, Reading]:
        """Return how each column of the file is read that is not read plainly."""
        found = {f.column: f.reading for f in self.observed if f.reading is not None}
        label = {} if self.label.reading is None else {self.label.column: self.label.reading}
        return found | label | dict(self.readings)

    def reading_of(self, column: str) -> Reading | None:
        """Return how a column is read that is neither a feature nor the label."""
        return dict(self.readings).get(column)

    @property
    def split_columns(self) -> tuple[str, ...]:
        """The columns that decide about a row's split beside its id: group and time."""
        return tuple(name for name in (self.group_by, self.time) if name is not None)

    @property
    def outcome_date(self) -> str | None:
        """The column with the day of the outcome, else the time by which rows are split."""
        return self.label.date or self.time

    @property
    def window_columns(self) -> tuple[str, ...]:
        """The raw columns that only paths read; a table may hold them, and need not."""
        return tuple(dict.fromkeys(c for p in self.paths if p.from_raw for c in p.window))

    @property
    def carried_windows(self) -> tuple[str, ...]:
        """The same columns as typed tables carry them, NaN where the raw table has none."""
        return tuple(f"{WINDOW_PREFIX}{column}" for column in self.window_columns)

    @property
    def table_columns(self) -> tuple[str, ...]:
        """The columns of the typed table, in order."""
        features = [feature.name for feature in self.features]
        middle = dict.fromkeys([*features, *self.sensitive, *self.split_columns])
        return (ROW_ID, *middle, LABEL)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of the design matrix; one-hot columns read ``Column=value``."""
        return tuple(column.name for column in self.model_features())

    def feature(self, name: str) -> Feature:
        """Return the feature of that name."""
        for feature in self.features:
            if feature.name == name:
                return feature
        raise SchemaError(f"schema {self.name!r} has no feature {name!r}")

    def model_features(self) -> tuple[ModelFeature, ...]:
        """Return one entry per column of the design matrix, in order."""
        return tuple(column for feature in self.features for column in expanded(feature))


def _sha256(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def load_schema(name: str, *folders: Path) -> Schema:
    """Read the schema ``<folder>/<name>.yml``, from the first folder that has it.

    Raises
    ------
    UnknownNameError
        If there is no such schema; the nearest name is suggested.
    SchemaError
        If the file cannot be read or contradicts itself.
    """
    from countermove.data.configuration import read_text
    from countermove.data.sources import schema_file

    path = schema_file(name, *folders)
    return _described(name, read_text(path), path)


@lru_cache(maxsize=32)
def _described(name: str, text: str, path: Path) -> Schema:
    """Return the schema of a text; a run asks for the same one some forty times."""
    from countermove.data.configuration import parse_yaml

    return Schema.from_mapping(name, parse_yaml(text, path), str(path))
