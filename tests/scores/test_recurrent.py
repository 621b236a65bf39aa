"""A recurrent score: what it computes, which columns it reads, and what it refuses."""

import numpy as np
import pytest
import torch

from countermove.data.schema import Schema
from countermove.data.series import step_columns
from countermove.errors import ParameterError
from countermove.scores import RecurrentScore


def draws(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def histories(n: int = 7, k: int = 4, d: int = 3) -> torch.Tensor:
    return torch.randn(n, k, d, generator=draws(1), dtype=torch.float64)


def by_hand(score: RecurrentScore, X: torch.Tensor) -> torch.Tensor:
    """Section 4.3 of the SERM paper, one person and one step at a time."""
    scores = []
    for steps in X:
        state = torch.zeros(score.width, dtype=torch.float64)
        for x in steps[:-1]:
            state = torch.sigmoid(score.inputs @ x + score.memory @ state + score.offset)
        last = score.inputs @ steps[-1] + score.memory @ state + score.offset
        scores.append(score.weight @ last + score.bias)
    return torch.stack(scores)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_score_is_the_papers_recursion(k):
    X = histories(k=k)
    score = RecurrentScore.of_sequences(k, 3, width=5, generator=draws())
    assert torch.allclose(score(X.reshape(7, -1)), by_hand(score, X), rtol=1e-12)


def test_columns_in_any_order_give_the_same_score():
    X = histories()
    plain = RecurrentScore.of_sequences(4, 3, generator=draws())
    order = torch.randperm(12, generator=draws(2))
    # Column order[i] of the shuffled table is column i of the plain one.
    shuffled = torch.empty(7, 12, dtype=torch.float64)
    shuffled[:, order] = X.reshape(7, 12)
    table = order.reshape(4, 3).tolist()
    mixed = RecurrentScore(table, generator=draws())
    assert torch.allclose(mixed(shuffled), plain(X.reshape(7, 12)), rtol=1e-13)


def test_a_feature_that_was_not_kept_is_read_as_zero():
    X = histories(k=2)
    X[:, 0, 1] = 0.0
    whole = RecurrentScore.of_sequences(2, 3, generator=draws())
    part = RecurrentScore([[0, -1, 1], [2, 3, 4]], generator=draws())
    kept = X.reshape(7, 6)[:, [0, 2, 3, 4, 5]]
    assert part.n_features == 5
    assert torch.allclose(part(kept), whole(X.reshape(7, 6)), rtol=1e-13)


def test_only_the_last_step_has_a_slope():
    score = RecurrentScore([[3, 4], [0, 1], [2, 5]], generator=draws())
    assert sorted(score.fixed) == [0, 1, 3, 4]
    X = torch.randn(5, 6, dtype=torch.float64, generator=draws(3)).requires_grad_()
    (gradient,) = torch.autograd.grad(score(X).sum(), X)
    slope = score.slope()
    assert torch.equal(slope[[0, 1, 3, 4]], torch.zeros(4, dtype=torch.float64))
    assert torch.allclose(gradient[:, [2, 5]], slope[[2, 5]].expand(5, 2), rtol=1e-12)


def schema(**series) -> Schema:
    features = {
        "debt": {"kind": "numeric", "change": "both"},
        "branch": {"kind": "onehot", "categories": ["a", "b"]},
    }
    mapping = {"label": {"column": "ok", "favourable": 1}, "features": features}
    if series:
        mapping["series"] = {"entity": "firm", "time": "year"} | series
    return Schema.from_mapping("firms", mapping)


def test_columns_of_a_series_are_found_by_name():
    found = schema(steps=3)
    names = np.array(found.feature_names)
    table = step_columns(found)
    assert names[table[-1]].tolist() == ["debt", "branch=a", "branch=b"]
    assert names[table[0]].tolist() == ["debt_t-2", "branch_t-2=a", "branch_t-2=b"]
    assert RecurrentScore.of_schema(found).n_features == len(names)


def test_features_without_a_past_are_absent_there():
    table = step_columns(schema(steps=2, earlier=["debt"]))
    assert table == [[3, -1, -1], [0, 1, 2]]


def test_a_schema_without_a_series_is_refused():
    with pytest.raises(ParameterError, match="no series"):
        RecurrentScore.of_schema(schema())


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([], "at least one step"),
        ([[0, 1], [2]], "same features"),
        ([[0, 1], [-1, 2]], "last step"),
        ([[0, 1], [1, 2]], "exactly once"),
        ([[0, 1], [2, 4]], "exactly once"),
    ],
)
def test_tables_that_are_none_are_refused(steps, words):
    with pytest.raises(ParameterError, match=words):
        RecurrentScore(steps)


@pytest.mark.parametrize("width", [0, 2.5, True])
def test_width_is_a_whole_number(width):
    with pytest.raises(ParameterError, match="width"):
        RecurrentScore([[0]], width=width)


def test_the_start_is_the_papers_and_depends_on_the_generator_only():
    first = RecurrentScore.of_sequences(3, 82, generator=draws(5))
    again = RecurrentScore.of_sequences(3, 82, generator=draws(5))
    assert all(map(torch.equal, first.parameters(), again.parameters()))
    assert first.inputs.abs().max() <= 82**-0.5
    assert first.memory.abs().max() <= 10**-0.5
    assert first.bias.item() == 0.0


def test_the_bias_is_not_learned_twice():
    """The offset of the last step is the intercept already."""
    score = RecurrentScore.of_sequences(2, 2, generator=draws())
    assert not score.bias.requires_grad
    assert all(p.requires_grad for name, p in score.named_parameters() if name != "bias")
