"""Every bound, in both forms, on people whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.transfer.populations import induced_error

from countermove.certificates import Assumption
from countermove.errors import DataError, ParameterError
from countermove.transfer.bounds import (
    QUANTITIES,
    Setting,
    StrategicSetup,
    all_bounds,
    choose,
    theorem_5_2,
)
from countermove.transfer.estimates import kolmogorov_distance
from countermove.transfer.optimal import best_deployed, threshold_errors
from countermove.transfer.sample import Pair, Sample
from countermove.transfer.shifts import Replicator, UniformResponse, shifted_pair

NAMES = {
    "theorem_3_1", "theorem_3_1_linear", "theorem_3_2", "theorem_3_2_solved", "theorem_3_3",
    "corollary_3_4", "theorem_4_2", "theorem_4_2_tighter", "theorem_4_6", "proposition_4_7",
    "theorem_5_1", "theorem_5_1_sharper", "theorem_5_2", "proposition_5_3",
}  # fmt: skip


def draw(rng, n, labels, threshold=0.0):
    """People with P(Y | x) logistic; those up to 0.6 below a threshold move just above it."""
    x = rng.normal(size=n)
    luck = rng.random(n)
    new = np.where((x < threshold) & (x > threshold - 0.6), threshold + 0.3 * rng.random(n), x)
    y = np.where(luck < 1 / (1 + np.exp(-2 * x)), 1.0, -1.0)
    after = y if labels == "kept" else np.where(luck < 1 / (1 + np.exp(-2 * new)), 1.0, -1.0)
    return Pair(Sample(x, y, x[:, None]), Sample(new, after, new[:, None]), labels, paired=True)


def setting(labels="follow", n=3000, best=0.4, **more):
    rng = np.random.default_rng(0)
    chosen = choose(draw(rng, n, labels), draw(rng, n, labels, best), best)
    states = np.random.default_rng(1), np.random.default_rng(1)
    own, other = draw(states[0], n, labels), draw(states[1], n, labels, best)
    return Setting(own, other, chosen, **more)


def by_name(found, kind="certificate"):
    return {claim.name: claim for claim in found if claim.kind == kind}


def test_every_bound_comes_in_both_forms_with_what_it_rests_on():
    found = all_bounds(setting())
    for kind in ("estimate", "certificate"):
        assert set(by_name(found, kind)) == NAMES
    for claim in found:
        assert claim.n == 3000
        assert len(claim.assumptions) >= 4
        assert claim.reference
        assert claim.applicable == (claim.reason == "")
        assert claim.applicable or claim.reason.startswith("not applicable: ")
        assert (claim.level == pytest.approx(0.95)) == (
            claim.applicable and claim.kind == "certificate"
        )
        assert claim.to_json()["applicable"] == claim.applicable
        assert any(words in claim.words for words in QUANTITIES.values())


def test_certificates_are_more_careful_than_estimates():
    found = all_bounds(setting())
    careful = by_name(found)
    for name, rough in by_name(found, "estimate").items():
        if careful[name].applicable and rough.applicable:
            sign = 1 if rough.direction == "upper" else -1
            assert sign * careful[name].value >= sign * rough.value - 1e-12, name


def test_section_4_is_offered_only_where_labels_follow():
    gaming = by_name(all_bounds(setting("kept")))
    for name in ("theorem_4_2", "theorem_4_2_tighter", "theorem_4_6"):
        assert gaming[name].value is None
        assert "P(Y | X) changes" in gaming[name].reason
    following = by_name(all_bounds(setting("follow")))
    assert following["theorem_4_2_tighter"].applicable
    assert following["theorem_4_2_tighter"].value < following["theorem_4_2"].value


def test_people_who_leave_the_support_are_counted_and_weights_drop_out():
    """The paper's own DAG moves up to 45 % of the people where no source people stood."""
    given = setting()
    source = given.own.source
    away = Sample(source.score + 2.0, source.label, source.features + 2.0)
    left = replace(given, own=Pair(source, away, "follow", paired=True))
    for claim in all_bounds(left):
        if claim.name in ("theorem_4_2", "theorem_4_2_tighter"):
            assert claim.value is None
            assert "of the induced people beyond the source's scores" in claim.reason
        if claim.name == "theorem_3_1":
            assert claim.value is not None


def test_a_rule_that_another_threshold_beats_loses_only_the_printed_forms():
    given = setting()
    moved = [
        Pair(*(Sample(s.score - 1.0, s.label, s.features) for s in (pair.source, pair.induced)),
             "follow", paired=True)
        for pair in (given.own, given.best)
    ]  # fmt: skip
    chosen = choose(*moved, -0.6)
    assert threshold_errors(moved[0].source).best()[0] < -0.5
    found = by_name(all_bounds(replace(given, own=moved[0], best=moved[1], chosen=chosen)))
    assert "optimal on the source" in found["theorem_4_2"].reason
    assert found["theorem_4_2_tighter"].applicable


def test_a_refuted_label_model_silences_section_4():
    wrong = Assumption("the chances are right", False, "a test says otherwise")
    found = by_name(all_bounds(setting(label_model=wrong)))
    assert "a test says otherwise" in found["theorem_4_2"].reason
    assert found["theorem_3_1"].applicable


def test_target_shift_bounds_need_target_shift():
    moving = by_name(all_bounds(setting("kept")))
    assert "the response moves the features of 2" in moving["theorem_5_1_sharper"].reason
    rng = np.random.default_rng(2)
    samples = []
    for share in (0.5, 0.7, 0.6):
        y = np.where(rng.random(3000) < share, 1.0, -1.0)
        samples.append(Sample(y + rng.normal(size=3000), y))
    own, best = (Pair(samples[0], s, "kept", paired=False) for s in samples[1:])
    unknown = Setting(own, best, choose(own, best, 0.2))
    found = all_bounds(replace(unknown, keeps_classes=True))
    for name in ("theorem_5_1", "theorem_5_1_sharper", "theorem_5_2"):
        assert by_name(found)[name].applicable, by_name(found)[name].reason
        # A test that does not refute is no proof: without one nothing is certified.
        open_claim = by_name(all_bounds(unknown))[name]
        assert "is not refuted (within a class" in open_claim.reason
        assert "detectable with 80 % power: 0.1" in open_claim.reason
    assert by_name(found)["theorem_5_2"].value > 0.0
    assert "replicator" in by_name(found)["proposition_5_3"].reason


def test_theorem_4_6_is_vacuous_for_people_who_cross_the_bar():
    """The accepted share rises by the moved mass, the label's by less (reference, note 5)."""
    claim = by_name(all_bounds(setting()), "estimate")["theorem_4_6"]
    assert claim.value is None
    assert "Assumption 4.5" in claim.reason
    refuted = [a for a in claim.assumptions if a.supported is False]
    assert len(refuted) == 1


def test_proposition_4_7_speaks_of_uniform_people_only():
    given = setting(setup=StrategicSetup(budget=0.2, tau=0.5))
    claim = by_name(all_bounds(given))["proposition_4_7"]
    assert claim.value is None
    assert "uniform on [0, 1]" in claim.reason


def test_weighted_rows_are_no_draws():
    given = setting()
    source, induced = given.own.source, given.own.induced
    even = Sample(source.score, source.label, weight=np.ones(given.n))
    found = all_bounds(replace(given, own=Pair(even, induced, "follow", paired=True)))
    assert by_name(found, "estimate")["theorem_3_1"].applicable
    assert "not draws" in by_name(found)["theorem_3_1"].reason


def test_a_class_without_rows_and_a_one_sided_rule_give_no_number():
    rng = np.random.default_rng(3)
    alone = Sample(rng.normal(size=200), np.ones(200))
    pair = Pair(alone, alone, "follow", paired=True)
    found = by_name(all_bounds(Setting(pair, pair, choose(pair, pair, 0.0))))
    assert "a class has no rows" in found["theorem_5_1"].reason
    high = Sample(alone.score + 50.0, np.where(rng.random(200) < 0.5, 1.0, -1.0))
    lifted = Pair(high, high, "follow", paired=True)
    found = by_name(all_bounds(Setting(lifted, lifted, choose(lifted, lifted, 0.0))))
    assert "one side of the threshold" in found["theorem_4_2"].reason
    assert found["theorem_3_1"].applicable


def test_settings_that_make_no_sense_are_refused():
    given = setting()
    with pytest.raises(ParameterError, match="strictly between"):
        replace(given, failure_probability=0.0)
    with pytest.raises(DataError, match="same way"):
        replace(given, best=setting("kept").best)


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
    loss = induced_error(UniformResponse(0.5, BUDGET), law) - min(
        induced_error(UniformResponse(k / 200, BUDGET), law) for k in range(40, 161, 4)
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


def classes_kept(pair: Pair) -> Assumption:
    """Return what Theorem 5.2 says of its assumption that P(X | Y) is kept."""
    claim = theorem_5_2(Setting(pair, pair, choose(pair, pair, 0.0)))[0]
    return next(one for one in claim.assumptions if "P(X | Y)" in one.statement)


@pytest.mark.parametrize("shift", [0.0, 0.02, 0.4])
def test_the_evidence_printed_is_the_one_measured(shift):
    """A shift of all scores was once reported as "move by 0.000, chance allows 0.000"."""
    rng = np.random.default_rng(4)
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    source = Sample(y + rng.normal(size=400), y)
    after = Sample(source.score + shift, y)
    found = classes_kept(Pair(source, after, "kept", paired=False))
    measured = [
        f"{kolmogorov_distance(source.of_rows(y == label), after.of_rows(y == label)):.3f}"
        for label in (1.0, -1.0)
    ]
    assert any(f"scores lie {value} apart, chance" in found.evidence for value in measured)
    assert found.supported is None
    paired = classes_kept(Pair(source, after, "kept", paired=True))
    assert paired.supported is (shift == 0.0)
