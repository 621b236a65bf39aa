"""What another library finds for the people of `bench_counterfactuals`, in its own environment.

``python counterfactual_side.py LIBRARY FOLDER`` reads ``model.txt`` (LightGBM text) and
``case.npz`` and writes ``found.npz``: where everybody is sent (NaN: nowhere), CPU seconds each,
and the version.
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

Case = Mapping[str, Any]
Explain = Callable[[int, np.ndarray], Any]


def treecf(model: lightgbm.Booster, case: Case) -> Explain:
    """Return its exact search, with every constraint of the case it has words for."""
    from treecf import Explainer, Freeze, Grid, Monotone, Range, Target

    constraints: list[Any] = []
    for j, name in enumerate(model.feature_name()):
        if case["held"][j]:
            constraints.append(Freeze(name))
            continue
        constraints.append(Range(name, float(case["least"][j]), float(case["most"][j])))
        if case["way"][j]:
            constraints.append(Monotone(name, "increase" if case["way"][j] > 0 else "decrease"))
    steps = dict(zip(model.feature_name(), case["step"], strict=True))
    explainer = Explainer(
        model,
        background=case["background"],
        constraints=constraints,
        normalizers=case["unit"],
        value_policy={name: Grid(float(step)) for name, step in steps.items() if np.isfinite(step)},
    )
    target = Target.probability(range=(0.5, 1.0))

    def explain(_: int, x: np.ndarray) -> Any:
        found = explainer.explain(
            x, target, backend="exact", warm_start=False, time_budget_s=math.inf, seed=0
        )
        return getattr(found, "x_cf", None)

    return explain


def dice(model: lightgbm.Booster, case: Case, method: str) -> Explain:
    """Return DiCE, with the columns and the ranges everybody may move in."""
    import dice_ml
    import pandas as pd

    names = model.feature_name()
    table = pd.DataFrame(case["background"], columns=names)
    whole = np.isfinite(case["step"])
    table[np.array(names)[whole]] = table[np.array(names)[whole]].astype(int)
    table["y"] = (model.predict(case["background"]) >= 0.5).astype(int)

    class Fitted:
        """The booster as DiCE asks of a classifier."""

        classes_ = np.array([0, 1])

        def predict_proba(self, rows: Any) -> np.ndarray:
            chance = model.predict(np.asarray(rows, float), num_threads=1)
            return np.column_stack([1.0 - chance, chance])

        def predict(self, rows: Any) -> np.ndarray:
            return (self.predict_proba(rows)[:, 1] >= 0.5).astype(int)

    data = dice_ml.Data(dataframe=table, continuous_features=names, outcome_name="y")
    explainer = dice_ml.Dice(data, dice_ml.Model(Fitted(), backend="sklearn"), method=method)
    movable = [name for name, held in zip(names, case["held"], strict=True) if not held]

    def explain(i: int, x: np.ndarray) -> Any:
        ranges = {
            name: [float(case["low"][i, j]), float(case["high"][i, j])]
            for j, name in enumerate(names)
            if name in movable
        }
        query = pd.DataFrame([x], columns=names).astype(table.drop(columns="y").dtypes.to_dict())
        found = explainer.generate_counterfactuals(
            query, total_CFs=1, desired_class=1, features_to_vary=movable,
            permitted_range=ranges, verbose=False,
            **({"random_seed": 0} if method == "random" else {}),
        )  # fmt: skip
        frame = found.cf_examples_list[0].final_cfs_df
        return None if frame is None or not len(frame) else frame[names].to_numpy(float)[0]

    return explain


def alibi(model: lightgbm.Booster, case: Case) -> Explain:
    """Return counterfactuals guided by prototypes; a person's bounds are those of the search."""
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()
    from alibi.explainers import CounterfactualProto

    unit, middle = case["unit"], case["background"].mean(axis=0)

    def chances(rows: np.ndarray) -> np.ndarray:
        chance = model.predict(rows * unit + middle, num_threads=1)
        return np.column_stack([1.0 - chance, chance])

    inside = ((case["background"] - middle) / unit).astype(np.float32)

    def explain(i: int, x: np.ndarray) -> Any:
        tf.compat.v1.reset_default_graph()
        bounds = tuple(((case[key][i] - middle) / unit)[None] for key in ("low", "high"))
        search = CounterfactualProto(
            chances, (1, len(x)), use_kdtree=True, theta=10.0, feature_range=bounds,
            max_iterations=200, c_init=1.0, c_steps=3, eps=(0.1, 0.1),
        )  # fmt: skip
        search.fit(inside, trustscore_kwargs=None)
        found = search.explain(((x - middle) / unit)[None].astype(np.float32), target_class=[1])
        return None if found.cf is None else found.cf["X"][0] * unit + middle

    return explain


LIBRARIES: dict[str, tuple[str, Callable[[lightgbm.Booster, Case], Explain]]] = {
    "treecf": ("treecf", treecf),
    "dice_random": ("dice-ml", lambda model, case: dice(model, case, "random")),
    "dice_genetic": ("dice-ml", lambda model, case: dice(model, case, "genetic")),
    "alibi": ("alibi", alibi),
}


def main(library: str, folder: Path) -> None:
    """Ask about everybody, one by one; what a library raises counts as not found."""
    warnings.simplefilter("ignore")
    case = dict(np.load(folder / "case.npz"))
    package, made = LIBRARIES[library]
    explain = made(lightgbm.Booster(model_file=str(folder / "model.txt")), case)
    places = np.full(case["people"].shape, np.nan)
    seconds, raised = np.zeros(len(places)), []
    for i, x in enumerate(case["people"]):
        start = time.process_time()
        try:
            found = explain(i, x)
        except Exception as error:  # noqa: BLE001  (libraries say "none found" in many ways)
            found = None
            raised.append(f"{type(error).__name__}: {error}"[:200])
        seconds[i] = time.process_time() - start
        if found is not None:
            places[i] = found
    for said in sorted(set(raised))[:3]:
        print(f"{library}: {raised.count(said)} x {said}", file=sys.stderr)
    np.savez(folder / "found.npz", places=places, seconds=seconds, version=version(package))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
