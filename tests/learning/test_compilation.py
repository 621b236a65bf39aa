"""After set-up nothing is compiled in a first run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

COMPILE = """
from countermove.learning.compilation import compile_kernels
from countermove.recourse.compilation import compile_search
compile_kernels()
compile_search()
"""
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


@pytest.mark.slow
def test_a_fit_after_set_up_compiles_nothing(tmp_path):
    def run(code):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            check=True,
        )
        return {path.name for path in tmp_path.rglob("*.nbc")}

    compiled = run(COMPILE)
    assert compiled
    assert run(FIT) == compiled
