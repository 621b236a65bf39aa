r"""Accuracy against social good: one rule per strength, each started from its neighbour.

Every point is measured on validation and on test rows, by the smoothed measure
it was trained on and by the hard ones. A point is chosen on validation rows;
test rows only report.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from countermove.errors import ParameterError
from countermove.learning._populations import JudgedMembers
from countermove.learning.classifier import StrategicClassifier
from countermove.learning.comparison import AS_GIVEN, Labelled, Split, judging_population
from countermove.learning.evaluation import accuracy_after, worst_accuracy
from countermove.learning.regularisers import SocialRegulariser
from countermove.learning.social import social_measures
from countermove.people import ActionSet, Cost
from countermove.response import Response
from countermove.response.response_set import RobustResponse, rational
from countermove.scores import Score

logger = logging.getLogger(__name__)

AIMS = {"utility": ("utility", 1.0), "burden": ("burden", -1.0), "recourse": ("recourse_all", 1.0)}
"""The hard measure each kind of regulariser is judged by, and whether more of it is better."""
HARD = ("utility", "burden", "burden_unscaled", "recourse", "recourse_all")


def trade_off(
    split: Split,
    regulariser: SocialRegulariser,
    strengths: Sequence[float],
    response: Any,
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    epochs: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    r"""Train one rule per strength and measure all of them.

    .. math:: s_k = \arg\min_s \text{risk}(s) + \lambda_k R(s), \quad \text{started at } s_{k-1}

    The unregularised rule is trained as ``settings`` say. The others keep the mean of their
    steps (``stop_by="average"``): validation rows choose among strengths, and an epoch chosen
    by the same rows would tie every strength to the luckiest epoch of its neighbour.

    Parameters
    ----------
    split
        Rows to train on, to stop and choose by, and to report on.
    regulariser
        Which measure; its own strength is not used.
    strengths
        In any order; 0, the unregularised rule, comes first whether named or not.
    response, cost, actions
        The population, as `StrategicClassifier` takes it.
    epochs
        Of Adam at every strength above 0, all of them run; None: ``max_epochs`` of the settings.
    settings
        Further arguments of `StrategicClassifier`.

    Returns
    -------
    DataFrame
        One row per strength, from 0 on: ``<part>_accuracy``, ``<part>_smoothed``, the hard
        measures ``<part>_<name>`` and ``<part>_cut_off`` (the deserving whom no allowed move
        brings to approval) for the parts ``validation`` and ``test``, all under the stated
        response (worst member of a robust one); ``test_rational_<name>`` for people who
        give the best response to the rule; ``seconds``, of the processor.
    """
    people = judging_population(response, cost, actions, settings)
    settings = AS_GIVEN | {"selection": "none"} | settings
    onward: dict[str, Any] = {"start": "given"}
    if settings.get("optimiser") == "adam" or settings.get("loss") == "hinge":
        onward |= {"stop_by": "average"} | ({} if epochs is None else {"max_epochs": epochs})
    rows, rule = [], None
    for strength in _ascending(strengths):
        started = time.process_time()
        aim = replace(regulariser, strength=strength)
        warm: dict[str, Any] = {} if rule is None else {"score": rule, **onward}
        classifier = StrategicClassifier(
            cost=cost,
            actions=actions,
            regulariser=aim if strength else None,
            **(settings | {"response": response} | warm),
        ).fit(*split.train, validation=split.validation)
        rule = classifier.score_
        seconds = time.process_time() - started
        rows.append(
            {"strength": strength, **_measured(rule, split, aim, people), "seconds": seconds}
        )
        logger.info("%s, strength %.4g: %.1f s", regulariser.kind, strength, seconds)
    return pd.DataFrame(rows)


def mark(curve: pd.DataFrame, kind: str, tolerance: float) -> pd.DataFrame:
    """Mark the Pareto front and the point to choose, both by validation rows alone."""
    # Chosen: the best hard measure within the tolerance of the unregularised rule's accuracy (the
    # first row); of several the most accurate, then the weakest.
    name, sign = AIMS[kind]
    accuracy = curve["validation_accuracy"].to_numpy()
    good = sign * curve[f"validation_{name}"].to_numpy(dtype=np.float64)
    good = np.where(np.isnan(good), -np.inf, good)
    near = accuracy >= accuracy[0] - tolerance - 1e-12
    order = np.lexsort((-np.arange(len(curve)), accuracy, good, near))
    chosen = np.zeros(len(curve), dtype=bool)
    chosen[order[-1]] = True
    return curve.assign(front=pareto_front(accuracy, good), chosen=chosen)


def pareto_front(*aims: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points no other point beats: as good in every aim and better in one."""
    values = np.stack(aims)
    at_least = (values[:, :, None] >= values[:, None, :]).all(axis=0)
    better = (values[:, :, None] > values[:, None, :]).any(axis=0)
    return np.asarray(~(at_least & better).any(axis=0), dtype=np.bool_)


def choice_of(curve: pd.DataFrame, kind: str) -> dict[str, float]:
    """Return the chosen point beside the unregularised one: validation chose, test reports."""
    name, _ = AIMS[kind]
    plain, chosen = curve.iloc[0], curve[curve["chosen"]].iloc[0]
    found = {"strength": float(chosen["strength"])}
    for column in ("validation_accuracy", f"validation_{name}", "test_accuracy", f"test_{name}"):
        found |= {f"{column}_plain": float(plain[column]), column: float(chosen[column])}
    before, after = found[f"test_{name}_plain"], found[f"test_{name}"]
    relative = (after - before) / abs(before) if before else float("nan")
    return found | {"change": after - before, "relative_change": relative}


def _ascending(strengths: Sequence[float]) -> list[float]:
    if not len(strengths):
        raise ParameterError("a trade-off needs at least one strength")
    return sorted({0.0, *(float(strength) for strength in strengths)})


def _measured(
    rule: Score, split: Split, aim: SocialRegulariser, people: JudgedMembers
) -> dict[str, float | int | None]:
    found: dict[str, float | int | None] = {}
    stated = _joint(people)
    for part in ("validation", "test"):
        rows: Labelled = getattr(split, part)
        hard = social_measures(rule, *rows, stated).to_json()
        found[f"{part}_accuracy"] = worst_accuracy(rule, *rows, people.members)
        found[f"{part}_smoothed"] = _smoothed(rule, rows, aim, people)
        found |= {f"{part}_{name}": hard[name] for name in HARD}
        found[f"{part}_cut_off"] = hard["deserving_cut_off"]
    best = rational(stated)
    hard = social_measures(rule, *split.test, best).to_json()
    found["test_rational_accuracy"] = accuracy_after(rule, *split.test, best).accuracy
    return found | {f"test_rational_{n}": hard[n] for n in ("utility", "recourse", "recourse_all")}


def _smoothed(rule: Score, rows: Labelled, aim: SocialRegulariser, people: JudgedMembers) -> float:
    """Return the smoothed measure of training; of several members the mean."""
    X, y = (torch.from_numpy(part) for part in rows)
    with torch.no_grad():
        return float(np.mean([float(aim.measure(rule, X, y, m)) for m in people.members]))


def _joint(people: JudgedMembers) -> Response:
    members = people.members
    return members[0] if len(members) == 1 else RobustResponse(members, people.weights)
