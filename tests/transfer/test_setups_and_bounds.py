"""The paper's set-ups meet the bounds: what applies, what does not, and whether it holds."""

from __future__ import annotations

import numpy as np
import pytest

from countermove.transfer import all_bounds
from countermove.transfer.known_answers import GRID
from countermove.transfer.optimal import best_deployed
from countermove.transfer.replicator import Replicator, shifted_pair
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.setting import Setting, StrategicSetup, choose
from countermove.transfer.uniform_response import UniformResponse

BUDGET, N = 0.2, 20_000


def law(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-12.0 * (x - 0.5)))


def strategic(seed: int, labels: str):
    """Return deployments of thresholds on x - 0.5 among n strategic people, same luck for all."""
    x = np.random.default_rng(seed).random(N)

    def deploy(threshold: float) -> Pair:
        people = UniformResponse(0.5 + threshold, BUDGET)
        return people.pair(x, law, np.random.default_rng(seed + 1), labels, zero=0.5)

    return deploy


def bounds_of(labels: str):
    chosen_on, judged_on = strategic(0, labels), strategic(10, labels)
    grid = np.linspace(-0.3, 0.3, 25).tolist()
    best, best_pair = best_deployed(chosen_on, grid)
    setting = Setting(
        judged_on(0.0),
        judged_on(best),
        choose(chosen_on(0.0), best_pair, best),
        setup=StrategicSetup(BUDGET, 0.5),
    )
    return {(c.name, c.kind): c for c in all_bounds(setting)}, best


def test_strategic_people_whose_labels_follow_meet_section_4():
    found, best = bounds_of("follow")
    loss = UniformResponse(0.5, BUDGET).induced_error(law) - min(
        UniformResponse(k / GRID, BUDGET).induced_error(law) for k in range(40, 161, 4)
    )
    assert best != 0.0
    for name in ("theorem_4_2", "theorem_4_2_tighter", "proposition_4_7"):
        for kind in ("estimate", "certificate"):
            certificate = found[name, kind]
            assert certificate.applicable, certificate.reason
            assert certificate.value >= loss
    assert not found["theorem_5_2", "estimate"].applicable


def test_strategic_people_who_keep_their_labels_do_not():
    found, _ = bounds_of("kept")
    assert not found["theorem_4_2", "estimate"].applicable
    assert found["theorem_3_1", "certificate"].applicable


@pytest.fixture(scope="module")
def replicated() -> dict[tuple[str, str], object]:
    rng = np.random.default_rng(0)
    y = np.where(rng.random(N) < 0.4, 1.0, -1.0)
    source = Sample(rng.normal(0.75 * y, 1.0), y)

    def deploy(threshold: float) -> Pair:
        return shifted_pair(source, Replicator(), threshold)

    best, best_pair = best_deployed(deploy, np.linspace(-1.5, 1.5, 13).tolist())
    own = deploy(0.0)
    setting = Setting(own, best_pair, choose(own, best_pair, best))
    found = {(c.name, c.kind): c for c in all_bounds(setting)}
    shares = [p.induced.share(p.induced.favourable) for p in (own, best_pair)]
    errors = [own.source.error(), own.induced.error()]
    return {"found": found, "shares": shares, "errors": errors}


def test_replicator_dynamics_meet_section_5(replicated):
    found = replicated["found"]
    assert found["theorem_5_2", "estimate"].value <= max(replicated["errors"])
    apart = abs(replicated["shares"][0] - replicated["shares"][1])
    assert found["proposition_5_3", "estimate"].value >= apart
    assert not found["theorem_4_2", "estimate"].applicable


def test_weights_are_no_draws_so_nothing_is_certified(replicated):
    assert not replicated["found"]["theorem_5_2", "certificate"].applicable
