"""A first run that fails binds nobody: its hold-out is frozen once somebody was judged on it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
