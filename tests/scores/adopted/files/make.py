"""Make the stored XGBoost models, each with its own probabilities of stored rows.

Run once, in an environment with xgboost and this package: ``python make.py`` in this
folder. ``python make.py tiny`` makes only the models of the fabricated loans.
"""

import json
import sys

import numpy as np
import xgboost


def people(n, seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    X = Z * [1.0, 3.0, 1e4, 1.0, 1.0] + [0.0, 5.0, 5e4, 0.0, 0.0]
    X[:, 1], X[:, 4] = np.round(X[:, 1]), X[:, 4] > 0.0
    y = (Z @ [1.0, 0.5, -1.0, 0.5, 0.5] + rng.normal(size=n) > 0.7).astype(int)
    return np.where(rng.random(X.shape) < 0.08, np.nan, X), y


def tiny():
    """A model of the fabricated loans: what an audit is given."""
    from countermove.data.synthetic import fabricate

    table = fabricate("tiny", 300, seed=5)
    rows, y = table.drop(columns=["person", "group", "repaid"]), table["repaid"] == "yes"
    levels = {"school": 0.0, "college": 1.0, "university": 2.0}
    rows = rows.assign(education=rows["education"].map(levels)).astype(float)
    xgboost.XGBClassifier(n_estimators=10, max_depth=3, random_state=0).fit(
        rows, y.astype(int)
    ).save_model("tiny_xgboost.json")


def main():
    X, y = people(600, 0)
    fresh = people(120, 1)[0]
    said = {"rows": [[None if np.isnan(v) else v for v in row] for row in fresh.tolist()]}
    model = xgboost.XGBClassifier(n_estimators=12, max_depth=3, random_state=0).fit(X, y)
    model.save_model("xgboost.json")
    said["xgboost"] = model.predict_proba(fresh)[:, 1].astype(float).tolist()
    dart = xgboost.XGBClassifier(
        booster="dart", rate_drop=0.3, n_estimators=8, max_depth=3, random_state=0
    ).fit(X, y)
    dart.save_model("xgboost_dart.json")
    said["xgboost_dart"] = dart.predict_proba(fresh)[:, 1].astype(float).tolist()
    coded = np.column_stack([X[:, 0], np.abs(np.nan_to_num(X[:, 1])) % 6])
    kinds = ["q", "c"]
    sets = xgboost.train(
        {"objective": "binary:logistic", "max_depth": 3, "max_cat_to_onehot": 1},
        xgboost.DMatrix(coded, y, feature_types=kinds, enable_categorical=True),
        8,
    )
    sets.save_model("xgboost_categories.json")
    asked = np.column_stack([fresh[:, 0], np.abs(np.nan_to_num(fresh[:, 1])) % 6])
    said["coded_rows"] = [[None if np.isnan(v) else v for v in row] for row in asked.tolist()]
    got = sets.predict(xgboost.DMatrix(asked, feature_types=kinds, enable_categorical=True))
    said["xgboost_categories"] = got.astype(float).tolist()
    said["versions"] = {"xgboost": xgboost.__version__}
    with open("probabilities.json", "w") as file:
        json.dump(said, file)


if __name__ == "__main__":
    if sys.argv[1:] != ["tiny"]:
        main()
    tiny()
