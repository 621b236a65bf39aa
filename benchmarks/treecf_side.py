"""What treecf finds for the people of `bench_trees`; runs in an environment of its own.

``python treecf_side.py FOLDER`` reads ``model.txt`` (LightGBM text) and ``case.npz`` and writes
``treecf.npz``: cost in treecf's own units (infinite where certified infeasible), proof, seconds.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from pathlib import Path

import lightgbm
import numpy as np
from treecf import Explainer, Freeze, Target


def main(folder: Path) -> None:
    """Explain everybody by the exact backend, from nothing."""
    warnings.simplefilter("ignore")
    case = np.load(folder / "case.npz")
    model = lightgbm.Booster(model_file=str(folder / "model.txt"))
    names = model.feature_name()
    held = [name for j, name in enumerate(names) if j not in set(case["movable"].tolist())]
    explainer = Explainer(
        model, background=case["background"], constraints=[Freeze(n) for n in held]
    )
    target = Target.probability(range=(0.5, 1.0))
    cost, proven, seconds = [], [], []
    for x in case["people"]:
        start = time.process_time()
        found = explainer.explain(
            x, target, backend="exact", warm_start=False, time_budget_s=math.inf, seed=0
        )
        seconds.append(time.process_time() - start)
        cost.append(getattr(found, "distance", math.inf))
        proven.append(found.proof in ("optimal", "certified"))
    np.savez(folder / "treecf.npz", cost=cost, proven=proven, seconds=seconds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
