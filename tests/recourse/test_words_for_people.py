"""Names, verbs, units, bounds that are proven, time and phrases in the words of advice."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
import yaml

from countermove.data.relations import PathStates
from countermove.data.schema import Schema, load_schema
from countermove.data.standardise import Standardiser
from countermove.errors import ParameterError
from countermove.people import ActionSet
from countermove.recourse import recommend, sentences
from countermove.recourse.phrases import FILE, outward, phrases_of, spelled
from countermove.recourse.recommend import FOUND, PROVEN_NONE, Advice
from countermove.recourse.words import Telling
from countermove.scores.base import values

from .conftest import linear

FEATURES = {
    "bill": {
        "kind": "integer", "unit": "EUR", "change": "both", "min": 0, "max": 90_000,
        "name": "your bill",
        "verb": {"up": "let your bill rise to …", "down": "pay down your bill to at most …"},
    },
    "payment": {"kind": "integer", "unit": "EUR", "change": "both", "min": 0},
    "largest": {"kind": "integer", "unit": "EUR", "change": "both", "min": 0},
    "late": {"kind": "integer", "unit": "months", "change": "down", "min": 0, "max": 3,
             "horizon": "a late month leaves the window after three months"},
    "ever_late": {"kind": "binary", "change": "down", "verb": "be late no more"},
    "home": {"kind": "onehot", "change": "both", "categories": ["rented", "owned"],
             "verb": "move to a home that is …"},
    "grade": {"kind": "ordered", "change": "up", "categories": ["C", "B", "A"]},
}  # fmt: skip
MAPPING = {
    "label": {"column": "outcome", "favourable": 1},
    "features": FEATURES,
    "relations": ["payment <= largest"],
    "path": {
        "lateness": {
            "step": "month", "window": ["m1", "m2", "m3"], "verb": "pay on time for …",
            "columns": {"late": "count", "ever_late": "any"}, "at_least": 0,
        }
    },
}  # fmt: skip
SCHEMA = Schema.from_mapping("bank", MAPPING)
UNITS = Standardiser(
    np.array([1000.0, 80.0, 120.0, 1.0, 0.5, 0.5, 0.5, 1.0]),
    np.array([400.0, 50.0, 60.0, 1.0, 0.5, 0.5, 0.5, 0.8]),
    SCHEMA.feature_names,
)
PERSON = np.array([12_000.0, 50, 60, 2, 1, 1, 0, 0])
#                  bill  payment largest late ever rented owned grade
GOOD = [-1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0, 1.0]


def said_of(after, weights=None, schema=SCHEMA, status=FOUND, named=None, least=0.0, **more):
    """Return what a person is told who becomes ``after`` under a rule with these weights."""
    X = UNITS.transform(PERSON[None])
    action = UNITS.transform(np.array([after], float)) - X
    if status != FOUND:
        action = np.full_like(action, np.nan)
    zeros = np.zeros(1)
    advice = Advice(
        action, np.array([status]), zeros, zeros, zeros, np.zeros(1, np.int64),
        cost_bound=np.array([least]),
    )  # fmt: skip
    model = None if weights is None else linear(weights, 0.0)
    return Telling(schema, UNITS, model, **more).array(advice, X, named).to_pylist()[0]


def changed(**values):
    after = PERSON.copy()
    for name, value in values.items():
        after[SCHEMA.feature_names.index(name)] = value
    return after


def test_verbs_names_and_units_are_those_of_the_schema():
    assert said_of(changed(bill=3000)) == (
        "Pay down your bill to at most 3,000 EUR (now 12,000 EUR)."
    )
    owned = changed(**{"home=rented": 0, "home=owned": 1})
    assert said_of(owned) == "Move to a home that is “owned” (now “rented”)."
    assert said_of(changed(payment=70)) == "Raise payment from 50 to 70 EUR."
    assert said_of(changed(ever_late=0)) == "Be late no more."


@pytest.mark.parametrize(
    ("after", "weights", "said"),
    [
        # The weight says that less is approved too; the verb's own bound is replaced by it.
        (changed(bill=3000), GOOD, "Pay down your bill to at most 3,000 EUR (now 12,000 EUR)."),
        (changed(bill=20_000), GOOD, "Let your bill rise to exactly 20,000 EUR (now 12,000 EUR)."),
        (
            changed(bill=20_000),
            [1.0, *GOOD[1:]],
            "Let your bill rise to at least 20,000 EUR (now 12,000 EUR).",
        ),
        (changed(bill=0), GOOD, "Pay down your bill to 0 EUR (now 12,000 EUR)."),
        (changed(grade=1), GOOD, "Raise grade from “C” to at least “B”."),
        (changed(grade=2), GOOD, "Raise grade from “C” to “A”."),
        # More of the payment takes the largest one along, which this rule likes, ...
        (changed(payment=55), GOOD, "Raise payment from 50 to at least 55 EUR."),
        # ... or not.
        (changed(payment=55), [-1, 1, -1, *GOOD[3:]], "Raise payment from 50 to exactly 55 EUR."),
        (changed(largest=90), GOOD, "Raise largest from 60 to at least 90 EUR."),
        # The largest payment cannot fall below the last one, whose fall this rule dislikes.
        (changed(largest=55), [-1, 1, -1, *GOOD[3:]], "Lower largest from 60 to exactly 55 EUR."),
    ],
)
def test_at_least_and_at_most_are_said_where_they_are_proven(after, weights, said):
    assert said_of(after, weights) == said


def test_what_is_said_to_go_further_does():
    """Whoever does more than "at least" or less than "at most" is approved all the same."""
    rng = np.random.default_rng(3)
    free = {name: {**entry, "change": "both"} for name, entry in FEATURES.items() if name != "home"}
    plain = ("verb", "name", "horizon")
    free = {n: {k: v for k, v in e.items() if k not in plain} for n, e in free.items()}
    schema = Schema.from_mapping("bank", {"label": MAPPING["label"], "features": free})
    keep = [0, 1, 2, 3, 4, 7]
    units = Standardiser(UNITS.mean[keep], UNITS.scale[keep], schema.feature_names)
    X = units.transform(
        np.column_stack(
            [rng.integers(1, 3, 400) * 100.0] * 3
            + [rng.integers(0, 4, 400), rng.integers(0, 2, 400), rng.integers(0, 3, 400)]
        )
    )
    rule = linear(rng.normal(size=6).tolist(), -1.0)
    advice = recommend(rule, X, actions=ActionSet.from_schema(schema, units))
    said = sentences(advice, X, schema, units, model=rule)
    limits = ActionSet.from_schema(schema, units).box(X)
    bounds = 0
    for i in np.flatnonzero(advice.status == FOUND):
        for part in said[i].rstrip(".").lower().split("; "):
            words = part.split()
            j = schema.feature_names.index(words[1])
            if "at least" in part or "at most" in part:
                bounds += 1
                further = advice.action[i].copy()
                further[j] = limits[1][i, j] if "at least" in part else limits[0][i, j]
                further[j] = np.clip(further[j], -50.0, 50.0)
                assert values(rule, (X[i] + further)[None])[0] >= 0.0
    assert bounds > 100


def test_scores_that_are_not_affine_prove_nothing():
    from countermove.scores import MLPScore

    X = UNITS.transform(PERSON[None])
    action = UNITS.transform(changed(bill=3000)[None]) - X
    zeros = np.zeros(1)
    advice = Advice(action, np.array([FOUND]), zeros, zeros, zeros, np.ones(1, np.int64))
    (said,) = sentences(advice, X, SCHEMA, UNITS, model=MLPScore(8))
    assert said == "Pay down your bill to exactly 3,000 EUR (now 12,000 EUR)."


def test_thousands_are_written_in_one_way():
    said = said_of(changed(bill=9_500))
    assert said == "Pay down your bill to at most 9,500 EUR (now 12,000 EUR)."


def test_a_state_of_a_path_is_said_as_time():
    """Months late (1, 0, 1) are one after a step, one after two, none after three."""
    path = SCHEMA.paths[0]
    states = PathStates(path, (3, 4), path.reachable(np.array([[1.0, 0.0, 1.0]])))
    horizon = " A late month leaves the window after three months."
    one = said_of(changed(late=1), paths=(states,))
    assert one == "Pay on time for one more month." + horizon
    clean = changed(late=0, ever_late=0)
    assert said_of(clean, paths=(states,)) == "Pay on time for 3 more months." + horizon
    # Without the months themselves only the end is known.
    assert said_of(clean) == "Pay on time for at most 3 more months." + horizon
    # What is on no path is said of the columns.
    assert said_of(changed(ever_late=0), paths=(states,)) == "Be late no more."


def test_what_time_does_is_said_to_those_without_an_action():
    named = np.array([SCHEMA.feature_names.index("late") == np.arange(8)])
    said = said_of(PERSON, status=PROVEN_NONE, named=named)
    assert said.endswith("approval. A late month leaves the window after three months.")
    assert said_of(PERSON, status=PROVEN_NONE) == "No allowed change leads to approval."
    assert said_of(PERSON, status=PROVEN_NONE, least=np.inf) == said_of(PERSON, status=PROVEN_NONE)
    within = said_of(PERSON, status=PROVEN_NONE, least=2.0)  # the ceiling
    assert (
        within
        == "No allowed change within what can reasonably be expected of you leads to approval."
    )


def test_phrases_of_ones_own(tmp_path):
    words = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    words |= {"raise": "augmenter {name} de {before} à {after}"}
    path = tmp_path / "fr.yml"
    path.write_text(yaml.safe_dump(words, allow_unicode=True), encoding="utf-8")
    said = said_of(changed(payment=70), phrase_file=str(path))
    assert said == "Augmenter payment de 50 à 70 EUR."


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lower": None, "stay": None}, "missing stay, lower; copy them from"),
        ({"lowr": "x"}, "unknown key 'lowr'; did you mean 'lower'"),
        ({"raise": "more {name}"}, r"raise must have the places \['after', 'before', 'name'\]"),
        ({"raise": 3}, "raise must be text, not 3"),
        ({"time": {"month": ["a", "{count} b"]}}, "time lacks 'step'"),
        ({"time": {"step": ["a", "b"]}}, r"time\.step must list"),
        ({"units": ["EUR"]}, "units must be a mapping"),
    ],
)
def test_a_template_that_lacks_something_is_refused_by_name(tmp_path, change, said):
    words = yaml.safe_load(FILE.read_text(encoding="utf-8")) | copy.deepcopy(change)
    path = tmp_path / f"{len(str(change))}{next(iter(change))}.yml"
    path.write_text(yaml.safe_dump(words), encoding="utf-8")
    with pytest.raises(ParameterError, match=said):
        phrases_of(str(path))


def test_a_file_that_is_not_there_is_refused_with_the_one_to_copy():
    with pytest.raises(ParameterError, match=r"no file dee of phrases; copy .*phrases\.yml"):
        phrases_of("dee")


@pytest.mark.parametrize("name", ["credit", "german", "adult", "compas", "give-me-some-credit"])
def test_shipped_tables_are_spoken_of(name):
    schema = load_schema(name, Path(__file__).parents[2] / "conf" / "base" / "schemas")
    for feature in schema.features:
        assert feature.wording.name
        movable = feature.change != "immutable"
        assert bool(feature.wording.raising or feature.wording.lowering) == movable
        assert (feature.causal is not None) == movable


def test_a_relation_that_no_further_move_can_break_is_no_obstacle():
    """A bill is 90,000 EUR at most, so a ceiling of 200,000 never binds; one of 50,000 does."""
    said = copy.deepcopy(MAPPING) | {"relations": ["bill + payment <= 200000"]}
    schema = Schema.from_mapping("bank", said)
    weights = [1.0, *GOOD[1:]]
    words = said_of(changed(bill=20_000), weights, schema)
    assert words == "Let your bill rise to at least 20,000 EUR (now 12,000 EUR)."
    tight = Schema.from_mapping("bank", copy.deepcopy(MAPPING) | {"relations": ["bill <= 50000"]})
    words = said_of(changed(bill=20_000), weights, tight)
    assert words == "Let your bill rise to exactly 20,000 EUR (now 12,000 EUR)."


def test_the_digits_of_a_bound_keep_what_they_promise():
    """Read back from the sentence, "at least" is not below the amount, "at most" not above."""
    values = np.concatenate([np.random.default_rng(0).lognormal(3.0, 4.0, 500), [0.0, 7.0, 1e7]])
    feature = Schema.from_mapping(
        "one",
        {
            "label": {"column": "y", "favourable": 1},
            "features": {"x": {"kind": "numeric", "change": "both"}},
        },
    ).feature("x")
    for sign in (1.0, -1.0):
        shown = spelled(feature, outward(values, sign), phrases_of(), unit=False)
        read = np.array([float(text.replace(",", "")) for text in shown.to_pylist()])
        assert (sign * (read - values) >= -2e-6).all()
        np.testing.assert_allclose(read, values, rtol=2e-5, atol=1e-12)
