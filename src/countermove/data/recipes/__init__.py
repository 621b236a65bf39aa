"""From the layout in which a table was published to the columns its schema names.

A recipe keeps the order of the rows, checks the codes it translates, and may offer
more columns than a schema picks. One that leaves rows out says so in its data sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from countermove.data.recipes import embedded, fetched
from countermove.data.schema import Schema, value_text
from countermove.errors import SchemaError, nearest

__all__ = ["RECIPES", "apply_recipe", "outcome_columns", "raw_columns"]


@dataclass(frozen=True)
class CleaningRecipe:
    """What a published layout must hold, how it is read, and which of its columns are outcomes."""

    columns: tuple[str, ...]
    apply: Callable[[pd.DataFrame, str], pd.DataFrame]
    # Each with a value it may take: applicants have no outcome yet, and the recipe reads one.
    outcome: Mapping[str, str]


RECIPES: Mapping[str, CleaningRecipe] = {
    "adult": CleaningRecipe(fetched.ADULT_COLUMNS, fetched.adult, {"income": ">50K"}),
    "compas": CleaningRecipe(
        fetched.COMPAS_COLUMNS, fetched.compas, {"is_recid": "0", "two_year_recid": "0"}
    ),
    "credit": CleaningRecipe(
        embedded.CREDIT_COLUMNS, embedded.credit, {"default payment next month": "0"}
    ),
    "digits": CleaningRecipe(embedded.DIGITS_COLUMNS, embedded.digits, {"digit": "0"}),
    "german": CleaningRecipe(embedded.GERMAN_COLUMNS, embedded.german, {"credit_risk": "1"}),
    "give-me-some-credit": CleaningRecipe(
        fetched.GMSC_COLUMNS, fetched.give_me_some_credit, {"SeriousDlqin2yrs": "0"}
    ),
    "iris": CleaningRecipe(embedded.IRIS_COLUMNS, embedded.iris, {"species": "setosa"}),
    "loanapp": CleaningRecipe(fetched.LOANAPP_COLUMNS, fetched.loanapp, {"approve": "1"}),
    "mnist-5k": CleaningRecipe(fetched.MNIST_COLUMNS, fetched.mnist, {"digit": "0"}),
}


def raw_columns(schema: Schema) -> tuple[str, ...]:
    """Return the columns the raw table must hold: the recipe's, else the schema's."""
    if schema.cleaning is None:
        return schema.raw_columns
    return RECIPES[schema.cleaning].columns


def outcome_columns(schema: Schema) -> dict[str, str]:
    """Return the raw columns that hold the outcome, each with some value it may take."""
    if schema.cleaning is not None:
        return dict(RECIPES[schema.cleaning].outcome)
    label = schema.label
    rule = (label.favourable, label.at_least, label.at_most)
    return {label.column: value_text(next(value for value in rule if value is not None))}


def apply_recipe(raw: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the columns the schema names, for the rows the recipe keeps."""
    if schema.cleaning is None:
        return raw[[column for column in schema.raw_columns if column in raw]]
    offered = RECIPES[schema.cleaning].apply(raw, schema.name)
    for column in schema.raw_columns:
        if column not in offered:
            raise SchemaError(
                f"schema {schema.name!r}: the recipe {schema.cleaning!r} offers no column "
                f"{column!r}; {nearest(column, map(str, offered.columns))}"
            )
    return offered[list(schema.raw_columns)]
