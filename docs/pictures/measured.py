"""The numbers behind the pictures: each function runs the library and returns plain lists."""

from __future__ import annotations

from typing import Any

import numpy as np

Numbers = dict[str, Any]
DIGITS = 4


def plain(values: Any) -> Any:
    """Return arrays as lists of rounded numbers."""
    return np.round(np.asarray(values, dtype=float), DIGITS).tolist()


def move_map() -> Numbers:
    """Two rules on the same people: where everybody stands, and where they go."""
    from countermove import StrategicClassifier
    from countermove.data.synthetic import GaussianPopulation
    from countermove.people import QuadraticCost

    X, y = GaussianPopulation(centre=(1.1, 0.9)).sample(4200, seed=3)
    train, test, shown = slice(0, 2000), slice(2000, 4000), slice(4000, 4150)
    found: Numbers = {"before": plain(X[shown]), "label": plain(y[shown])}
    for name, response in {"blind": "none", "strategic": "best"}.items():
        rule = StrategicClassifier(response=response, cost=QuadraticCost(1.0), standardise=False)
        rule.fit(X[train], y[train])
        if name == "blind":  # trained as if nobody moved; people move all the same
            rule.set_params(response="best")
        answer = rule.respond(X[shown])
        found[name] = {
            "after": plain(answer.x_new),
            "approved": plain(rule.predict(answer.x_new) > 0),
            "weights": plain(rule.coef_.ravel()),
            "intercept": float(np.round(rule.intercept_.ravel()[0], DIGITS)),
            "nobody_moves": round(rule.score(X[test], y[test]), DIGITS),
            "after_response": round(
                rule.score_after_response(X[test], y[test], response="best"), DIGITS
            ),
        }
    return found


def cost() -> Numbers:
    """Accuracy after response as moves become more expensive, by the price a rule counts on."""
    from countermove import StrategicClassifier
    from countermove.data.synthetic import GaussianPopulation
    from countermove.people import QuadraticCost
    from countermove.response import BestResponse

    X, y = GaussianPopulation(centre=(1.1, 0.9)).sample(4000, seed=3)
    train, test = slice(0, 2000), slice(2000, 4000)
    scales = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    blind = StrategicClassifier(response="none", standardise=False).fit(X[train], y[train])
    assumed = StrategicClassifier(response="best", standardise=False).fit(X[train], y[train])
    found: Numbers = {"scale": scales, "blind": [], "right price": [], "price 1 assumed": []}
    for scale in scales:
        people = BestResponse(QuadraticCost(scale))
        right = StrategicClassifier(response=people, standardise=False).fit(X[train], y[train])
        for name, rule in (("blind", blind), ("right price", right), ("price 1 assumed", assumed)):
            share = rule.score_after_response(X[test], y[test], response=people)
            found[name].append(round(share, DIGITS))
    return found


def responses() -> Numbers:
    """Accuracy of rules trained for one kind of people, met by another."""
    from countermove import StrategicClassifier
    from countermove.data.synthetic import GaussianPopulation

    X, y = GaussianPopulation(centre=(1.1, 0.9)).sample(3000, seed=3)
    train, test = slice(0, 1500), slice(1500, 3000)
    kinds = ["none", "best", "smooth", "published"]
    found: Numbers = {"people": kinds}
    for trained in kinds:
        rule = StrategicClassifier(response=trained, standardise=False).fit(X[train], y[train])
        found[trained] = [
            round(rule.score_after_response(X[test], y[test], response=met), DIGITS)
            for met in kinds
        ]
    return found


def promise() -> Numbers:
    """Share of people without approval or recourse over thresholds, and the certified limit."""
    from countermove import StrategicClassifier
    from countermove.data.synthetic import GaussianPopulation
    from countermove.people import ActionSet
    from countermove.recourse import best_reachable, calibrate_pare

    X, y = GaussianPopulation(centre=(1.0, 0.5)).sample(22_000, seed=0)
    actions = ActionSet(lower=[-2.0, 0.0], upper=[2.0, 0.0])
    train, calibration, everybody = slice(0, 1000), slice(1000, 2000), slice(2000, None)
    rule = StrategicClassifier(response="none", standardise=False).fit(X[train], y[train])
    calibrated = calibrate_pare(rule, X[calibration], actions=actions, wanted=0.9)
    reached = best_reachable(rule, X[everybody], actions=actions).score
    reach = 1 / (1 + np.exp(-reached))  # the loss is logistic: a score is log-odds
    thresholds = np.linspace(0.02, 0.9, 45)
    return {
        "threshold": plain(thresholds),
        "missed": plain([(reach < at).mean() for at in thresholds]),
        "limit": round(float(calibrated.threshold), DIGITS),
        "missed_at_limit": round(float((reach < calibrated.threshold).mean()), DIGITS),
        "rows": 1000,
    }


def looking_ahead() -> Numbers:
    """How far consecutive models lie apart, retraining after retraining."""
    from countermove.dynamics import (
        Crowd,
        LevelKPopulation,
        LogisticLearner,
        retrain_until_stable,
    )
    from countermove.people import ActionSet, QuadraticCost
    from countermove.response import GainResponse

    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = (rng.random(500) < 1 / (1 + np.exp(-X @ [1.0, -0.7, 0.4]))).astype(float)
    learner = LogisticLearner(penalty=0.05, penalise_intercept=True)
    wishing = GainResponse(QuadraticCost(0.5), ActionSet(immutable=[1]))
    found: Numbers = {}
    for name, shares in {
        "all answer the model": {1: 1.0},
        "half look one step ahead": {1: 0.5, 2: 0.5},
        "all look one step ahead": {2: 1.0},
    }.items():
        people = LevelKPopulation(Crowd(X, y), wishing, shares, who=X[:, 1] < 0)
        gaps = retrain_until_stable(learner, people).gaps
        found[name] = [float(f"{gap:.3g}") for gap in gaps if gap > 1e-9]
    return found


def together() -> Numbers:
    """Loss of one "3" that wants to be read as an "8", moving alone or helped by the others."""
    from sklearn.datasets import load_digits

    from countermove.dynamics import collective_recourse, individual_recourse

    X, y = load_digits(return_X_y=True)
    X, names = X / 16, y.astype(str)
    query = X[y == 3][0]
    budgets = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0]
    found: Numbers = {"budget": budgets}
    for name, way in {"alone": individual_recourse, "together": collective_recourse}.items():
        tried = [way(X, names, query, "8", budget=budget) for budget in budgets]
        found[name] = plain([each.loss for each in tried])
        found[f"{name} reads"] = [str(each.decisions[0]) for each in tried]
    return found
