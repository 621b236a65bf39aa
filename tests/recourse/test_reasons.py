"""Why people were refused: the definition, its order, what is among them, and in words."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from countermove.data.rows import Rows
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.errors import DataError, NotEnoughRowsError, ParameterError
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import (
    ApprovedPeople,
    PromiseTerms,
    approved_people,
    reason_codes,
)
from countermove.recourse.advise import (
    APPROVED,
    advise,
    arrow_advice,
    decide_and_advise,
    with_approved,
)
from countermove.response import BestResponse
from countermove.scores import MLPScore
from countermove.scores.base import values
from countermove.scores.storage import PublishedModel, load_model, save_model

from .conftest import linear

SCHEMA = Schema.from_mapping(
    "bank",
    {
        "label": {"column": "outcome", "favourable": 1},
        "features": {
            "income": {"kind": "numeric", "unit": "EUR", "change": "up", "name": "your income"},
            "debt": {"kind": "numeric", "unit": "EUR", "change": "down", "min": 0},
            "phone": {"kind": "binary", "change": "up", "causal": "no"},
            "home": {"kind": "onehot", "change": "both", "categories": ["rented", "owned"]},
            "age": {"kind": "integer", "unit": "years", "change": "immutable"},
        },
        "sensitive": ["age"],
    },
)
UNITS = Standardiser(
    np.array([2000.0, 500.0, 0.5, 0.5, 0.5, 40.0]),
    np.array([500.0, 200.0, 0.5, 0.5, 0.5, 10.0]),
    SCHEMA.feature_names,
)
WEIGHTS = [1.0, -1.0, 0.4, -0.5, 0.5, 0.8]
RULE = linear(WEIGHTS, 0.3)


def crowd(n, seed=4):
    rng = np.random.default_rng(seed)
    home = np.eye(2)[rng.integers(0, 2, n)]
    raw = np.column_stack(
        [
            rng.normal(2000, 500, n),
            np.maximum(rng.normal(500, 200, n), 0.0),
            rng.integers(0, 2, n),
            home,
            rng.integers(20, 70, n),
        ]
    )
    return UNITS.transform(raw)


def test_the_contribution_is_the_weight_times_the_distance_to_the_approved():
    X = crowd(300)
    approved = values(RULE, X) >= 0.0
    people = approved_people(RULE, X)
    assert people.count == approved.sum()
    assert not len(people.sample)
    found = reason_codes(RULE, X, people, SCHEMA)
    each = np.array(WEIGHTS) * (X - X[approved].mean(axis=0))
    joint = np.column_stack([each[:, :3], each[:, 3:5].sum(axis=1), each[:, 5]])
    assert found.columns == ("income", "debt", "phone", "home", "age")
    np.testing.assert_allclose(found.contribution[~approved], joint[~approved], atol=1e-12)
    for i, codes in enumerate(found.codes()):
        if approved[i]:
            assert codes == []
            continue
        order = [k for k in np.argsort(joint[i]) if joint[i, k] < 0.0][:4]
        assert codes == [found.columns[k] for k in order]
    assert "age" in found.counts()  # nobody can change it, and it is a reason all the same


class Disguised(MLPScore):
    """A linear rule that does not tell that it is one."""

    def forward(self, X):
        return X @ torch.tensor(WEIGHTS, dtype=torch.float64) + 0.3


def test_all_models_share_one_definition():
    """Replacing a column by that of each approved person gives an affine rule's formula."""
    X = crowd(80)
    hidden = Disguised(6)
    approved = approved_people(hidden, X)
    assert len(approved.sample) == min(100, (values(RULE, X) >= 0.0).sum())
    plain = reason_codes(RULE, X, approved_people(RULE, X), SCHEMA)
    found = reason_codes(hidden, X, approved, SCHEMA)
    np.testing.assert_allclose(found.contribution, plain.contribution, atol=1e-9)
    assert found.codes() == plain.codes()


def test_the_sample_depends_on_ids_not_on_the_order_of_rows():
    X, hidden = crowd(400), Disguised(6)
    ids = [f"p{i}" for i in range(400)]
    first = approved_people(hidden, X, ids).sample
    turned = approved_people(hidden, X[::-1], ids[::-1]).sample
    assert len(first) == 100
    np.testing.assert_array_equal(first, turned)


def test_the_reference_survives_storage_and_bad_ones_are_refused():
    X = crowd(50)
    people = approved_people(Disguised(6), X)
    again = ApprovedPeople.from_json(people.to_json())
    assert again.count == people.count
    np.testing.assert_allclose(again.sample, people.sample, rtol=1e-5)
    with pytest.raises(NotEnoughRowsError, match="none of 50 people is approved"):
        approved_people(linear(WEIGHTS, -100.0), X)
    with pytest.raises(ParameterError, match="sample of approved people"):
        reason_codes(Disguised(6), X, approved_people(RULE, X), SCHEMA)
    with pytest.raises(DataError, match="people have 6 features, the approved ones 2"):
        reason_codes(RULE, X, ApprovedPeople(1, np.zeros(2), np.empty((0, 2))), SCHEMA)


def model_of(X):
    """Return the rule as it is stored, with the people it approves among ``X``."""
    model = PublishedModel(RULE, UNITS, SCHEMA.digest())
    return with_approved(model, frame(X), SCHEMA)


def frame(X):
    import pandas as pd

    table = pd.DataFrame(X, columns=list(SCHEMA.feature_names))
    return table.assign(row_id=[f"p{i}" for i in range(len(X))], label=1.0)


RESPONSE = BestResponse(QuadraticCost(), ActionSet.from_schema(SCHEMA, UNITS))
TERMS = PromiseTerms()


def advised(X, said=None):
    people = Rows(np.arange(len(X)).astype(str), X, np.ones(len(X)), frame(X)[[]])
    return decide_and_advise(model_of(crowd(300)), people, SCHEMA, RESPONSE, TERMS, 0, said)


def test_reasons_are_said_with_why_the_advice_leaves_them_alone():
    """Income counts most and is raised; debt is nil already; nobody can change their age."""
    poor = UNITS.transform(np.array([[100.0, 0.0, 1, 0, 1, 20], [1900.0, 900.0, 0, 1, 0, 30]]))
    table = advised(poor).table
    assert table["reason_codes"].tolist()[0] == ["income", "age"]
    assert table.loc[0, "reasons"] == (
        "Main reasons: your income (100 EUR); age (20 years; cannot be changed)."
    )
    assert table.loc[1, "reasons"] == (
        "Main reasons: debt (900 EUR); age (30 years; cannot be changed); home (“rented”; other "
        "changes cost less); your income (1,900 EUR)."
    )


def test_everything_named_that_can_move_is_advised_or_explained():
    table = advised(crowd(300, 9)).table
    refused = table[table["decision"] == -1]
    assert len(refused) > 50
    for _, row in refused.iterrows():
        assert 1 <= len(row["reason_codes"]) <= 4
        parts = row["reasons"].removeprefix("Main reasons: ").rstrip(".").split("; ")
        for code in row["reason_codes"]:
            name = {"income": "your income"}.get(code, code)
            (place,) = [k for k, part in enumerate(parts) if part.startswith(f"{name} (")]
            columns = [c for c in table if c.startswith(f"change:{code}")]
            moved = any(row[column] != 0.0 for column in columns)
            assert parts[place].endswith(")") == moved
    assert table.loc[table["decision"] == 1, "reasons"].isna().all()
    assert arrow_advice(table[:0]).schema.equals(arrow_advice(table).schema)
    assert table.columns[-1] == "words"


def test_models_stored_earlier_give_no_reasons(tmp_path):
    old = PublishedModel(RULE, UNITS, SCHEMA.digest())
    people = Rows(np.array(["a"]), crowd(1), np.ones(1), frame(crowd(1))[[]])
    table = decide_and_advise(old, people, SCHEMA, RESPONSE, TERMS, 0).table
    assert "reasons" not in table
    new = model_of(crowd(300))
    save_model(new, tmp_path / "model")
    assert load_model(tmp_path / "model", SCHEMA).about[APPROVED] == new.about[APPROVED]


def test_the_audit_names_sensitive_reasons_and_counts_gaming():
    table = frame(crowd(300, 9))
    found = advise(model_of(crowd(300)), table, table, SCHEMA, RESPONSE, TERMS, 0)
    assert found.audit["reasons"]["sensitive"]["age"] > 0
    (error,) = found.audit["errors"]
    assert error.startswith("column 'age' is declared sensitive and is a main reason for")
    assert found.audit["causal"]["declared"] == {"yes": [], "no": ["phone"], "unknown": []}
    advice = found.advice[found.advice["status"] == "FOUND"]
    changes = advice[[c for c in advice if c.startswith("change:")]] != 0.0
    only = changes["change:phone"] & (changes.sum(axis=1) == 1)
    games = found.audit["causal"]["only_games"]
    assert (games["n"], games["value"]) == (len(advice), pytest.approx(only.mean()))
    assert found.sheet()["reason_codes"].map(type).eq(str).all()


def test_reasons_before_trees_are_the_definition_on_every_approved_person():
    """Attributions of an adopted model: no approximation, each term by the model's own predict."""
    import lightgbm

    from countermove import adopt

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(1)
    schema = Schema.from_mapping(
        "trees",
        {
            "label": {"column": "outcome", "favourable": 1},
            "features": {name: {"kind": "numeric", "change": "both"} for name in "abc"},
        },
    )
    fitted = lightgbm.LGBMClassifier(n_estimators=10, num_leaves=5, verbose=-1)
    fitted.fit(X, X @ [1.0, -1.0, 0.5] + rng.normal(size=300) > 0.5)
    model = adopt(fitted, X)
    approved = approved_people(model, X)
    found = reason_codes(model, X[:40], approved, schema)
    others = model.standardiser_.inverse(approved.sample).round(1)

    def log_odds(rows):
        return fitted.predict_proba(rows, raw_score=True)

    refused = np.flatnonzero(log_odds(X[:40]) < 0.0)
    for i in refused:
        for j in range(3):
            replaced = np.repeat(X[i][None], len(others), axis=0)
            replaced[:, j] = others[:, j]
            lost = log_odds(X[i][None])[0] - log_odds(replaced).mean()
            assert found.contribution[i, j] == pytest.approx(lost, abs=1e-9)
