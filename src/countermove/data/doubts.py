"""What is allowed in a table but rarely meant: leaks, groups that are protected, columns of no use.

Each doubt is a sentence that says what was found and what to do. None of them stops a run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from itertools import combinations

import numpy as np
import pandas as pd

from countermove._types import Floats, Mask
from countermove.data.parsing import numbers
from countermove.data.reading import DateReading
from countermove.data.schema import LABEL, Schema
from countermove.data.splits import Hashes, repeated
from countermove.errors import shown

NEARLY_CONSTANT = 0.99
"""Share of the rows from which one value makes a feature all but constant."""

RARE_OUTCOME = 0.05
"""Share of the rarer outcome below which accuracy says little."""

CHANCE = 1e-4
"""What a shuffled outcome would show more often than this proves nothing."""

ROWS_PER_WORD = 5
"""Words that are rarer than this on average could separate anything."""

LEAK = 0.95
"""AUC of one column from which it is doubted that it was known before the outcome."""

COPY = 0.999
"""Correlation of two columns from which they say the same."""

PROXY = 0.8
"""Association with a sensitive column (0 to 1) from which a feature stands in for it."""

DIFFERENT = 0.1
"""Largest distance of two distribution functions from which they differ enough to matter."""

FEWEST = 20
"""Rows of each outcome below which one column's separation proves nothing."""

CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 9999999.0)
"""Numbers that often stand for no value."""

LOOKED_AT = 100_000
"""Rows that are compared; of a larger table every so many-th."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SENSITIVE = _words(
    """
    age ages sex gender race ethnicity ethnic religion religious nationality national citizen
    citizenship foreign foreigner immigrant migrant disability disabled marital marriage married
    single divorced widowed pregnant pregnancy birth birthday birthdate dob orientation colour
    color caste veteran language white black asian hispanic latino latina male female man woman
    muslim christian jewish hindu alter geschlecht rasse ethnie konfession nationalität
    nationalitaet behinderung staatsangehörigkeit familienstand ledig verheiratet geschieden
    verwitwet schwanger geburtsdatum geburtsjahr mann frau männlich weiblich herkunft âge sexe
    nationalité handicap matrimonial célibataire marié divorcé enceinte naissance homme femme edad
    sexo género genero raza etnia religión nacionalidad discapacidad soltero casado divorciado
    embarazada nacimiento hombre mujer idade gênero raça religião nacionalidade deficiência età
    sesso genere razza religione nazionalità cittadinanza disabilità sposato leeftijd geslacht ras
    geloof nationaliteit wiek płeć narodowość wyznanie staatsangehoerigkeit nationalite raca
    nazionalita plec
    """
)
"""Words in the names of columns that tell protected groups apart."""


def doubts(
    table: pd.DataFrame,
    schema: Schema,
    splits: Mapping[str, pd.DataFrame] | None = None,
    late: Mapping[str, int] | None = None,
) -> Iterator[str]:
    """Yield what is allowed in a typed table but rarely meant, one sentence each.

    Parameters
    ----------
    table
        The typed rows.
    schema
        What their columns mean.
    splits
        The same rows as a run divides them, the training rows first; what differs between
        them is then said too.
    late
        By feature, how many of its dates lie after the outcome's (`dated_after`).
    """
    if all(feature.change == "immutable" for feature in schema.features):
        yield (
            "nobody can change anything: every feature is immutable, so no one will move and no "
            "refused person has recourse; set `change:` where people can act"
        )
    seen = looked_at(table)
    favourable = (table[LABEL] == 1).to_numpy(np.bool_)
    rare = float(min(favourable.mean(), 1 - favourable.mean()))
    if rare < RARE_OUTCOME:
        yield (
            f"the rarer outcome is that of {rare:.1%} of the rows: a rule that always says the "
            f"other is right in {1 - rare:.1%}; consider `--params ingest.balance=true`"
        )
    yield from _nearly_constant(table, schema)
    yield from _codes(table, schema)
    yield from _leaks(table, seen, schema)
    yield from _late(table, schema, late or {})
    yield from _protected(seen, schema)
    yield from _copies(seen, schema)
    yield from _numbered(table, schema)
    yield from _alike(table, schema)
    yield from _shifted(seen, schema, splits)


def looked_at(table: pd.DataFrame) -> pd.DataFrame:
    """Return so many rows of a table that looking at them takes no time."""
    return table.iloc[:: max(1, -(-len(table) // LOOKED_AT))].reset_index(drop=True)


def _leaks(table: pd.DataFrame, seen: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield the columns that know the outcome too well."""
    favourable, good = ((part[LABEL] == 1).to_numpy(np.bool_) for part in (table, seen))
    for feature in schema.features:
        name, area = feature.name, auc(seen[feature.name], good)
        if gives_away(table[name], favourable):
            yield (
                f"column {name!r} separates the outcomes without an error: was it "
                "recorded afterwards? If so, move it to `ignore:`"
            )
        elif area >= LEAK:
            yield (
                f"column {name!r} alone tells the outcomes apart with an AUC of {area:.3f}: was it "
                "recorded afterwards, or made from the outcome? If so, move it to `ignore:`"
            )
        elif feature.missing is not None and _filled_for_one(table[name], favourable):
            yield (
                f"column {name!r} is filled for one outcome only: was it recorded afterwards? If "
                "so, move it to `ignore:`"
            )


def auc(values: pd.Series, favourable: Mask) -> float:
    """Return how well one column tells the outcomes apart, from 0.5 to 1; 0.5 if unknown.

    Words are read as the share of favourable outcomes among the other half of the rows.
    """
    present = values.notna().to_numpy(np.bool_)
    cells, good = values[present], favourable[present]
    if not pd.api.types.is_numeric_dtype(cells.dtype):
        learned = np.arange(len(cells)) % 2 == 0
        shares = pd.Series(good[learned]).groupby(cells[learned].to_numpy(object)).mean()
        cells, good = cells[~learned].map(shares), good[~learned]
        known = cells.notna().to_numpy(np.bool_)
        cells, good = cells[known], good[known]
    high = int(good.sum())
    if min(high, len(good) - high) < FEWEST:
        return 0.5
    ranks = cells.rank().to_numpy(np.float64)
    area = (ranks[good].sum() - high * (high + 1) / 2) / (high * (len(good) - high))
    return float(max(area, 1 - area))


def _filled_for_one(values: pd.Series, favourable: Mask) -> bool:
    """Return whether only rows of one outcome have a value, beyond chance."""
    there = favourable[values.notna().to_numpy(np.bool_)]
    share = float(favourable.mean())
    if not len(there) or there.any() != there.all():
        return False
    alone = share if there.all() else 1 - share
    return alone < 1 and len(there) * math.log(max(alone, 1e-300)) < math.log(CHANCE)


def _late(table: pd.DataFrame, schema: Schema, late: Mapping[str, int]) -> Iterator[str]:
    """Yield dates that lie after the outcome, or after the moment up to which is counted."""
    for feature in schema.features:
        reading, count, moment = feature.reading, late.get(feature.name, 0), ""
        if count:
            moment = f"{schema.outcome_date!r}"
        elif isinstance(reading, DateReading) and reading.until is not None:
            values = pd.to_numeric(table[feature.name], errors="coerce")
            count, moment = int((values < 0).sum()), f"{reading.until!r}, up to which is counted"
        if count:
            yield (
                f"column {feature.name!r}: {count} of {len(table)} date(s) lie after {moment}; was "
                "it recorded after the outcome? If so, move it to `ignore:`"
            )


def dated_after(cells: pd.DataFrame, schema: Schema) -> dict[str, int]:
    """Return how many dates of each feature lie on a later day than the row's outcome.

    Parameters
    ----------
    cells
        The table under the schema's names, as its cells came.
    schema
        Names the day of the outcome (`label.date`), else the time that splits the rows. Features
        without a later date are left out; so are all if there is no such day.
    """
    dated = [f for f in schema.observed if isinstance(f.reading, DateReading)]
    column = schema.outcome_date
    if not dated or column is None or column not in cells or schema.series is not None:
        return {}
    if np.isfinite(numbers(cells[column])[0]).all():
        return {}  # rows are split by a number, which is no day
    own = schema.reading_of(column)
    judged = (own if isinstance(own, DateReading) else DateReading()).dates(cells[column])[0]
    found = {}
    for feature in dated:
        if isinstance(feature.reading, DateReading) and feature.column != column:
            moments = feature.reading.dates(cells[feature.name])[0]
            found[feature.name] = int((moments.dt.normalize() > judged.dt.normalize()).sum())
    return {name: count for name, count in found.items() if count}


def _protected(seen: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield the features that name a protected group, or stand in for a declared one."""
    found = protected_features(seen, schema)
    by_name = [name for name, groups in found.items() if not groups]
    if by_name:
        yield (
            f"{shown(map(repr, by_name))}: by the name a protected group, and the score reads it; "
            "list it under `sensitive:`, or take it out of the features"
        )
    for name, groups in found.items():
        for group, strength in groups.items():
            if group != name:
                yield (
                    f"column {name!r} stands in for the sensitive {group!r} (association "
                    f"{strength:.2f}): whoever reads the one reads the other"
                )


def protected_features(table: pd.DataFrame, schema: Schema) -> dict[str, dict[str, float]]:
    """Return the features that are protected, each with the sensitive columns it stands in for.

    A declared one stands in for itself; one that is protected by its name alone for none.
    """
    found: dict[str, dict[str, float]] = {}
    for name in (feature.name for feature in schema.features):
        if name in schema.sensitive:
            found[name] = {name: 1.0}
        elif name_words(name) & SENSITIVE:
            found[name] = {}
        else:
            ties = {group: association(table[name], table[group]) for group in schema.sensitive}
            near = {group: strength for group, strength in ties.items() if strength >= PROXY}
            found |= {name: near} if near else {}
    return found


def association(values: pd.Series, group: pd.Series) -> float:
    """Return how much of a column a grouping explains, 0 to 1: correlation ratio or Cramér's V."""
    both = values.notna().to_numpy(np.bool_) & group.notna().to_numpy(np.bool_)
    cells, codes = values[both], pd.factorize(group[both])[0]
    if len(cells) < FEWEST or codes.max(initial=0) == 0 or codes.max() > len(cells) / ROWS_PER_WORD:
        return 0.0
    if pd.api.types.is_numeric_dtype(cells.dtype):
        numbers = cells.to_numpy(np.float64)
        means = np.bincount(codes, numbers) / np.bincount(codes)
        spread = numbers.var()
        return float(np.sqrt(means[codes].var() / spread)) if spread else 0.0
    counts = pd.crosstab(codes, cells.to_numpy(object)).to_numpy(np.float64)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    square = float(((counts - expected) ** 2 / expected).sum()) / counts.sum()
    return math.sqrt(square / max(min(counts.shape) - 1, 1))


def _copies(seen: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield pairs of columns that say the same."""
    usable = [f for f in schema.features if f.group is None]
    numbers = [f.name for f in usable if not f.categorical]
    with np.errstate(invalid="ignore", divide="ignore"):  # A constant column correlates with none.
        matrix = np.abs(seen[numbers].corr().fillna(0.0).to_numpy())
    for i, j in np.argwhere(np.triu(matrix, 1) >= COPY).tolist():
        yield _said_twice(numbers[i], numbers[j])
    codes = {f.name: pd.factorize(seen[f.name])[0] for f in usable if f.categorical}
    for one, other in combinations(codes, 2):
        if len(seen) and np.array_equal(codes[one], codes[other]):
            yield _said_twice(one, other)


def _said_twice(one: str, other: str) -> str:
    return f"columns {one!r} and {other!r} say the same; keep one, and move the other to `ignore:`"


def _numbered(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield the features that number the rows."""
    for feature in schema.features:
        if feature.kind in ("integer", "numeric") and len(table) >= FEWEST:
            values = table[feature.name].to_numpy(np.float64)
            whole = np.isfinite(values).all() and (np.floor(values) == values).all()
            dense = whole and np.ptp(values) < 2 * len(values)
            if dense and len(np.unique(values)) == len(values):
                yield (
                    f"column {feature.name!r} is different in every row and counts through: an "
                    "id is no feature; name it under `id:`, or move it to `ignore:`"
                )


def _shifted(
    seen: pd.DataFrame, schema: Schema, splits: Mapping[str, pd.DataFrame] | None
) -> Iterator[str]:
    """Yield the columns whose distribution differs between splits, or between months."""
    parts = list((splits or {}).items())
    for name, part in parts[1:]:
        found = [f.name for f in schema.features if _differ(parts[0][1][f.name], part[f.name])]
        if found:
            yield (
                f"{shown(map(repr, found))} differ(s) between the rows of {parts[0][0]} and of "
                f"{name}: what is learned may not hold there"
            )
    if schema.time is None or not pd.api.types.is_datetime64_any_dtype(seen[schema.time].dtype):
        return
    months = seen[schema.time].dt.tz_localize(None).dt.to_period("M")
    first, last = (seen[(months == end).to_numpy()] for end in (months.min(), months.max()))
    moved = [f.name for f in schema.features if _differ(first[f.name], last[f.name])]
    if months.min() < months.max() and moved:
        yield f"{shown(map(repr, moved))} differ(s) between {months.min()} and {months.max()}"


def _differ(one: pd.Series, other: pd.Series) -> bool:
    """Return whether two samples differ by more than chance, and by enough to matter."""
    one, other = one.dropna(), other.dropna()
    if min(len(one), len(other)) < FEWEST:
        return False
    if pd.api.types.is_numeric_dtype(one.dtype):
        values = np.sort(np.concatenate([one.to_numpy(np.float64), other.to_numpy(np.float64)]))
        distance, events = float(np.abs(_reached(one, values) - _reached(other, values)).max()), 1
    else:
        shares = (sample.value_counts(normalize=True) for sample in (one, other))
        apart = next(shares).sub(next(shares), fill_value=0.0).abs()
        distance, events = float(apart.sum()) / 2, len(apart)
    # At most so likely if nothing differs: Dvoretzky, Kiefer and Wolfowitz; for categories
    # Hoeffding, for each of the 2^k sets of them.
    size = len(one) * len(other) / (len(one) + len(other))
    chance = (events + 1) * math.log(2.0) - 2.0 * size * distance**2
    return distance >= DIFFERENT and chance < math.log(CHANCE)


def _reached(sample: pd.Series, values: Floats) -> Floats:
    ordered = np.sort(sample.to_numpy(np.float64))
    return np.searchsorted(ordered, values, side="right") / len(ordered)


def _codes(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    """Yield the numbers that probably stand for no value."""
    for feature in schema.features:
        if feature.kind in ("numeric", "integer") and not isinstance(feature.reading, DateReading):
            values = table[feature.name].to_numpy(np.float64)
            for code, rows in suspected_codes(values).items():
                yield (
                    f"column {feature.name!r}: {code:g} in {rows} row(s) lies far from all other "
                    "values; if it stands for no value, say so: "
                    f"`read: {{missing_values: [{code:g}]}}`"
                )


def suspected_codes(values: Floats) -> dict[float, int]:
    """Return numbers that often stand for no value and lie far from all others, with their rows.

    Far is more than half of what the others span; a negative code among others that are all
    positive or 0 is suspected wherever it stands, if several rows hold it.
    """
    finite = values[np.isfinite(values)]
    rest = finite[~np.isin(finite, CODES)]
    if len(np.unique(rest)) < 3:
        return {}
    low, high = float(rest.min()), float(rest.max())
    found = {}
    for code in CODES:
        rows = int((finite == code).sum())
        far = max(low - code, code - high) > (high - low) / 2
        if rows and (far or (rows > 1 and code < 0 <= low)):
            found[code] = rows
    return found


def _nearly_constant(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    for feature in schema.features:
        counts = table[feature.name].value_counts()
        if counts.empty:
            yield f"column {feature.name!r} has no value in any row: move it to `ignore:`"
        elif counts.iloc[0] >= NEARLY_CONSTANT * len(table):
            others = len(table) - int(counts.iloc[0])
            yield (
                f"column {feature.name!r} is nearly constant: all but {others} row(s) hold "
                f"{counts.index[0]!s}"
            )


def _alike(table: pd.DataFrame, schema: Schema) -> Iterator[str]:
    alike, split = equal_rows(feature_hashes(table, schema), (table[LABEL] == 1).to_numpy())
    if alike:
        yield (
            f"{alike} rows have the same features as another row, {split} of them with "
            f"differing outcomes; {_placed(schema)}"
        )


def feature_hashes(table: pd.DataFrame, schema: Schema) -> Hashes:
    """Return a number per typed row that equal features share."""
    features = table[[feature.name for feature in schema.features]]
    return pd.util.hash_pandas_object(features, index=False).to_numpy().astype(np.uint64)


def equal_rows(hashes: Hashes, favourable: Mask) -> tuple[int, int]:
    """Return how many rows have the features of another row, and how many of them differ from it.

    Parameters
    ----------
    hashes
        Of the features of each row (`feature_hashes`).
    favourable
        The outcome of each row.
    """
    alike = repeated(hashes)
    groups = pd.factorize(hashes[alike])[0]
    good, rows = np.bincount(groups, favourable[alike]), np.bincount(groups)
    both = (good > 0) & (good < rows)
    return int(alike.sum()), int(rows[both].sum())


def _placed(schema: Schema) -> str:
    if schema.group_by is not None:
        return f"rows of one {schema.group_by!r} stay in one split"
    return (
        "each is placed by itself: if rows are of one person, name the person's column under "
        "`group_by:`"
    )


def gives_away(values: pd.Series, favourable: Mask) -> bool:
    """Return whether a column separates the two outcomes without an error, beyond chance."""
    # Numbers separate by one threshold, words by their value. Under a shuffled outcome, n rows
    # with k of the rarer outcome are separated by a threshold with probability 2 / (n choose k).
    present = values.notna().to_numpy(np.bool_)
    good = favourable[present]
    n, rare = len(good), int(min(good.sum(), (~good).sum()))
    if not rare or math.log(2) - _log_binomial(n, rare) > math.log(CHANCE):
        return False
    if not pd.api.types.is_numeric_dtype(values.dtype):
        words = values[present]
        pure = pd.Series(good).groupby(words.to_numpy(object)).nunique().max() == 1
        return bool(pure) and words.nunique() * ROWS_PER_WORD <= n
    numbers = values[present].to_numpy(np.float64)
    high, low = numbers[good], numbers[~good]
    return bool(low.max() < high.min() or high.max() < low.min())


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def name_words(name: str) -> frozenset[str]:
    """Return the words of a column's name, in lower case."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.lower() for word in re.findall(r"[^\W\d_]+", spaced))
