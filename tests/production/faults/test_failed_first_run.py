"""A first run that fails binds nobody: its hold-out is frozen once somebody was judged on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from countermove.data.relations import ObservedRanges
from countermove.data.standardise import Standardiser
from countermove.errors import BlockedError
from countermove.production.registry import Registry
from countermove.production.retraining.holdout import pin_holdout

UNITS = Standardiser(np.zeros(1), np.ones(1), ("a",))


def test_the_hold_out_may_change_until_somebody_was_judged_on_it(forker, tmp_path):
    registry = Registry(str(tmp_path / "registry"))
    first, second = pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0]})
    pin_holdout(registry, first, UNITS)
    assert pin_holdout(registry, second, UNITS)["rows"] == 1
    assert forker.order("promote", tmp_path)["code"] == 0
    assert pin_holdout(registry, second, UNITS)["rows"] == 1
    with pytest.raises(BlockedError, match="hold-out has changed"):
        pin_holdout(registry, first, UNITS)


def test_months_clusters_and_usual_ranges_are_no_other_hold_out(forker, tmp_path):
    """Registries frozen by releases that did not know them go on; other units still do not."""
    registry = Registry(str(tmp_path / "registry"))
    rows = pd.DataFrame({"a": [1.0, 2.0]})
    frozen = pin_holdout(registry, rows, UNITS)
    assert forker.order("promote", tmp_path)["code"] == 0
    known = replace(UNITS, ranges=ObservedRanges(np.zeros(1), np.ones(1), ("a",)))
    more = rows.assign(**{"cluster:branch": ["x", "y"], "window:month_1": [0.0, 1.0]})
    assert pin_holdout(registry, more, known) == frozen
    with pytest.raises(BlockedError, match="or other units"):
        pin_holdout(registry, rows, Standardiser(np.zeros(1), 2.0 * np.ones(1), ("a",)))
