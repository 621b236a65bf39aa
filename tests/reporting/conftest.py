"""What a small run may have found, written out by hand."""

import pandas as pd
import pytest

from countermove.reporting.page import Findings

SOCIAL = {
    "utility": 0.1,
    "burden": 0.4,
    "burden_unscaled": 0.4,
    "recourse": None,
    "recourse_all": 0.6,
    "people": 40,
    "deserving_cut_off": 3,
}
RULES = ("blind", "strategic", "calibrated")
METRICS = {
    "dataset": "tiny",
    "accuracy": {
        "nobody_moves": {"blind": 0.9, "strategic": 0.7},
        "after_response": {"blind": 0.5, "strategic": 0.88},
        "sensitivity": {
            "none": {"blind": 0.9, "strategic": 0.7},
            "best": {"blind": 0.5, "strategic": 0.88},
            "smooth_0.5": {"blind": 0.6, "strategic": 0.81},
        },
        "uncalibrated": {"strategic": 0.89},
    },
    "social": SOCIAL
    | {
        "by_model": dict.fromkeys(RULES, SOCIAL),
        "by_group": {
            "Sex": {"f": dict.fromkeys(RULES, SOCIAL), "<b>m": dict.fromkeys(RULES, SOCIAL)}
        },
    },
    "threshold": 0.45,
    "response": {"kind": "best", "cost": {"kind": "quadratic", "scale": 1.0}},
    "rows": {"train": 100, "test": 1234},
    "seed": 7,
    "versions": {"countermove": "0.1.0"},
    "data_hash": "a" * 64,
}
CERTIFICATES = [
    {"name": "recourse_miss_rate", "direction": "upper", "value": 0.05, "level": 0.95, "n": 100}
]
ADVICE = pd.DataFrame(
    {
        "row_id": ["a", "b", "c", "d", "<i>e</i>"],
        "decision": [1, -1, -1, -1, -1],
        "probability": [0.9, 0.4, 0.3, 0.2, 0.1],
        "status": ["NOT_NEEDED", "FOUND", "FOUND", "PROVEN_NONE", "NOT_FOUND"],
        "probability_after": [0.9, 0.6, 0.7, float("nan"), float("nan")],
        "cost": [0.0, 3.0, 1.0, float("nan"), float("nan")],
        "change:income": [0.0, 5.0, 2.0, float("nan"), float("nan")],
        "change:loans": [0.0, -1.0, 0.0, float("nan"), float("nan")],
        "words": [
            "Approved: nothing to do.",
            "Raise income from 1 to 6 EUR; lower loans from 2 to 1 <loans>.",
            "Raise income from 1 to 3 EUR.",
            "No allowed change leads to approval.",
            "<script>alert(1)</script>",
        ],
    }
)


@pytest.fixture
def bare():
    """A run of which only the metrics and the certificates are left."""
    return Findings(METRICS, CERTIFICATES)


@pytest.fixture
def advice():
    """Five people: approved, two with recourse, one proven to have none, one search that failed."""
    return ADVICE.copy()
