"""Five tables as people extract them, each beside the table a careful person would make of it.

Currencies of three locales, dates, spellings, two per cent of broken lines, and cells that are
missing at random or more often where the person would look worse.
"""

from __future__ import annotations

import csv
import gzip
import io
import lzma
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd

ROWS = 700
BROKEN = 0.02
Content = dict[str, Any]


@dataclass(frozen=True)
class Extract:
    """A file, its rows made by hand, and what its owner answers to the draft of its schema."""

    suffix: str
    content: bytes
    by_hand: pd.DataFrame
    label: str
    favourable: str
    broken: int
    answer: Callable[[Content], None]

    def write(self, folder: Path, name: str) -> Path:
        path = folder / f"{name}{self.suffix}"
        path.write_bytes(self.content)
        return path


@dataclass
class _Columns:
    """What is written and what is meant, column by column."""

    n: int
    seed: int
    rng: np.random.Generator = field(init=False)
    written: dict[str, list[Any]] = field(default_factory=dict)
    meant: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def add(self, name: str, meant: Sequence[Any], write: Callable[[Any], Any] = str) -> None:
        self.meant[name] = list(meant)
        self.written[name] = [write(value) for value in meant]

    def lose(self, name: str, chance: Any, cell: Any = "") -> None:
        """Leave cells out, or write what stands for no value."""
        for row in np.flatnonzero(self.rng.random(self.n) < chance):
            self.written[name][row] = cell
            self.meant[name][row] = None

    def one_of(self, *spell: Callable[[str], str]) -> Callable[[str], str]:
        return lambda word: spell[int(self.rng.integers(len(spell)))](word)

    def days(self, first: str, span: int) -> pd.DatetimeIndex:
        return pd.Timestamp(first) + pd.to_timedelta(self.rng.integers(0, span, self.n), unit="D")

    def outcome(self, name: str, merit: np.ndarray, good: str, bad: str) -> None:
        """Add the outcome in several spellings of two words."""
        fine = merit + self.rng.logistic(0, 0.3, self.n) > np.median(merit)
        spell = self.one_of(str, str.lower, str.upper, lambda word: word[0])
        self.add(name, np.where(fine, good, bad), spell)

    def text(self, delimiter: str, above: Sequence[str] = ()) -> tuple[str, int]:
        """Return the file as text, with lines among the rows that are none, and their number."""
        frame = pd.DataFrame(self.written)
        records = [_record(row, delimiter) for row in [list(frame), *frame.to_numpy().tolist()]]
        broken = int(BROKEN * self.n)
        for place in np.sort(self.rng.integers(1, self.n, broken))[::-1]:
            wrong = (_record(["x"] * (len(frame.columns) + 1), delimiter), f"half{delimiter}row")
            records.insert(int(place) + 1, wrong[int(self.rng.integers(2))])
        return "\n".join([*above, *records]) + "\n", broken

    def by_hand(self, *others: str) -> pd.DataFrame:
        return pd.DataFrame({n: cells for n, cells in self.meant.items() if n not in others})


def _record(cells: Sequence[Any], delimiter: str) -> str:
    line = io.StringIO()
    csv.writer(line, delimiter=delimiter, lineterminator="").writerow(cells)
    return line.getvalue()


def european(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def german_loans(n: int = ROWS, seed: int = 0) -> Extract:
    """Semicolons, cp1252, euros with a decimal comma, days first, two lines above the header."""
    made = _Columns(n, seed)
    rng = made.rng
    income, ratio = rng.lognormal(10.3, 0.4, n).round(2), rng.uniform(1, 60, n).round(1)
    applied, since = made.days("2023-01-01", 700), rng.integers(40, 4000, n)
    opened = applied - pd.to_timedelta(since, unit="D")
    made.add("", range(n))
    made.add("Kunde", [f"K{row:05}" for row in range(n)])
    made.add("Einkommen", income, lambda v: f"{european(v)}\u00a0€")
    made.add("Schuldenquote", ratio, lambda v: f"{v:.1f} %".replace(".", ","))
    made.add("Rate", rng.integers(1000, 9000, n), lambda v: f"{v:,}".replace(",", "."))
    made.add("Konto seit", since)
    made.written["Konto seit"] = list(opened.strftime("%d.%m.%Y"))
    made.add("Antragsdatum", applied.strftime("%d.%m.%Y"))
    spell = made.one_of(str, str, str.upper, lambda word: f" {word.lower()}")
    made.add("Region", rng.choice(["Nord", "Süd", "Ost"], n), spell)
    made.outcome("bezahlt", np.log(income) * 2 - ratio / 20 + since / 4000, "Ja", "Nein")
    made.add("Notiz", [f"Gespräch Nr. {row}; am Telefon" for row in range(n)])
    made.lose("Einkommen", 0.03)
    text, broken = made.text(";", ["Auszug vom 31.12.2024", ""])

    def answer(content: Content) -> None:
        content["ignore"].remove("Rate")
        content["features"]["Rate"] = {
            "kind": "integer", "change": "both", "min": 0,
            "read": {"thousands": ".", "decimal": ","},
        }  # fmt: skip

    hand = made.by_hand("", "Antragsdatum", "Notiz")
    return Extract(".csv", text.encode("cp1252"), hand, "bezahlt", "ja", broken, answer)


def american_cards(n: int = ROWS, seed: int = 1) -> Extract:
    """Dollars, percent, accounting negatives, months first, a code for no value, line breaks."""
    made = _Columns(n, seed)
    rng = made.rng
    income, change = rng.lognormal(10.9, 0.5, n).round(2), rng.normal(0, 3000, n).round(2)
    used, late = rng.uniform(0, 100, n).round(1), rng.integers(0, 20, n)
    opened = made.days("2005-01-01", 5000)
    made.add("Customer ID", [f"C-{row}" for row in range(n)])
    made.add("Annual Income", income, lambda v: f"${v:,.2f}")
    made.add("Balance Change", change, lambda v: f"({-v:,.2f})" if v < 0 else f"{v:,.2f}")
    made.add("Utilization", used, lambda v: f"{v:.1f}%")
    made.add("Months Late", late)
    made.add("Opened", (pd.Timestamp("2024-06-30") - opened).days)
    made.written["Opened"] = list(opened.strftime("%m/%d/%Y"))
    spell = made.one_of(str, str.lower, lambda word: word.replace(" ", "  "))
    made.add("Employment", rng.choice(["Full Time", "Part Time", "Without"], n), spell)
    made.add("Comment", [f'said "fine", then\nhung up {row}' for row in range(n)])
    made.outcome("Repaid", np.log(income) + change / 3000 - used / 30 - late / 8, "Yes", "No")
    made.lose("Months Late", np.where(late > 14, 0.3, 0.0), "-9")
    text, broken = made.text(",")

    def answer(content: Content) -> None:
        content["features"]["Months Late"] |= {
            "min": 0, "missing": "median", "read": {"missing_values": [-9]},
        }  # fmt: skip
        content["features"]["Opened"]["read"]["until"] = "2024-06-30"

    hand = made.by_hand("Comment")
    return Extract(".csv", text.encode("utf-8-sig"), hand, "Repaid", "Yes", broken, answer)


def swiss_leases(n: int = ROWS, seed: int = 2) -> Extract:
    """A workbook: francs as texts and as numbers, real dates, notes on another sheet."""
    made = _Columns(n, seed)
    rng = made.rng
    price, term = rng.lognormal(9.5, 0.6, n).round(2), rng.choice([12, 24, 36, 48], n)
    signed = made.days("2022-01-01", 500)
    born = signed - pd.to_timedelta(rng.integers(7000, 25_000, n), unit="D")
    made.add("Vertrag", [f"V/{row}" for row in range(n)])
    francs = made.one_of(lambda v: float(v), lambda v: f"CHF {float(v):,.2f}".replace(",", "’"))
    made.add("Preis", price, lambda v: francs(v))
    made.add("Dauer", term, lambda v: f"{v} Monate")
    apart = made.one_of(str, str.upper, lambda word: unicodedata.normalize("NFD", word))
    made.add("Kanton", rng.choice(["Zürich", "Genève", "Ticino"], n), apart)
    made.add("Antrag", signed, lambda day: day.to_pydatetime())
    made.add("Kunde seit", (signed - born).days)
    made.written["Kunde seit"] = [day.to_pydatetime() for day in born]
    made.outcome("Ok", -np.log(price) + term / 30, "Ja", "Nein")
    made.lose("Preis", 0.02, None)
    book = openpyxl.Workbook()
    book.worksheets[0].title = "Notizen"
    book.worksheets[0].append(["nur für intern"])
    sheet = book.create_sheet("Daten")
    frame = pd.DataFrame(made.written, dtype=object)
    for row in [["Leasing"], [], list(frame), *frame.to_numpy().tolist()]:
        sheet.append(row)
    broken = int(BROKEN * n)
    for _ in range(broken):
        sheet.append(["x"] * (len(frame.columns) + 2))
    file = io.BytesIO()
    book.save(file)

    def answer(content: Content) -> None:
        content["features"]["Dauer"]["change"] = "both"

    hand = made.by_hand("Antrag")
    return Extract(".xlsx", file.getvalue(), hand, "Ok", "ja", broken, answer)


def british_admissions(n: int = ROWS, seed: int = 3) -> Extract:
    """Packed tabs, pounds, months and years in one column, names of months, a tail of towns."""
    made = _Columns(n, seed)
    rng = made.rng
    fee, experience = rng.lognormal(8, 0.5, n).round(), rng.integers(1, 60, n)
    town = rng.choice([f"Town {k}" for k in range(40)], n, p=[0.4, 0.3, 0.2, *[0.1 / 37] * 37])
    submitted, finished = made.days("2023-03-01", 200), rng.integers(20, 2000, n)
    left = submitted - pd.to_timedelta(finished, unit="D")
    made.add("applicant", [f"a{row:04}" for row in range(n)])
    made.add("fee", fee, lambda v: f"£{v:,.0f}.00")
    made.add("experience", experience,
             lambda v: f"{v // 12} years" if v % 12 == 0 else f"{v} months")  # fmt: skip
    made.add("town", town, made.one_of(str, str.upper))
    made.add("submitted", submitted.strftime("%d %b %Y"))
    made.add("left school", finished)
    made.written["left school"] = list(left.strftime("%d %B %Y"))
    made.outcome("admitted", experience / 20 + np.log(fee) - finished / 1500, "Yes", "No")
    made.lose("experience", 0.04, "n/a")
    made.meant["town"] = [w if w in ("Town 0", "Town 1", "Town 2") else "other" for w in town]
    text, broken = made.text("\t")

    def answer(content: Content) -> None:
        content["features"]["experience"]["change"] = "up"

    hand = made.by_hand("submitted")
    return Extract(".tsv.gz", gzip.compress(text.encode()), hand, "admitted", "yes", broken, answer)


def hospital_stays(n: int = ROWS, seed: int = 4) -> Extract:
    """UTF-16, packed otherwise, bars, numbers missing where they would be high, ISO dates."""
    made = _Columns(n, seed)
    rng = made.rng
    stay, weight = rng.integers(1, 30, n), rng.normal(75, 12, n).round(1)
    visits, pressure = rng.integers(0, 15, n), rng.normal(130, 15, n).round()
    made.add("case", [f"{row:06x}-z" for row in range(n)])
    made.add("length of stay", stay, lambda v: f"{v} days" if v > 1 else "1 day")
    made.add("weight", weight, lambda v: f"{v:.1f} kg")
    made.add("visits", visits)
    made.add("pressure", pressure, lambda v: f"{v:.0f} mm Hg")
    made.add("diabetic", rng.choice(["yes", "no"], n), made.one_of(str, str.title, lambda w: w[0]))
    made.add("ward", rng.choice(["A – Nord", "B – Süd", "C – Ost"], n), made.one_of(str, str.upper))
    made.outcome("recovered", -stay / 10 - visits / 5 - (pressure - 130) / 20, "true", "false")
    made.lose("pressure", np.where(pressure > 140, 0.25, 0.01), "unknown")
    text, broken = made.text("|")

    def answer(content: Content) -> None:
        content["features"]["pressure"]["read"]["missing_values"] = ["unknown"]
        content["features"]["pressure"]["missing"] = "median"

    packed = lzma.compress(text.encode("utf-16"))
    return Extract(".csv.xz", packed, made.by_hand(), "recovered", "true", broken, answer)


EXTRACTS: dict[str, Callable[..., Extract]] = {
    "german_loans": german_loans,
    "american_cards": american_cards,
    "swiss_leases": swiss_leases,
    "british_admissions": british_admissions,
    "hospital_stays": hospital_stays,
}
