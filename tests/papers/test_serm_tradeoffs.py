"""SERM, Figure 2: accuracy against social good on credit, in the published protocol.

Published (validation rows of one split, smoothed): burden from 2.18 to 1.01 (-53 %), recourse
from .610 to .692 (+8 points), utility from .031 to .229 (x7), at accuracies within a point of
.695. Ours are hard measures of test rows, one strength for three splits chosen on validation
rows. Limits are a little below what was measured (docs/papers/serm.md).
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import pytest
import yaml

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.sources import read_raw
from countermove.experiments import Sources
from countermove.params.serm_experiments import TradeoffParameters

pytestmark = [pytest.mark.paper, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
CURVES = ("utility", "burden", "burden, settled", "recourse")
"""Kinds of regulariser; all in the published protocol, one with the intercept settled as well."""


def tables(name):
    schema = load_schema(name, ROOT / "conf" / "base" / "schemas")
    return clean(read_raw(name, ROOT / "data" / "01_raw", schema), schema), schema


@cache
def drawn(curve):
    """Return the points of a curve on all splits, the joint choice and CPU seconds per split."""
    kind, _, settled = curve.partition(", ")
    path = ROOT / "conf" / "paper" / f"serm_tradeoff_{kind}.yml"
    said = yaml.safe_load(path.read_text())["run"]["params"]["paper"]["experiment"]
    said["curves"] = said["curves"][1:2] if settled else said["curves"][:1]
    assert said["curves"][0]["response"]["kind"] == "published"
    plan, started = TradeoffParameters.model_validate(said).build(), time.process_time()
    points = plan.cells(Sources(tables), seed=0)
    seconds = (time.process_time() - started) / plan.splits
    choices = plan.means(points)
    return points, choices[choices["split"] == "all"].iloc[0], seconds


@pytest.mark.parametrize("curve", CURVES)
def test_a_point_of_accuracy_on_validation_is_a_point_and_a_half_on_test(curve):
    _, joint, _ = drawn(curve)
    assert joint["validation_accuracy"] >= joint["validation_accuracy_plain"] - 0.01 - 1e-12
    assert joint["test_accuracy"] >= joint["test_accuracy_plain"] - 0.015


@pytest.mark.parametrize("curve", CURVES)
def test_a_curve_of_twenty_strengths_takes_less_than_a_minute(curve):
    points, _, seconds = drawn(curve)
    assert points.groupby("split").size().min() == 21  # and the unregularised rule
    assert seconds < 60.0


def test_hard_burden_falls():
    assert drawn("burden")[1]["relative_change"] <= -0.25


def test_hard_burden_halves_where_hard_decisions_settle_the_intercept():
    """Against the published protocol's own unregularised rule."""
    plain = drawn("burden")[1]["test_burden_plain"]
    assert drawn("burden, settled")[1]["test_burden"] <= 0.5 * plain


def test_hard_recourse_rises_while_accuracy_does_not_fall():
    _, joint, _ = drawn("recourse")
    assert joint["change"] >= 0.03
    assert joint["test_accuracy"] >= joint["test_accuracy_plain"] - 0.005


@pytest.mark.parametrize("curve", ["utility", "burden", "recourse"])
def test_every_strength_is_kinder_than_the_one_before(curve):
    """No strength is left with its neighbour's rule: burden falls from each to the next."""
    points, _, _ = drawn(curve)
    burden = points[points["strength"] > 0.0].groupby("strength")["validation_burden"].mean()
    assert (burden.diff().dropna() < 0.0).all()


def test_hard_utility_rises():
    _, joint, _ = drawn("utility")
    assert joint["test_utility"] >= 2.0 * joint["test_utility_plain"] > 0.0


@pytest.mark.parametrize("curve", CURVES)
def test_rules_for_the_published_people_are_at_chance_with_rational_ones(curve):
    """What the trade-off buys is bought from people who do not look for their best answer."""
    points, _, _ = drawn(curve)
    assert points["test_rational_accuracy"].max() < 0.55
