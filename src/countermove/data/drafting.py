"""A first schema for a table nobody has described yet.

Every guess that a person has to confirm is marked ``# TODO``. Nobody may change
anything until the schema's owner allows it: a wrong ``immutable`` asks nothing of
anyone, a wrong ``both`` promises people a recourse that does not exist.
"""

from __future__ import annotations

import codecs
import csv
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from countermove._types import Floats, Mask
from countermove.data._entries import read_feature
from countermove.data.doubts import SENSITIVE, gives_away, name_words
from countermove.data.files import (
    BLOCK,
    BYTE_ORDER_MARKS,
    PLAIN,
    WORKBOOKS,
    FileFormat,
    RawTable,
    opened,
    read_table,
    sheet_names,
    sheet_rows,
    table_suffix,
    text_lines,
)
from countermove.data.guesses import (
    BAD,
    DATE_CODES,
    GOOD,
    YES,
    Guess,
    answer_reading,
    by_form,
    expanded_groups,
    guess_column,
    guess_dates,
    number_ways,
    spelling_reasons,
    usual,
    with_gaps,
)
from countermove.data.parsing import MISSING_WORDS, is_number, numbers, texts
from countermove.data.reading import (
    Becomes,
    DateReading,
    NumberReading,
    WordReading,
    folded,
    until_dates,
)
from countermove.data.schema import (
    GROUP_PREFIX,
    LABEL,
    QUARANTINE,
    ROW_ID,
    Label,
    Schema,
    Series,
)
from countermove.data.series import order_steps
from countermove.data.storage import replace_file
from countermove.errors import DataError, ParameterError, nearest, shown

__all__ = ["Draft", "draft_file", "draft_schema", "next_steps", "open_guesses", "save_draft"]

RAW = Path("data") / "01_raw"

WHO = "can people change it: up, down, both?"

TYPICAL_STEPS = 1.5
"""Rows per entity, on average, from which a table counts as a series."""

STRAY = 0.05
"""Share of the rows that may hold something else than the two values of an outcome that is named;
they are wrong rows then."""

MOST_SPELLINGS = 12
"""Columns with more different cells than this are no outcome of two values."""

LONGEST_NAME = 200
"""YAML limits the length of keys; a name that long is no name."""

DELIMITERS = (",", ";", "\t", "|")
WESTERN = "cp1252"
"""What a text is read as that is no UTF-8 and has no mark; a person confirms it."""

SAMPLED_LINES = 500


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BIRTH = _words("birth birthday birthdate dob born")
MOMENT = _words(
    "applied application requested request submitted decision decided received extract snapshot "
    "antrag antragsdatum"
)
"""In the name of a date that says when a row was true."""

IDENTIFIER = _words("id ids uid uuid key number nr no index code ref reference case")
ENTITY = _words(
    "company firm person people customer client patient user applicant account member household "
    "student employee borrower entity subject contract kunde vertrag"
)
TIME = _words("time date datetime timestamp day week month quarter year period step round t visit")
OUTCOME = _words(
    "label target y outcome class result decision approved accepted repaid default defaulted fraud "
    "churn churned response diagnosis survived hired admitted granted paid spam risk status "
    "distress bad good recidivism readmitted"
)
UNFAVOURABLE_NAME = _words(
    "default defaulted fraud churn churned bad risk spam distress late recidivism readmitted "
    "refused rejected denied dead died failure failed"
)
"""Words in the name of an outcome whose 1 (yes, true) is unfavourable."""


@dataclass(frozen=True)
class Draft:
    """The text of a schema file, the schema it holds, and how many guesses to confirm."""

    text: str
    schema: Schema
    guesses: int


def draft_file(
    path: Path, name: str, label: str | None = None, favourable: str | None = None
) -> Draft:
    """Return the draft of a schema for a file: how it is laid out, and what its columns are.

    See `draft_schema`; lines that are no rows are counted in the text.
    """
    found = find_layout(path)
    raw = read_table(path, found.layout)
    return draft_schema(raw, name, label, favourable, path.name, found)


def draft_schema(
    table: pd.DataFrame | RawTable,
    name: str,
    label: str | None = None,
    favourable: str | None = None,
    origin: str = "",
    found: FoundLayout | None = None,
) -> Draft:
    """Return the draft of a schema for a table as read.

    Parameters
    ----------
    table
        The table, cells as read.
    name
        Name of the dataset.
    label, favourable
        The outcome column and its favourable value, where known.
    origin
        File named in the text.
    found
        How that file is laid out.

    Returns
    -------
    Draft
        A schema that loads and names every column once; a table without gaps and
        stray cells passes its checks.

    Raises
    ------
    DataError
        If the table has no rows, no column can be the outcome, or none is left as
        a feature.
    """
    raw = table if isinstance(table, RawTable) else RawTable(table)
    if len(raw.frame) < 2:
        raise DataError(f"{origin or name} has {len(raw.frame)} row(s); expected at least two")
    named = raw.frame.set_axis([str(column) for column in raw.frame.columns], axis=1)
    outcome = guess_label(named, label, favourable)
    roles = Roles.of(named, outcome)
    if not roles.features:
        why = "; ".join(f"{column}: {reason}" for column, reason in roles.left_out.items())
        raise DataError(f"{origin or name}: no column is left as a feature. {why}")
    head = _head(raw, f"{name}: drafted from {origin or 'a table'}", found or FoundLayout())
    text = "\n".join([*head, *_body(roles, outcome)]) + "\n"
    schema = Schema.from_mapping(name, yaml.safe_load(text), f"the draft of {name!r}")
    return Draft(text, schema, text.count("# TODO"))


def save_draft(draft: Draft, path: Path, force: bool) -> None:
    """Write a draft; a schema that is there already stays unless ``force`` is given."""
    if path.exists() and not force:
        raise ParameterError(
            f"{path} exists already and may hold your work; use --force to replace it, --name for "
            "another dataset, or --output - to look at the draft first"
        )
    if not path.parent.is_dir():
        raise ParameterError(f"there is no folder {path.parent} to write {path.name} into")
    replace_file(path, draft.text.encode())


def open_guesses(text: str) -> list[str]:
    """Return the keys and columns of a schema file whose guesses are still marked ``# TODO``."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        entry, marked, _ = line.partition("# TODO")
        if marked:
            try:
                held = yaml.safe_load(entry.strip().lstrip("#").strip())
            except yaml.YAMLError:
                held = None
            name = next(iter(held), None) if isinstance(held, dict | list) else held
            found.append(f"line {number}" if name is None else str(name))
    return found


def next_steps(draft: Draft, path: Path, file: Path, project: Path) -> str:
    """Return what was written and which commands follow."""
    name = draft.schema.name
    target = RAW / f"{name}{table_suffix(file) or file.suffix}"
    written = path.relative_to(project) if path.is_relative_to(project) else path
    lines = [f"drafted {written}: {draft.guesses} guesses for you to confirm, each marked TODO"]
    lines.append("next:")
    if file.resolve() != (project / target).resolve():
        lines.append(f"  cp {shlex.quote(str(file))} {target}")
    lines.append(f"  kedro countermove check {name}")
    return "\n".join(lines)


def _head(raw: RawTable, description: str, found: FoundLayout) -> list[str]:
    """Return the first lines: what was drafted from, and how the file is laid out."""
    rows, columns = raw.frame.shape
    lines = [
        f"# A draft from {rows} rows and {columns} columns. Confirm each TODO and delete it.",
        "# Nobody can change anything yet: write up, down or both where people can act. A",
        "# wrong immutable asks nothing of anyone; a wrong both promises what nobody can do.",
        "# Say what the numbers count as well, as in unit: EUR.",
    ]
    if raw.broken:
        first = raw.broken[0]
        lines.append(
            _comment(
                f"# {len(raw.broken)} line(s) are no rows and go into quarantine, the first one "
                f"line {first.line} ({first.found}; expected {first.expected})."
            )
        )
    lines += [_line({"description": description}), "source: file"]
    layout = found.layout.to_mapping()
    if layout or found.questions:
        lines.append(_line({"file": layout}, found.questions))
    return lines


def _body(roles: Roles, outcome: LabelGuess) -> list[str]:
    """Return the lines of the columns."""
    lines = []
    if roles.series is not None:
        entry = {"entity": roles.series.entity, "time": roles.series.time}
        text = "one row per entity is kept, the last in time; steps: 3 would add earlier ones"
        lines.append(_line({"series": entry}, (text,)))
    if roles.id is not None:
        lines.append(_line({"id": roles.id}, ("every row has a value of its own",)))
    if roles.moment is not None:
        text = "uncomment it to train on earlier rows and test on later ones"
        lines.append(f"# {_line({'time': roles.moment})}  # {text}")
    lines.append(_line({"label": outcome.label.to_mapping()}, (outcome.reason,)))
    lines.append("features:")
    for column, guess in roles.features.items():
        lines.append("  " + _line({column: _entry(guess.entry)}, (WHO, *guess.reasons)))
    for key, reasons in (("sensitive", roles.sensitive), ("ignore", roles.left_out)):
        lines += [f"{key}:"] if reasons else []
        for column, why in reasons.items():
            lines.append(f"  - {_scalar(column)}{_todo([why])}")
            for name, choice in roles.choices.get(column, ()):
                lines.append(f"  #   {_line({name: _entry(choice)})}")
    if roles.reads:
        lines.append("read:")
        lines += ["  " + _line({column: read}, why) for column, (read, why) in roles.reads.items()]
    return lines


def _entry(drafted: Mapping[str, Any]) -> dict[str, Any]:
    """Return a feature's entry, which nobody can change yet."""
    kind, *others = drafted.items()
    return dict([kind, ("change", "immutable"), *others])


def _line(entry: Mapping[str, Any], todo: Iterable[str] = ()) -> str:
    """Return ``key: value`` with the value in flow style, and what to confirm."""
    ((key, value),) = entry.items()
    return f"{_scalar(key)}: {_scalar(_numbers_plain(value))}{_todo(todo)}"


def _todo(reasons: Iterable[str]) -> str:
    listed = _comment("; ".join(reasons).replace("?;", "?"))
    return f"  # TODO: {listed}" if listed else ""


def _comment(text: str) -> str:
    """Return one line of printable text, whatever the cells held."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _scalar(value: object) -> str:
    """Return a value as YAML on one line."""
    text = _dumped(value, style=None)
    # Line breaks of any sort in a name or word: only double quotes spell them out.
    return _dumped(value, style='"') if len(text.splitlines()) > 1 else text


def _dumped(value: object, style: str | None) -> str:
    text = yaml.safe_dump(
        value,
        default_flow_style=True,
        default_style=style,
        allow_unicode=style is None,
        sort_keys=False,
        width=10**9,
    )
    return re.sub(r"\n(\.\.\.\n)?$", "", text)


def _numbers_plain(value: Any) -> Any:
    """Write 50.0 as 50."""
    if isinstance(value, Mapping):
        return {key: _numbers_plain(entry) for key, entry in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class FoundLayout:
    """A layout, and what a person has to confirm about it."""

    layout: FileFormat = PLAIN
    questions: tuple[str, ...] = ()


def find_layout(path: Path) -> FoundLayout:
    """Return how a file is laid out, as far as it shows."""
    suffix = table_suffix(path)
    if not path.is_file() or suffix is None or suffix == ".parquet":
        return FoundLayout()  # Whoever reads it says what is wrong.
    if suffix in WORKBOOKS:
        return _sheet_layout(path)
    encoding, questions = _encoding(path)
    try:
        lines = text_lines(path, encoding, SAMPLED_LINES)
    except UnicodeError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    tabs = suffix.startswith(".tsv")
    delimiter = "\t" if tabs else _delimiter(lines)
    rows = _rows(lines, delimiter)
    header, noticed = _header_line(rows, "line(s)")
    marked = encoding in BYTE_ORDER_MARKS.values()
    layout = FileFormat(
        encoding=PLAIN.encoding if marked else encoding,
        delimiter=PLAIN.delimiter if tabs else delimiter,
        header=header,
    )
    named, renamed = _renamed(rows, layout)
    return FoundLayout(named, (*questions, *noticed, *renamed))


def _encoding(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the encoding of a text: by its mark, as UTF-8, else western, with a question."""
    decoder = codecs.getincrementaldecoder(PLAIN.encoding)()
    with opened(path) as stream:
        content = stream.read(BLOCK)
        for mark, encoding in BYTE_ORDER_MARKS.items():
            if content.startswith(mark):
                return encoding, ()
        try:
            while content:
                odd = content
                decoder.decode(content)
                content = stream.read(BLOCK)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            strange = b"\n".join(line for line in odd.splitlines() if not line.isascii())
            words = re.findall(r"[^\W\d_]+", strange.decode(WESTERN, "replace"))
            listed = shown(dict.fromkeys(repr(w) for w in words if not w.isascii()), cap=3)
            return WESTERN, (f"not UTF-8; read as {WESTERN}, such as {listed}: spelled right?",)
    return PLAIN.encoding, ()


def _rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Return the cells line by line; a quoted line break joins lines."""
    try:
        return list(csv.reader((f"{line}\n" for line in lines), delimiter=delimiter))
    except csv.Error:
        return [line.split(delimiter) for line in lines]


def _delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter under which most lines have equally many cells, and more than one."""

    def merit(delimiter: str) -> tuple[float, int]:
        widths = Counter(len(row) for row in _rows(lines, delimiter) if any(map(str.strip, row)))
        if not widths:
            return 0.0, 0
        # A column of words with a comma now and then is no table of two columns.
        width, count = max(widths.items(), key=lambda each: (each[1], each[0]))
        return (0.0, 0) if width == 1 else (round(count / widths.total(), 1), width)

    return max(DELIMITERS, key=merit)


def _header_line(rows: Sequence[Sequence[object]], what: str) -> tuple[int, tuple[str, ...]]:
    """Return the first line that is as wide as the table."""
    filled = [n for n, row in enumerate(rows) if any(str(cell).strip() for cell in row)]
    widths = Counter(len(rows[n]) for n in filled)
    width = max(widths, key=lambda each: (widths[each], each), default=0)
    first = next((n for n in filled if len(rows[n]) == width), 0)
    if not filled or first == filled[0]:
        return 1, ()
    return first + 1, (f"{first} {what} above the header are not read: right?",)


def _renamed(
    rows: Sequence[Sequence[object]], layout: FileFormat
) -> tuple[FileFormat, tuple[str, ...]]:
    """Return the layout with ``rename`` where columns lack a name of their own."""
    if len(rows) < layout.header:
        return layout, ()
    filled = [row for row in rows[layout.header - 1 :] if row]
    names = ["" if name is None else str(name).strip() for name in (filled[0] if filled else ())]
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    nameless = sum(not name for name in names)
    if not twice and not nameless:
        return layout, ()
    said = []
    if twice:
        said.append(f"{shown(map(repr, twice))} there twice: the later ones get a number")
    if nameless:
        said.append(f"{nameless} column(s) without a name are called column_1, column_2, …")
    return replace(layout, rename=True), tuple(said)


def _sheet_layout(path: Path) -> FoundLayout:
    """Return the sheet with the most cells, and where its header is."""
    names = sheet_names(path)
    sampled = {name: sheet_rows(path, name, SAMPLED_LINES) for name in names}
    best = max(names, key=lambda name: sum(map(len, sampled[name])))
    header, above = _header_line(sampled[best], "row(s)")
    layout = FileFormat(header=header, sheet=best if len(names) > 1 else None)
    others = [repr(name) for name in names if name != best]
    left = (f"the sheets {shown(others)} are not read: right?",) if others else ()
    named, renamed = _renamed(sampled[best], layout)
    return FoundLayout(named, (*left, *above, *renamed))


@dataclass(frozen=True)
class LabelGuess:
    """The outcome, why it is thought to be, and +1 or -1 per row."""

    label: Label
    reason: str
    favourable: Mask


@dataclass(frozen=True)
class _Pair:
    """An outcome of two values: the values, how they are read, and the rows as they read."""

    pair: tuple[str, str]
    reading: WordReading | None
    words: pd.Series


def guess_label(
    table: pd.DataFrame, column: str | None = None, favourable: str | None = None
) -> LabelGuess:
    """Return the outcome column and its favourable values, or what the user named of them."""
    if column is not None and column not in table:
        known = nearest(column, map(str, table.columns))
        raise DataError(f"there is no column {column!r} to be the label; {known}")
    chosen, reason = (column, "named by you") if column is not None else _label_column(table)
    found = _pair(table[chosen]) or _pair(table[chosen], strays=True)
    if found is None:
        return _by_threshold(chosen, table[chosen], reason)
    best = _better(chosen, found.pair) if favourable is None else favourable
    named = {folded(value): value for value in found.pair}
    if folded(best) not in named:
        known = nearest(best, found.pair)
        raise DataError(f"the label {chosen!r} never holds {best!r}; {known}")
    best = named[folded(best)]
    other = found.pair[1 - found.pair.index(best)]
    label = Label(chosen, _plain(best), unfavourable=_plain(other), reading=found.reading)
    text = f"{reason}; is {best!r} what people hope for, rather than {other!r}?"
    if found.reading is not None:
        held = Counter(map(str, texts(table[chosen]).dropna()))
        joined = [" = ".join(map(repr, sorted(of))) for of in by_form(held).values() if len(of) > 1]
        joined += [
            f"{w!r} = {shown(map(repr, more))}" for w, more in found.reading.spellings if more
        ]
        joined += [f"{word!r} is no value" for word in found.reading.missing_values]
        text += f" {'; '.join(joined)}" if joined else ""
    strange = found.words[found.words.notna() & ~found.words.isin(found.pair)]
    if len(strange):
        listed = shown(map(repr, sorted(set(map(str, strange)))))
        text += f" {len(strange)} row(s) hold {listed}, and are set aside"
    return LabelGuess(label, text, (found.words == best).to_numpy(np.bool_))


def _pair(values: pd.Series, strays: bool = False) -> _Pair | None:
    """Return an outcome of two values in any spellings, None where there are not two.

    With ``strays`` a few rows may hold something else, see ``STRAY``.
    """
    _, missing, strange = numbers(values)
    plain = not strange.any() and not missing.all()
    words = texts(values, numeric=plain)
    counts = Counter(map(str, words.dropna()))
    blank = () if plain else tuple(word for word in counts if folded(word) in MISSING_WORDS)
    forms = {form: of for form, of in by_form(counts).items() if not set(of) & set(blank)}
    totals = Counter({form: of.total() for form, of in forms.items()})
    two = sorted(form for form, _ in totals.most_common(2))
    others = totals.total() - sum(totals[form] for form in two)
    if len(two) == 2 and others <= (STRAY * totals.total() if strays else 0):
        pair = sorted(usual(forms[form]) for form in two)
        if plain:
            return _Pair((pair[0], pair[1]), None, words)
        reading = WordReading(fold=True, missing_values=blank)
    else:
        answers = None if plain else answer_reading(forms)
        if answers is None:
            return None
        reading = replace(answers, missing_values=blank)
        pair = [word for word, _ in reading.spellings]
    return _Pair((pair[0], pair[1]), reading, reading.read(values, pair))


def _label_column(table: pd.DataFrame) -> tuple[str, str]:
    open_columns = [str(c) for c in table.columns if not name_words(str(c)) & SENSITIVE]
    named = [c for c in open_columns if name_words(c) & OUTCOME]
    # "1" and "1.0" are two cells and one value, so a few more cells may still be two values.
    few = [c for c in open_columns if texts(table[c]).nunique() <= MOST_SPELLINGS]
    pairs = [c for c in few if _pair(table[c]) is not None]
    nearly = [c for c in few if c in named and _pair(table[c], strays=True) is not None]
    scored = [c for c in named if len(_distinct(_numbers(table[c])[0])) > 2]
    for columns, why in (
        ([c for c in pairs if c in named], "two values and a name that fits"),
        (nearly, "two values but for a few rows, and a name that fits"),
        (scored, "numbers and a name that fits"),
        (pairs, "the last column with two values"),
    ):
        if columns:
            return columns[-1], why
    raise DataError(
        "no column can be the outcome: none has two values or a name such as outcome or target; "
        "say which one with --label"
    )


def _numbers(values: pd.Series) -> tuple[Floats, NumberReading | None]:
    """Return an outcome as numbers and how they are read; no numbers if it holds anything else."""
    read, _, strange = numbers(values)
    if not strange.any():
        return read, None
    ways = number_ways(texts(values))[0]
    if len(ways) == 1:
        read, _, strange = ways[0].read(values)
    return (np.zeros(0), None) if strange.any() else (read, ways[0])


def _distinct(read: Floats) -> Floats:
    return np.unique(read[np.isfinite(read)])


def _better(column: str, pair: Sequence[str]) -> str:
    """Return the value people hope for: by the words, unless the name says that yes is bad."""
    yes_is_bad = bool(name_words(column) & UNFAVOURABLE_NAME)
    if all(is_number(word) for word in pair):
        ranked = sorted(pair, key=float)
        return ranked[0] if yes_is_bad else ranked[1]
    ranked = sorted(pair, key=lambda word: (word.lower() in GOOD) - (word.lower() in BAD))
    return ranked[0] if yes_is_bad and ranked[1].lower() in YES else ranked[1]


def _by_threshold(column: str, values: pd.Series, reason: str) -> LabelGuess:
    read, reading = _numbers(values)
    finite = _distinct(read)
    if len(finite) < 2:
        n_values = texts(values).nunique()
        raise DataError(
            f"the label {column!r} has {n_values} value(s); expected two, or numbers of which "
            "the schema says from where on they are favourable"
        )
    middle = float(np.median(read[np.isfinite(read)]))
    # The least value from the median on, but never the very least: someone must miss it.
    least = float(finite[1:][finite[1:] >= middle][0])
    text = (
        f"{reason}; which numbers do people hope for? "
        "at_least (here: the upper half) or at_most, and from where?"
    )
    return LabelGuess(Label(column, at_least=least, reading=reading), text, read >= least)


def _plain(word: str) -> str | int:
    """Return whole numbers as numbers, for a schema that reads well."""
    return int(word) if word.lstrip("-").isdecimal() and str(int(word)) == word else word


def guess_series(
    table: pd.DataFrame, columns: Sequence[str]
) -> tuple[Series, DateReading | None] | None:
    """Return the entity, the time and how it is read, if there are several rows per entity."""
    moments = [column for column in columns if name_words(column) & TIME]
    owners = [c for c in columns if name_words(c) & (IDENTIFIER | ENTITY) and c not in moments]
    for entity in owners:
        several = 2 <= texts(table[entity]).nunique() <= len(table) / TYPICAL_STEPS
        for time in moments if several else ():
            series, dates = Series(entity, time), guess_dates(texts(table[time]))
            reading = dates.dates[0] if dates is not None and len(dates.dates) == 1 else None
            if order_steps(table[entity], table[time], series, reading)[0] is not None:
                return series, None if reading == DateReading() else reading
    return None


def guess_id(table: pd.DataFrame, columns: Sequence[str]) -> str | None:
    """Return the column that names the rows, if there is one."""
    unique = [column for column in columns if _names_rows(table[column])]
    named = [column for column in unique if name_words(column) & (IDENTIFIER | ENTITY)]
    counting = [column for column in unique if counts_rows(table[column])]
    return next(iter(named + counting), None)


def _names_rows(values: pd.Series) -> bool:
    """Return whether every row has a value of its own that is no measurement."""
    words = texts(values)
    if words.isna().any() or words.duplicated().any() or len(words) < 2:
        return False
    read, _, strange = numbers(values)
    if not strange.all():
        return bool((np.isfinite(read) & (np.floor(read) == read)).all())
    return not number_ways(words)[0] and guess_dates(words) is None


def counts_rows(values: pd.Series) -> bool:
    """Return whether a column counts the rows, of which a few may be gone."""
    steps = np.diff(np.sort(numbers(values)[0]))
    return len(steps) > 0 and bool((steps >= 1.0).all()) and bool(steps.mean() <= 1.1)


@dataclass
class Roles:
    """Where each column belongs: one of these, by name, with the reason."""

    series: Series | None
    id: str | None
    sensitive: dict[str, str] = field(default_factory=dict)
    features: dict[str, Guess] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    reads: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = field(default_factory=dict)
    moment: str | None = None

    @classmethod
    def of(cls, table: pd.DataFrame, outcome: LabelGuess) -> Roles:
        """Return the roles of a table's columns beside its outcome."""
        rest = [column for column in table.columns if column != outcome.label.column]
        counted = [c for c in rest if _nameless(c) and counts_rows(table[c])]
        rest = [c for c in rest if c not in counted]
        series, moments = guess_series(table, rest) or (None, None)
        rest = [c for c in rest if series is None or c not in (series.entity, series.time)]
        roles = cls(series, None if series is not None else guess_id(table, rest))
        roles.left_out |= dict.fromkeys(counted, "row numbers, as a data frame's index is saved")
        if series is not None and moments is not None:
            roles.reads[series.time] = (moments.to_entry(), ())
        rest = [column for column in rest if column != roles.id]
        guesses = {column: guess_column(table[column]) for column in rest}
        roles._place_dates(table, guesses)
        groups = expanded_groups(table, rest)
        group_of = {column: group for group, members in groups.items() for column in members}
        for column in rest:
            if column in guesses:
                roles._place(column, table, guesses[column], group_of.get(column), outcome)
        roles._drop_clashes()
        return roles

    def _place_dates(self, table: pd.DataFrame, guesses: dict[str, Guess]) -> None:
        """Say what becomes of columns of dates; those that are done leave the guesses."""
        dated = {c: guesses.pop(c) for c in list(guesses) if guesses[c].dates}
        sure = {c: g.dates[0].dates(table[c]) for c, g in dated.items() if len(g.dates) == 1}
        # Dates without their moment are set aside: a column with many gaps is none.
        named = (c for c in sure if name_words(c) & MOMENT and not name_words(c) & BIRTH)
        moment = next((c for c in named if sure[c][1].mean() <= QUARANTINE), None)
        nothing = [pd.Timestamp(text) for text in DATE_CODES]
        ends = [found[~found.isin(nothing)].max() for found, _, _ in sure.values()]
        latest = max((end for end in ends if not pd.isna(end)), default=None)
        until = moment if moment is not None else None if latest is None else str(latest.date())
        used = False
        for column, guess in dated.items():
            born = bool(name_words(column) & BIRTH)
            entries = [_since(way, "age" if born else "days", until) for way in guess.dates]
            if column == moment:
                continue
            if len(entries) > 1 or until is None:
                example = next(str(word) for word in texts(table[column]).dropna())
                why = f"is the day or the month first, as in {example!r}? Every cell can be read "
                self.left_out[column] = why + "both ways: put one of these lines under features:"
                self.choices[column] = [(column, entry) for entry in entries]
            elif born:
                self.left_out[column] = "date of birth, sensitive by its name; as an age it reads"
                read = {"from": column} | entries[0]["read"]
                self.choices[column] = [("age", entries[0] | {"kind": "integer", "read": read})]
            else:
                asked = f"days up to {until}; or as: months, years, month, weekday"
                if moment is None:
                    asked = f"days up to {until}, the latest date: when was the table extracted? "
                    asked += "Or as: months, years, month, weekday"
                drafted = Guess(entries[0], (asked, *guess.reasons))
                guesses[column] = with_gaps(drafted, sure[column][1])
                used = used or moment is not None
        if moment is not None and used:
            reasons = ("the moment of the row", *dated[moment].reasons)
            self.moment, self.reads[moment] = moment, (dated[moment].dates[0].to_entry(), reasons)
        elif moment is not None:
            why = "the moment of the row: no feature; to split by time, name it under time: and say"
            self.left_out[moment] = f"{why} how it is read, read: {{{moment}: …}}"

    def _place(
        self,
        column: str,
        table: pd.DataFrame,
        guess: Guess,
        group: str | None,
        outcome: LabelGuess,
    ) -> None:
        """Put one column where it belongs."""
        if column in (ROW_ID, LABEL) or column.startswith(GROUP_PREFIX):
            self.left_out[column] = "the name is kept for the product's own tables: rename it"
        elif len(column) > LONGEST_NAME:
            self.left_out[column] = "the name is too long for a schema: rename it"
        elif name_words(column) & SENSITIVE and guess.entry:
            words = texts(table[column])
            groups = words.nunique()
            many = f"; {groups} groups are too many for an audit: band them" if groups > 12 else ""
            why = f"sensitive by its name: kept for audits, not read by the score{many}"
            self.sensitive[column] = why
            joined = spelling_reasons(by_form(Counter(map(str, words.dropna()))))
            if joined:
                self.reads[column] = (WordReading(fold=True).to_entry(), joined)
        elif not guess.entry:
            self.left_out[column] = "; ".join(guess.reasons)
            self.choices[column] = [(column, entry) for entry in guess.choices]
        elif gives_away(comparable(table, column, guess.entry), outcome.favourable):
            self.left_out[column] = "separates the outcome without an error: known only afterwards?"
        elif group is not None:
            entry = {"kind": "binary", "group": group}
            why = f"exactly one column of the group {group!r} is 1 in every row"
            self.features[column] = Guess(entry, (why,))
        else:
            self.features[column] = guess

    def _drop_clashes(self) -> None:
        """Leave out what would contradict itself: halves of groups, names taken by categories."""
        groups = [guess.entry.get("group") for guess in self.features.values()]
        taken = {
            f"{column}={category}"
            for column, guess in self.features.items()
            if guess.entry["kind"] == "onehot"
            for category in guess.entry["categories"]
        }
        for column, guess in list(self.features.items()):
            if column in taken:
                del self.features[column]
                self.left_out[column] = "the name is that of another column's category: rename it"
            group = guess.entry.get("group")
            if group is not None and (groups.count(group) < 2 or group in self.features):
                del guess.entry["group"]


def _nameless(column: str) -> bool:
    return column.startswith(("column_", "Unnamed:")) or column.lower() == "index"


def _since(way: DateReading, becomes: Becomes, until: str | None) -> dict[str, Any]:
    """Return the entry of a date as a feature: an age, or the days up to a moment."""
    reading = replace(way, becomes=becomes, until=until or "…")
    return {"kind": "numeric", "min": 0, "read": reading.to_entry()}


def comparable(table: pd.DataFrame, column: str, entry: Mapping[str, Any]) -> pd.Series:
    """Return a column as numbers where its entry says that it holds numbers, else as text."""
    categories = tuple(entry.get("categories", ()))
    reading = read_feature(entry.get("read"), entry["kind"], categories, column)
    if isinstance(reading, DateReading):
        return pd.Series(reading.read(table[column], until_dates(table, reading))[0])
    if isinstance(reading, WordReading):
        return reading.read(table[column], categories).reset_index(drop=True)
    if entry["kind"] in ("numeric", "integer"):
        return pd.Series((reading or NumberReading()).read(table[column])[0])
    return texts(table[column])
