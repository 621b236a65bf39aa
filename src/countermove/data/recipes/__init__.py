"""From the layout in which a table was published to the columns its schema names.

A recipe keeps the order of the rows, checks the codes it translates, and may offer
more columns than a schema picks. One that leaves rows out says so in its data sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from countermove.data.recipes._embedded import (
    CREDIT_COLUMNS,
    DIGITS_COLUMNS,
    GERMAN_COLUMNS,
    IRIS_COLUMNS,
    credit,
    digits,
    german,
    iris,
)
from countermove.data.recipes._fetched import (
    ADULT_COLUMNS,
    COMPAS_COLUMNS,
    GMSC_COLUMNS,
    LOANAPP_COLUMNS,
    MNIST_COLUMNS,
    adult,
    compas,
    give_me_some_credit,
    loanapp,
    mnist,
)
from countermove.data.schema import Schema, value_text
from countermove.errors import SchemaError, nearest

__all__ = ["RECIPES", "CleaningRecipe", "apply_recipe", "outcome_columns", "raw_columns"]


@dataclass(frozen=True)
class CleaningRecipe:
    """What a published layout must hold, and how it is read.

    ``outcome`` holds the columns that only the past can have, each with a value it may take:
    people who apply have none yet, and the recipe still reads one.
    """

    columns: tuple[str, ...]
    apply: Callable[[pd.DataFrame, str], pd.DataFrame]
    outcome: Mapping[str, str]


RECIPES: Mapping[str, CleaningRecipe] = {
    "adult": CleaningRecipe(ADULT_COLUMNS, adult, {"income": ">50K"}),
    "compas": CleaningRecipe(COMPAS_COLUMNS, compas, {"is_recid": "0", "two_year_recid": "0"}),
    "credit": CleaningRecipe(CREDIT_COLUMNS, credit, {"default payment next month": "0"}),
    "digits": CleaningRecipe(DIGITS_COLUMNS, digits, {"digit": "0"}),
    "german": CleaningRecipe(GERMAN_COLUMNS, german, {"credit_risk": "1"}),
    "give-me-some-credit": CleaningRecipe(
        GMSC_COLUMNS, give_me_some_credit, {"SeriousDlqin2yrs": "0"}
    ),
    "iris": CleaningRecipe(IRIS_COLUMNS, iris, {"species": "setosa"}),
    "loanapp": CleaningRecipe(LOANAPP_COLUMNS, loanapp, {"approve": "1"}),
    "mnist-5k": CleaningRecipe(MNIST_COLUMNS, mnist, {"digit": "0"}),
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
    """Return the columns the schema names, for the rows the recipe keeps.

    Raises
    ------
    SchemaError
        If the schema names a column its recipe does not offer.
    DataError
        If the raw cells are not what the recipe reads.
    """
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
