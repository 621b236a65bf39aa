"""Entries of a schema file: read as what they must be, or refused by their key.

Single values first, then what a feature says of its words, its empty cells and how its cells are
read.
"""

from __future__ import annotations

import codecs
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, TypeVar, cast

from countermove.data.files import PLAIN, FileFormat
from countermove.data.reading import (
    BECOMES,
    SINCE,
    DateReading,
    NumberReading,
    Reading,
    WordReading,
    folded,
)
from countermove.data.schema import (
    CAUSES,
    MISSING,
    MISSING_POLICIES,
    SUPPLY_PRICE,
    Cause,
    Change,
    Feature,
    Kind,
    MissingCells,
    Schema,
    Value,
    value_text,
)
from countermove.data.wording import VALUE, Wording
from countermove.errors import nearest, shown

Choice = TypeVar("Choice", bound=str)


class EntryError(Exception):
    """An entry that is wrong: its key, and what is wrong with it."""


def refuse(key: str, problem: str) -> NoReturn:
    """Raise what is wrong with the entry at a key."""
    raise EntryError(f"{key}: {problem}")


def refuse_repeated(names: Iterable[str], key: str, verb: str) -> None:
    """Refuse names that occur twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        refuse(key, f"{verb} {shown(repeated)} twice")


def mapping_entry(entry: object, known: Iterable[str], where: str) -> Mapping[str, Any]:
    """Return a mapping with known keys only."""
    if not isinstance(entry, Mapping):
        keys = ", ".join(known)
        refuse(where, f"must be a mapping with keys {keys}, not {spelled(entry)}")
    for key in entry:
        if key not in known:
            refuse(where, f"unknown key {key!r}; {nearest(str(key), known)}")
    return entry


def one_of(value: object, known: tuple[Choice, ...], key: str) -> Choice:
    """Return one of the known words."""
    for choice in known:
        if value == choice:
            return choice
    refuse(key, f"is {spelled(value)}; {nearest(str(value), known)}")


def text_entry(value: object, key: str) -> str:
    """Return text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        refuse(key, f"must be text, not {spelled(value)}")
    return value


def optional_text(value: object, key: str) -> str:
    """Return text, or none of it where the key is absent."""
    return "" if value is None else text_entry(value, key).strip()


def value_entry(value: object, key: str) -> Value:
    """Return a category or label value; YAML's booleans are refused with the remedy."""
    if isinstance(value, bool):
        refuse(key, f"holds {spelled(value)}; YAML reads yes and no so: put it in quotes")
    if isinstance(value, int | float) and math.isfinite(value):
        return value
    return text_entry(value, key)


def number_entry(value: object, key: str) -> float | None:
    """Return a finite number, or None where the key is absent."""
    if value is None:
        return None
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(cast(float, value)):
        refuse(key, f"must be a finite number, not {spelled(value)}")
    return float(cast(float, value))


def names_entry(entry: object, key: str) -> tuple[str, ...]:
    """Return a list of columns, each once; an absent key lists none."""
    if entry is None:
        return ()
    if not isinstance(entry, list):
        refuse(key, f"must be a list of columns, not {spelled(entry)}")
    names = tuple(text_entry(name, key) for name in entry)
    refuse_repeated(names, key, "names")
    return names


def spelled(value: object) -> str:
    """Return a value with its type, as YAML read it."""
    return f"{type(value).__name__} {value!r}" if value is not None else "nothing"


WORDING_KEYS = ("name", "verb", "horizon")
WAYS = ("up", "down")


def read_wording(
    content: Mapping[str, Any], kind: Kind, change: Change, where: str
) -> Wording | None:
    """Return the words of a feature, None where nothing is said."""
    if not any(content.get(key) is not None for key in WORDING_KEYS):
        return None
    up, down = _verbs(content.get("verb"), kind, change, f"{where}.verb")
    return Wording(
        name=optional_text(content.get("name"), f"{where}.name"),
        raising=up,
        lowering=down,
        horizon=optional_text(content.get("horizon"), f"{where}.horizon"),
    )


def read_cause(entry: object, key: str) -> Cause | None:
    """Return whether a column causes the outcome; YAML reads yes and no as booleans."""
    if entry is None:
        return None
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return one_of(entry, CAUSES, key)


def read_verb(entry: object, key: str, *, place: bool = True) -> str:
    """Return a verb with ``{value}`` at the one place of the value; ``…`` means the same."""
    if entry is None:
        return ""
    text = text_entry(entry, key).strip()
    verb = text.replace("…", VALUE)
    if verb.count(VALUE) > 1 or (place and VALUE not in verb):
        count = "no" if VALUE not in verb else "more than one"
        refuse(key, f"{text!r} has {count} place for the value; write … (or {VALUE}) once")
    if set("{}") & set(verb.replace(VALUE, "")):
        refuse(key, f"{text!r} has braces; only {VALUE} is filled in")
    return verb


def _verbs(entry: object, kind: Kind, change: Change, key: str) -> tuple[str, str]:
    """Return the verbs for raising and lowering a column."""
    if entry is None:
        return "", ""
    if change == "immutable":
        refuse(key, "is given, but nobody can change the column (change: immutable)")
    place = kind != "binary"  # what 0 and 1 mean, the verb says itself
    allowed = WAYS if change == "both" else (change,)
    if not isinstance(entry, Mapping):
        verb = read_verb(entry, key, place=place)
        return (verb if "up" in allowed else ""), (verb if "down" in allowed else "")
    content = mapping_entry(entry, WAYS, key)
    if kind == "onehot":
        refuse(key, "has up and down, but one-hot categories have no order; give one verb")
    for way in content:
        if way not in allowed:
            refuse(f"{key}.{way}", f"is given, but the column may only go {change}")
    up, down = (read_verb(content.get(way), f"{key}.{way}", place=place) for way in WAYS)
    return up, down


def check_names(features: Iterable[Feature]) -> None:
    """Refuse two columns with one display name: nobody could tell them apart."""
    owners: dict[str, str] = {}
    for feature in features:
        name = "" if feature.wording is None else feature.wording.name
        other = owners.setdefault(name, feature.name)
        if name and other != feature.name:
            refuse(f"features.{feature.name}.name", f"{name!r} is the name of {other!r} too")


OWN_LEVEL = "own level"


def read_missing(
    content: Mapping[str, Any], kind: Kind, categories: tuple[str, ...], where: str
) -> MissingCells | None:
    """Read what stands in for a cell without a value; None: rows with one are set aside."""
    entry, key = content.get("missing"), f"{where}.missing"
    supply = content.get("supply", False)
    price = SUPPLY_PRICE
    if not isinstance(supply, bool):
        if not isinstance(supply, int | float) or not 0 < supply < math.inf:
            problem = "must be true, false or what it costs (a positive number)"
            refuse(f"{where}.supply", f"{problem}, not {supply!r}")
        supply, price = True, float(supply)
    if entry is None or entry == "refuse":
        if supply:
            refuse(f"{where}.supply", "is given, but rows without a value are set aside")
        return None
    fitting = {
        "numeric": ("median",),
        "integer": ("median",),
        "ordered": ("median", "mode"),
        "binary": ("mode",),
        "onehot": ("mode", OWN_LEVEL),
    }[kind]
    if entry in MISSING_POLICIES:
        if entry not in fitting:
            listed = ", ".join(("refuse", *fitting))
            refuse(key, f"is {entry!r}; a {kind} feature takes one of {listed}, or a value")
        if entry == OWN_LEVEL and MISSING in categories:
            refuse(
                key, f"is {entry!r}, but {MISSING!r} is a category already; give it as the value"
            )
        return MissingCells(entry, None, supply, price)
    return MissingCells(None, _stand_in(entry, kind, categories, key, fitting), supply, price)


def _stand_in(
    entry: object, kind: Kind, categories: tuple[str, ...], key: str, fitting: tuple[str, ...]
) -> Value:
    """Read the value that an empty cell means."""
    value = value_entry(entry, key)
    if categories:
        if value_text(value) not in categories:
            known = nearest(value_text(value), (*categories, "refuse", *fitting))
            refuse(key, f"is {value!r}, no category of the column; {known}")
        return value_text(value)
    number = number_entry(value, key)
    if number is None or (kind == "binary" and number not in (0, 1)):
        refuse(key, f"is {value!r}; expected 0 or 1")
    return number


def check_stand_in(feature: Feature, where: str) -> None:
    """Refuse a value for empty cells that the column cannot hold."""
    if feature.missing is None:
        return
    if feature.group is not None:
        refuse(
            f"{where}.missing", f"is given, but the column is one of the group {feature.group!r}"
        )
    value = feature.missing.value
    if value is None or feature.kind not in ("numeric", "integer"):
        return
    low = -math.inf if feature.min is None else feature.min
    high = math.inf if feature.max is None else feature.max
    if not low <= float(value) <= high:
        refuse(f"{where}.missing", f"is {value}, outside min and max")
    if feature.kind == "integer" and not float(value).is_integer():
        refuse(f"{where}.missing", f"is {value}, but the feature holds whole numbers")


FILE_KEYS = ("encoding", "delimiter", "header", "sheet", "rename")
SHARED_KEYS = ("from", "missing_values")
NUMBER_KEYS = ("decimal", "thousands", "units")
DATE_KEYS = ("date", "as", "until")
WORD_KEYS = ("fold", "spellings", "pooled")


def read_layout(entry: object) -> FileFormat:
    """Return how files are laid out, as ``file:`` says."""
    if entry is None:
        return PLAIN
    content = mapping_entry(entry, FILE_KEYS, "file")
    encoding = optional_text(content.get("encoding"), "file.encoding") or PLAIN.encoding
    try:
        codecs.lookup(encoding)
    except LookupError:
        refuse("file.encoding", f"is {encoding!r}, which Python does not know; such as cp1252")
    delimiter = content.get("delimiter", PLAIN.delimiter)
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n':
        refuse("file.delimiter", f"must be one character such as ';', not {spelled(delimiter)}")
    header = content.get("header", PLAIN.header)
    if isinstance(header, bool) or not isinstance(header, int) or header < 1:
        refuse("file.header", f"must be the number of a line, from 1, not {spelled(header)}")
    return FileFormat(
        encoding=encoding,
        delimiter=delimiter,
        header=header,
        sheet=optional_text(content.get("sheet"), "file.sheet") or None,
        rename=_flag(content.get("rename", False), "file.rename"),
    )


def read_feature(
    entry: object, kind: Kind, categories: tuple[str, ...], key: str
) -> Reading | None:
    """Return how the cells of a feature are read, as its ``read:`` says."""
    if entry is None:
        return None
    if categories:
        return _words(entry, categories, key)
    if isinstance(entry, Mapping) and "date" in entry:
        reading = _date(entry, key)
        if reading.becomes == "date":
            refuse(f"{key}.as", f"is missing: a feature is a number; {', '.join(BECOMES[1:])}")
        return reading
    return _numbers(entry, key)


def read_columns(entry: object) -> tuple[tuple[str, Reading], ...]:
    """Return how columns are read that are neither features nor the label."""
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        refuse("read", f"must map columns to how they are read, not {spelled(entry)}")
    return tuple(
        (text_entry(c, "read"), read_column(each, f"read.{c}", words=True))
        for c, each in entry.items()
    )


def read_column(entry: object, key: str, words: bool) -> Reading:
    """Return how a column is read that is no feature: dates, else words or numbers."""
    content = mapping_entry(entry, (*SHARED_KEYS, *NUMBER_KEYS, *DATE_KEYS, *WORD_KEYS), key)
    if content.get("from") is not None:
        refuse(f"{key}.from", "is for features; name the column itself")
    if "date" in content:
        return _date(content, key)
    return _words(entry, (), key) if words else _numbers(entry, key)


def check_readings(schema: Schema) -> None:
    """Refuse readings of columns that the schema does not use, or of another sort than it needs."""
    moments = {feature.reading.until_column for feature in schema.features
               if isinstance(feature.reading, DateReading)}  # fmt: skip
    moments |= {schema.time, schema.label.date}
    moments |= {None if schema.series is None else schema.series.time}
    words = {*schema.sensitive, schema.group_by}
    features = {feature.name for feature in schema.features}
    for column, reading in schema.readings:
        where = f"read.{column}"
        if column in features:
            refuse(where, f"is a feature: say so under features.{column}.read")
        if column == schema.label.column:
            refuse(where, "is the label: say so under label.read")
        if column not in moments | words:
            refuse(where, "is read for nothing: no feature, time, group or sensitive column")
        if column in moments and not isinstance(reading, DateReading):
            refuse(where, "is a moment: say how its dates are written, as in {date: '%d.%m.%Y'}")
        if column not in moments and not isinstance(reading, WordReading):
            refuse(where, f"is read as words; {', '.join(WORD_KEYS[:2])} or missing_values")
    for feature in schema.features:
        until = feature.reading.until_column if isinstance(feature.reading, DateReading) else None
        for key, named in (("until", until), ("from", feature.column)):
            if named is not None and named in schema.ignore:
                refuse(f"features.{feature.name}.read.{key}", f"is {named!r}, ignored too")


def _numbers(entry: object, key: str) -> NumberReading:
    content = mapping_entry(entry, (*SHARED_KEYS, *NUMBER_KEYS), key)
    decimal = content.get("decimal", ".")
    thousands = content.get("thousands", "")
    if decimal not in (".", ","):
        refuse(f"{key}.decimal", f"must be '.' or ',', not {spelled(decimal)}")
    if thousands not in ("", ".", ",", " ", "'", "_"):
        refuse(f"{key}.thousands", f"must be '.', ',', ' ' or \"'\", not {spelled(thousands)}")
    if decimal == thousands:
        refuse(f"{key}.thousands", f"is the decimal mark {decimal!r} too")
    units = _units(content.get("units"), f"{key}.units")
    return NumberReading(**_shared(content, key), decimal=decimal, thousands=thousands, units=units)


def _units(entry: object, key: str) -> tuple[tuple[str, float], ...]:
    if entry is None:
        return ()
    if isinstance(entry, list):
        return tuple((text_entry(text, key).strip(), 1.0) for text in entry)
    if not isinstance(entry, Mapping):
        refuse(key, f"must list texts or map them to factors, not {spelled(entry)}")
    factors = {text_entry(t, key).strip(): number_entry(f, key) for t, f in entry.items()}
    for text, factor in factors.items():
        if not factor or factor <= 0:
            refuse(f"{key}.{text}", f"is {factor}; a factor is positive")
    return tuple((text, float(factor or 1.0)) for text, factor in factors.items())


def _date(entry: Mapping[str, Any], key: str) -> DateReading:
    content = mapping_entry(entry, (*SHARED_KEYS, *DATE_KEYS), key)
    written = content["date"] if isinstance(content["date"], list) else [content["date"]]
    formats = tuple(text_entry(form, f"{key}.date") for form in written)
    for form in formats:
        if form != "iso" and "%" not in form:
            refuse(f"{key}.date", f"is {form!r}; expected iso, or a format such as '%d.%m.%Y'")
    becomes = one_of(content.get("as", "date"), BECOMES, f"{key}.as")
    # YAML reads 2024-12-31 as a date of its own.
    given = content.get("until")
    until = optional_text(None if given is None else str(given), f"{key}.until") or None
    if becomes in SINCE and until is None:
        refuse(
            f"{key}.until",
            f"is missing: {becomes} up to which moment? Another column, or the day of the extract",
        )
    if becomes not in SINCE and until is not None:
        refuse(f"{key}.until", f"is given, but {becomes!r} counts up to nothing")
    return DateReading(**_shared(content, key), formats=formats, becomes=becomes, until=until)


def _words(entry: object, categories: tuple[str, ...], key: str) -> WordReading:
    content = mapping_entry(entry, (*SHARED_KEYS, *WORD_KEYS), key)
    fold = _flag(content.get("fold", False), f"{key}.fold")
    pooled = content.get("pooled")
    level = None if pooled is None else value_text(value_entry(pooled, f"{key}.pooled"))
    if level is not None and categories and level not in categories:
        refuse(f"{key}.pooled", f"is {level!r}, which is not among the categories; add it")
    forms = [folded(category) for category in categories]
    if fold and len(set(forms)) < len(forms):
        refuse(f"{key}.fold", "makes two categories the same; keep one of them")
    spellings = _spellings(content.get("spellings"), categories, f"{key}.spellings")
    return WordReading(**_shared(content, key), fold=fold, spellings=spellings, pooled=level)


def _spellings(
    entry: object, categories: tuple[str, ...], key: str
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if entry is None:
        return ()
    if not isinstance(entry, Mapping):
        refuse(key, f"must map each category to other words for it, not {spelled(entry)}")
    found: dict[str, tuple[str, ...]] = {}
    for word, others in entry.items():
        category = value_text(value_entry(word, key))
        if categories and category not in categories:
            refuse(key, f"holds {category!r}, which is no category")
        if not isinstance(others, list):
            refuse(f"{key}.{category}", f"must list words, not {spelled(others)}")
        found[category] = tuple(value_text(value_entry(o, f"{key}.{category}")) for o in others)
    everything = [other for others in found.values() for other in others]
    if len(set(everything)) < len(everything):
        refuse(key, "lists a word under two categories")
    return tuple(found.items())


def _shared(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    listed = content.get("missing_values")
    if listed is not None and not isinstance(listed, list):
        refuse(f"{key}.missing_values", f"must be a list of cells, not {spelled(listed)}")
    values = tuple(_cell(value, f"{key}.missing_values") for value in listed or ())
    return {
        "source": optional_text(content.get("from"), f"{key}.from") or None,
        "missing_values": values,
    }


def _cell(value: object, key: str) -> str:
    """Return a listed cell as text; YAML reads 9999-12-31 as a date of its own."""
    import datetime

    if isinstance(value, datetime.date):
        return value.isoformat()
    return value_text(value_entry(value, key))


def _flag(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        refuse(key, f"must be true or false, not {spelled(value)}")
    return value


def check_feature(feature: Feature, where: str) -> None:
    """Refuse a recipe that contradicts the kind of its feature."""
    if isinstance(feature.reading, DateReading) and feature.kind not in ("numeric", "integer"):
        refuse(f"{where}.read.date", f"is given, but a {feature.kind} feature is no number")
