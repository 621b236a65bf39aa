"""The entries of a schema that say how files and cells are read."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

from countermove.data._schema_entries import (
    mapping_entry,
    number_entry,
    one_of,
    optional_text,
    refuse,
    spelled,
    text_entry,
    value_entry,
)
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
from countermove.data.schema import Feature, Kind, Schema, value_text

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
