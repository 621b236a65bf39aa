"""Draw docs/papers/score_scale.svg: what multiplying a score by a number does to its accuracy.

    python -m benchmarks.figure_score_scale

The decisions of a rule do not change when its score is multiplied; the answers of the published
people do. Embedded credit table, cost scale 1, six splits.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path

import numpy as np
import torch

from countermove.data.cleaning import clean
from countermove.data.schema import load_schema
from countermove.data.sources import read_embedded
from countermove.experiments.tables import Sampling, make_split
from countermove.learning import StrategicClassifier, accuracy_after
from countermove.learning.comparison import train_blind
from countermove.people import QuadraticCost
from countermove.response import NoResponse, named_response

ROOT = Path(__file__).parent.parent
FACTORS = np.geomspace(0.5, 100.0, 17)
SPLITS = 6
LINES = {
    "benchmark": ("blind rule, nobody moves", "#1f2933", "6 4"),
    "published": ("blind rule, published response", "#c53030", ""),
    "best": ("blind rule, best response", "#9aa5b1", ""),
    "strategic": ("strategic rule, best response", "#00796b", ""),
}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 250, 30, 60
LOWEST, HIGHEST = 0.45, 0.75


def measure() -> dict[str, np.ndarray]:
    """Return the mean test accuracy of every line at every factor."""
    schema = load_schema("credit", ROOT / "conf" / "base" / "schemas")
    table = clean(read_embedded("credit"), schema), schema
    sampling = Sampling(datasets=["credit"], max_rows=3000)
    found: dict[str, list[list[float]]] = {name: [] for name in LINES}
    cost = QuadraticCost(1.0)
    people = {
        "benchmark": NoResponse(),
        "published": named_response("published", cost, None, 0.2),
        "best": named_response("best", cost, None, 0.2),
    }
    for seed in range(SPLITS):
        split = make_split(sampling, table, seed)
        blind = train_blind(split, loss="logistic", random_state=seed).score_
        # The published comparison measures the blind rule at norm one.
        norm = math.hypot(*blind.weight.tolist(), blind.bias.item())
        aware = StrategicClassifier(cost=cost, standardise=False, random_state=seed)
        aware = aware.fit(*split.train, validation=split.validation).score_
        for name in LINES:
            rule, response = (aware, "best") if name == "strategic" else (blind, name)
            unit = 1.0 if name == "strategic" else norm
            found[name].append(
                [
                    accuracy_after(times(rule, f / unit), *split.test, people[response]).accuracy
                    for f in FACTORS
                ]
            )
    return {name: np.mean(rows, axis=0) for name, rows in found.items()}


def times(score, factor):
    """Return the score multiplied by a number."""
    louder = copy.deepcopy(score)
    with torch.no_grad():
        for parameter in louder.parameters():
            parameter.mul_(factor)
    return louder


def across(factor: float) -> float:
    """Return the horizontal place of a factor."""
    share = math.log(factor / FACTORS[0]) / math.log(FACTORS[-1] / FACTORS[0])
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def height(accuracy: float) -> float:
    """Return the vertical place of an accuracy."""
    share = (accuracy - LOWEST) / (HIGHEST - LOWEST)
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def drawing(curves: dict[str, np.ndarray]) -> str:
    """Return the figure as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="13" role="img" '
        'aria-label="Accuracy on credit against the factor the score is multiplied by">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for accuracy in np.arange(0.45, 0.76, 0.05):
        y = height(accuracy)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e4e7eb"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{accuracy:.2f}</text>'
        )
    for factor in (0.5, 1, 2, 5, 10, 20, 50, 100):
        parts.append(
            f'<text x="{across(factor):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
            f"{factor:g}</text>"
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{HEIGHT - 15}" text-anchor="middle">score (norm one) times</text>'
    )
    parts.append(f'<text x="{LEFT - 50}" y="{TOP - 10}">accuracy on test rows, credit</text>')
    # Labels keep their distance where lines end close together.
    places: list[float] = []
    for name in sorted(LINES, key=lambda name: -curves[name][-1]):
        label, colour, dash = LINES[name]
        points = " ".join(
            f"{across(f):.1f},{height(a):.1f}" for f, a in zip(FACTORS, curves[name], strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2.5" '
            f'stroke-dasharray="{dash}"/>'
        )
        y = max(height(curves[name][-1]) + 4, places[-1] + 18 if places else 0.0)
        places.append(y)
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{y:.1f}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    curves = measure()
    for name, values in curves.items():
        print(name, np.round(values, 3))
    (ROOT / "docs" / "papers" / "score_scale.svg").write_text(drawing(curves))
