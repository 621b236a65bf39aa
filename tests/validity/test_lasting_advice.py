"""Advice given with a confidence still leads to approval after a refit, that often or more.

The rule is fitted to disjoint rows of the embedded credit table; what one fit advises people of
neither, every other fit judges. A level holds on average over people and pairs of fits, for
logistic regression at a fixed threshold; of the rule a run publishes, whose intercept is settled
by hard decisions, it falls short, and the test says by how much at most. Draws 0 to 3 were seen
when the corrections of the margin were made; disjoint rows are drawn from 10 on. Networks are
fitted again to rows drawn with replacement, and advised by columns alone, for speed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from countermove import StrategicClassifier
from countermove.data.cleaning import clean
from countermove.data.rows import feature_matrix
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.data.standardise import Standardiser
from countermove.people import ActionSet, QuadraticCost
from countermove.recourse import recommend
from countermove.response import BestResponse
from countermove.scores import MLPScore

pytestmark = [pytest.mark.validity]
ROOT = Path(__file__).parents[2]
CONFIDENCE = 0.95
LEAST = {"logistic": 0.92, "published": 0.8}
"""Of people x refits; the second is no guarantee (0.858 and 0.948 were measured)."""


@pytest.fixture(scope="module")
def credit():
    """Return standardised rows, labels and the people the schema describes."""
    schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
    typed = clean(read_raw("credit", ROOT / "data" / "01_raw", schema), schema)
    X, y = feature_matrix(typed, schema), typed["label"].to_numpy(float)
    units = Standardiser.fit(X, schema.feature_names)
    people = BestResponse(QuadraticCost(1.0), ActionSet.from_schema(schema, units))
    return units.transform(X), y, people


def fitted(kind, people, X, y):
    """Return logistic regression where people stand, or the rule that a run would publish."""
    blind = {"response": "none", "calibrate": False, "selection": "none"}
    chosen = blind if kind == "logistic" else {"response": people}
    return StrategicClassifier(standardise=False, random_state=0, **chosen).fit(X, y)


def of_a_network(people, X, y, refits=0):
    """Return a small network, fitted where people stand."""
    score = MLPScore(X.shape[1], (16,), dropout=0.0)
    plain = {"response": "none", "calibrate": False, "selection": "none", "max_epochs": 15}
    return StrategicClassifier(score, standardise=False, refits=refits, **plain).fit(X, y)


def test_advice_of_a_network_outlasts_refits_on_disjoint_rows(credit):
    """At 95 % at least 92 % of people x refits survive; plain advice about half, or less."""
    X, y, people = credit
    moves = people.actions.with_possible(None)
    rows, lasting, plain, reached = 3_000, [], [], []
    for seed in (20, 21):
        order = np.random.default_rng(seed).permutation(len(y))
        parts = [order[k * rows : (k + 1) * rows] for k in range(6)]
        judges = [of_a_network(people, X[part], y[part]) for part in parts[2:]]
        for part in parts[:2]:
            rule = of_a_network(people, X[part], y[part], refits=20)
            others = X[order[6 * rows :]]
            asking = others[rule.decision_function(others) < 0.0][:60]
            for confidence, found in ((CONFIDENCE, lasting), (None, plain)):
                advice = recommend(rule, asking, "gradient", actions=moves, confidence=confidence)
                kept = advice.lasting if confidence else advice.status == "FOUND"
                reached += [kept.mean()] if confidence else []
                moved = advice.x_new(asking)[kept]
                found += [judge.decision_function(moved) >= 0.0 for judge in judges]
    kept, lost = (float(np.concatenate(found).mean()) for found in (lasting, plain))
    assert kept >= 0.92, (kept, lost)
    assert lost < 0.65, (kept, lost)
    assert np.mean(reached) > 0.5


def survival(credit, kind, rows, seeds, refit, applicants=150):
    """Return who survives, over people, fits and refits; and the same of plain advice."""
    X, y, people = credit
    lasting, plain = [], []
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        parts = [order[k * rows : (k + 1) * rows] for k in range(len(y) // rows)]
        fits = [fitted(kind, people, X[part], y[part]) for part in parts]
        for place, rule in enumerate(fits):
            others = X[parts[(place + 1) % len(parts)]]
            asking = others[rule.decision_function(others) < 0.0][:applicants]
            judges = refit(fits, place, lambda who: fitted(kind, people, X[who], y[who]), parts)
            for confidence, found in ((CONFIDENCE, lasting), (None, plain)):
                advice = recommend(
                    rule, asking, actions=people.actions, cost=people.cost, confidence=confidence
                )
                kept = advice.lasting if confidence else advice.status == "FOUND"
                moved = advice.x_new(asking)[kept]
                found += [judge.decision_function(moved) >= 0.0 for judge in judges]
    return float(np.concatenate(lasting).mean()), float(np.concatenate(plain).mean())


def of_disjoint_rows(fits, place, fit, parts):
    """Judge by the fits to the other rows."""
    return [other for k, other in enumerate(fits) if k != place]


def of_a_bootstrap(fits, place, fit, parts):
    """Judge by fits to rows drawn with replacement from the rule's own."""
    draws = np.random.default_rng(place)
    part = parts[place]
    return [fit(draws.choice(part, len(part))) for _ in range(3)]


CASES = {
    "logistic": ("logistic", 5_000, (10, 11), of_disjoint_rows),
    "logistic, bootstrap": ("logistic", 5_000, (0,), of_a_bootstrap),
    "published": ("published", 10_000, (10, 11, 12, 13), of_disjoint_rows),
    "published, bootstrap": ("published", 10_000, (0,), of_a_bootstrap),
}


@pytest.mark.quick_validity
def test_advice_outlasts_refits_quickly(credit):
    """Twelve people of each of six fits: a margin that is forgotten keeps about a third."""
    lasting, plain = survival(credit, *CASES["logistic"][:2], (10,), of_disjoint_rows, 12)
    assert lasting >= 0.85, (lasting, plain)
    assert plain < 0.65, (lasting, plain)


@pytest.mark.parametrize("case", CASES)
def test_advice_outlasts_refits_as_often_as_it_says(credit, case):
    """At 95 % at least 92 % of people x refits of a logistic rule survive, else half."""
    lasting, plain = survival(credit, *CASES[case])
    assert lasting >= LEAST[CASES[case][0]], (lasting, plain)
    assert plain < 0.65, (lasting, plain)
