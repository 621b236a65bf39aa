"""A challenger is trained by the solver of the first rule."""

from pathlib import Path

import numpy as np

from countermove.data.cleaning import clean
from countermove.data.rows import fit_standardiser, standardised_table
from countermove.data.schema import load_schema
from countermove.data.splits import split_table
from countermove.data.synthetic import fabricate
from countermove.production.retraining.challenger import train_challenger
from countermove.response import BestResponse

SCHEMA = load_schema("tiny", Path(__file__).parents[3] / "conf" / "base" / "schemas")
SHARES = {"train": 0.6, "validation": 0.4}


def test_a_challenger_ends_at_the_optimum_wherever_it_starts():
    parts = split_table(clean(fabricate("tiny"), SCHEMA), SCHEMA, SHARES, 0)
    unit = fit_standardiser(parts["train"], SCHEMA, False)
    rows = {name: standardised_table(part, SCHEMA, unit) for name, part in parts.items()}
    given = (rows, SCHEMA, unit, BestResponse(), {"selection": "none"})
    first = train_challenger(*given, None, 0)
    again = train_challenger(*given, first.score, 1)
    for model in (first, again):
        assert model.about["optimiser"] == "newton"
        assert model.about["converged"]
    ours, theirs = (model.score.weight.detach().numpy() for model in (first, again))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
