"""After `make setup` nothing is compiled in a first fit."""

from __future__ import annotations

import os
import subprocess
import sys

FIT = """
import numpy as np
from countermove import StrategicClassifier
X = np.random.default_rng(1).standard_normal((200, 5))
y = X[:, 0] > 0
for response in ("best", "smooth", "published", "none"):
    StrategicClassifier(response=response, max_epochs=1).fit(X, y).respond(X)
from countermove.people import ActionSet
from countermove.recourse import recommend
for bounded in (ActionSet(lower=[-2.0] * 5), ActionSet(upper=[2.0] * 5, integer=[1])):
    rule = StrategicClassifier(actions=bounded).fit(X, y)
    recommend(rule, X, actions=bounded)
"""


def test_a_fit_after_set_up_compiles_nothing():
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT],
        env=os.environ | {"NUMBA_DEBUG_CACHE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in found.stdout.splitlines() if line.startswith("[cache]")]
    assert any("data loaded from" in line for line in told)
    assert [line for line in told if "data saved to" in line] == []
