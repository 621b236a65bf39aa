"""What came of a forecast: the error of the champion's decisions about people who responded."""

from __future__ import annotations

import numpy as np
import pandas as pd

from countermove.data.cleaning import clean
from countermove.data.rows import rows_of, standardised_table
from countermove.data.synthetic import fabricate
from countermove.production.retraining.forecast import outcomes
from countermove.scores.base import values

from ..tiny_champion import SCHEMA, model, people


def test_whoever_stopped_on_the_boundary_was_approved_whatever_the_rounding():
    champion = model()
    stood = standardised_table(clean(fabricate("tiny"), SCHEMA), SCHEMA, champion.standardiser)
    rows = rows_of(stood, SCHEMA)
    response = people(champion.standardiser)
    there = response.respond(champion.rule, rows.X, on_failure="mask").x_new
    approved = response.decisions_after(champion.rule, rows.X)
    moved = approved & (values(champion.rule, rows.X) < 0.0)
    assert moved.sum() > 3
    there[moved] -= 1e-13 * np.sign(champion.rule.weight.detach().numpy())  # as files round
    seen = stood.assign(**dict(zip(SCHEMA.feature_names, there.T, strict=True)))
    bound = {"claim": "direct_upper", "direction": "upper", "forecast": 0.5, "level": 0.95}
    batch = pd.Series(["may"] * len(seen))
    (found,) = outcomes("1", {"bounds": [bound]}, champion.rule, seen, batch, SCHEMA)
    assert found["error"] == np.mean(approved != (rows.y > 0))
