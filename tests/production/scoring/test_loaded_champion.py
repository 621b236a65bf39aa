"""A loaded champion decides about a table as `kedro run --pipeline=score` does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from countermove import load, recommend
from countermove.data.cleaning import clean
from countermove.data.partitions import raw_partitions
from countermove.data.recipes import outcome_columns
from countermove.data.rows import fit_standardiser
from countermove.data.schema import LABEL, ROW_ID, Schema, load_schema
from countermove.data.sources import read_embedded
from countermove.errors import DataError, ModelFileError
from countermove.execution import Execution
from countermove.people import ActionSet, QuadraticCost
from countermove.production.registry import Decision, Registry
from countermove.production.scoring import ScoringSettings, score_batch
from countermove.recourse.pare import PromiseTerms
from countermove.response import BestResponse
from countermove.scores.linear import LinearScore
from countermove.scores.storage import SCHEMA, PublishedModel, schema_facts

SCHEMAS = Path(__file__).parents[3] / "conf" / "base" / "schemas"
WORDS = Schema.from_mapping(
    "words",
    {
        "id": "person",
        "label": {"column": "repaid", "favourable": "yes"},
        "features": {
            "town": {
                "kind": "onehot", "change": "immutable", "missing": "own level",
                "categories": ["Bern", "Genf", "other"],
                "read": {"fold": True, "spellings": {"Genf": ["Genève"]}, "pooled": "other"},
            },
            "school": {"kind": "ordered", "change": "up", "missing": "mode",
                       "categories": ["none", "school", "university"]},
            "income": {"kind": "numeric", "change": "up", "missing": "median",
                       "read": {"decimal": ",", "thousands": "."}},
            "loans": {"kind": "integer", "change": "down", "missing": 2,
                      "read": {"missing_values": [-9]}},
            "open": {"kind": "numeric", "change": "immutable",
                     "read": {"date": "%d.%m.%Y", "as": "days", "until": "2024-12-31"}},
        },
    },
)  # fmt: skip


def people_in_words(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Return a table as an office writes it: words, commas, dates, codes and empty cells."""
    rng = np.random.default_rng(seed)
    income = [f"{k // 1000}.{k % 1000:03d},50" for k in rng.integers(1_000, 90_000, n).tolist()]
    return pd.DataFrame(
        {
            "person": [f"p{k}" for k in range(n)],
            "town": rng.choice(["Bern", "BERN ", "Genève", "Chur", ""], n),
            "school": rng.choice(["none", "school", "university", ""], n),
            "income": np.where(rng.random(n) < 0.1, "", income),
            "loans": rng.choice(["-9", "0", "1", "5", ""], n),
            "open": [f"{d:02d}.03.{y}" for d, y in rng.integers([1, 2001], [29, 2024], (n, 2))],
            "repaid": rng.choice(["yes", "no"], n),
        }
    )


def table_of(name: str) -> tuple[Schema, pd.DataFrame]:
    """Return a schema and some of its raw table."""
    if name == "words":
        return WORDS, people_in_words()
    return load_schema(name, SCHEMAS), read_embedded(name).head(800)


def champion_of(schema: Schema, raw: pd.DataFrame, folder: Path, asked: float = 0.5) -> Registry:
    """Make a champion that refuses about half at a threshold that is not one half."""
    typed = clean(raw, schema)
    unit = fit_standardiser(typed, schema, divide_by_root_d=False)
    score = LinearScore(unit.n_features)
    weights = np.random.default_rng(1).normal(size=unit.n_features)
    with torch.no_grad():
        score.weight.copy_(torch.tensor(weights))
    people = BestResponse(QuadraticCost(1.0), ActionSet.from_schema(schema, unit))
    about = {"response": people.describe(), "probability_slope": 0.4} | schema_facts(schema)
    model = PublishedModel(score, unit, schema.digest(), about, threshold=asked)
    registry = Registry(str(folder), schema)
    version = registry.next_version()
    registry.add(version, model, {"metrics": {}, "data_hash": "x"})
    promoted = Decision(version, "retrain", "promoted", "2026-01-01", None, version, [], {})
    registry.carry_out(promoted)
    return registry


def scored(registry: Registry, schema: Schema, people: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return what the score pipeline decides about people in a file."""
    (folder / "batches").mkdir(exist_ok=True)
    people.to_csv(folder / "batches" / "may.csv", index=False)

    def everybody(stored):
        actions = ActionSet.from_schema(schema, stored.model.standardiser)
        return BestResponse(QuadraticCost(1.0), actions)

    terms = PromiseTerms()
    settings = ScoringSettings(registry, schema, everybody, terms, "linear_program", 0)
    batch = raw_partitions("may", folder / "batches", 90)
    return score_batch("may", batch, settings, folder / "scored", Execution()).people().read()


@pytest.mark.parametrize("asked", [0.35, 0.7])
@pytest.mark.parametrize("name", ["credit", "german", "words"])
def test_a_loaded_champion_decides_as_score_does(name, asked, tmp_path):
    schema, raw = table_of(name)
    registry = champion_of(schema, raw, tmp_path / "models", asked)
    people = raw.head(250).drop(columns=list(outcome_columns(schema)))
    found = scored(registry, schema, people, tmp_path)
    assert len(found) == 250
    assert found["decision"].nunique() == 2
    rule = load(tmp_path / "models")
    typed = clean(raw, schema).head(250)
    read_again = pd.read_csv(tmp_path / "batches" / "may.csv")
    for table in (people, raw.head(250), read_again, typed.drop(columns=LABEL), typed):
        np.testing.assert_array_equal(rule.predict(table), found["decision"])
        above = rule.decision_function(table) >= 0.0
        np.testing.assert_array_equal(above, found["decision"] == 1)
        likely = rule.predict_proba(table)[:, 1]
        np.testing.assert_allclose(likely, found["probability"], rtol=1e-14)
    np.testing.assert_array_equal(above, likely >= asked)
    one_by_one = [rule.predict(people.iloc[[k]])[0] for k in range(20)]
    assert one_by_one == found["decision"].head(20).tolist()


def test_frames_of_polars_and_people_without_ids_are_decided_alike(tmp_path):
    champion_of(WORDS, people_in_words(), tmp_path)
    rule, people = load(tmp_path), people_in_words(60, seed=2).drop(columns="repaid")
    decided = rule.predict(people).tolist()
    assert rule.predict(pl.from_pandas(people)).tolist() == decided
    assert rule.predict(people.drop(columns="person")).tolist() == decided


def test_advice_about_a_loaded_champion_is_about_its_own_threshold(tmp_path):
    schema, raw = table_of("german")
    registry = champion_of(schema, raw, tmp_path, asked=0.7)
    rule, unit = load(tmp_path), registry.champion().model.standardiser
    allowed = ActionSet.from_schema(schema, unit)
    people = raw.head(80)
    inside = rule.of_standardised_rows()
    rows = unit.transform(rule.encode(people))
    advice = recommend(inside, rows, "linear_program", actions=allowed)
    np.testing.assert_array_equal(advice.status == "NOT_NEEDED", rule.predict(people) == 1)
    moved = np.isfinite(advice.action).all(axis=1)
    assert moved.sum() > 10
    after = rule.predict(unit.inverse(advice.x_new(rows))[moved])
    assert (after == 1).all()


def test_people_who_cannot_be_read_are_named(tmp_path):
    champion_of(WORDS, people_in_words(), tmp_path)
    people = people_in_words(9).drop(columns="repaid")
    people.loc[[3, 7], "income"] = "soon"
    with pytest.raises(DataError, match=r"2 of 9 rows cannot be read.*'income'") as refused:
        load(tmp_path).predict(people)
    assert refused.value.rows == (3, 7)
    with pytest.raises(DataError, match="loans"):
        load(tmp_path).predict(people.drop(columns="loans"))


def test_a_schema_that_is_not_the_models_is_refused(tmp_path):
    schema, raw = table_of("german")
    model = champion_of(schema, raw, tmp_path).champion().model
    other = json.loads(json.dumps(model.about[SCHEMA]))
    other["mapping"]["features"]["duration_months"]["max"] = 7
    altered = PublishedModel(model.score, model.standardiser, model.schema_digest, {SCHEMA: other})
    with pytest.raises(ModelFileError, match="not the one it was made for"):
        _ = altered.schema
    assert ROW_ID not in model.schema.feature_names
