"""A stored model is whole, unaltered and of the right schema, or it is refused."""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from countermove.data import storage as files
from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest
from countermove.errors import CountermoveError, ModelFileError
from countermove.scores import (
    LinearScore,
    MLPScore,
    NearestCentroidScore,
    PartlyLinearScore,
    RecurrentScore,
    RepresentationScore,
    storage,
)
from countermove.scores.base import score_of
from countermove.scores.covariance import RuleCovariance
from countermove.scores.index_trees import IndexTreesScore
from countermove.scores.storage import DESCRIPTION, WEIGHTS, PublishedModel, load_model, save_model
from countermove.scores.trees import TreeEnsemble, TreeScore


def schema_of(*names: str) -> Schema:
    features = {name: {"kind": "numeric", "change": "both"} for name in names}
    content = {"label": {"column": "y", "favourable": 1}, "features": features}
    return Schema.from_mapping("table", content)


SCHEMA, OTHER = schema_of("a", "b", "c"), schema_of("a", "b")


def stumps() -> TreeEnsemble:
    """Return a tree that compares a number and one that asks for a category."""
    node = np.array([0, 0, 0, 0, 0, 0])
    left, right = np.array([1, -1, -1, 4, -1, -1]), np.array([2, -1, -1, 5, -1, -1])
    split = np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    value = np.array([0.0, 0.3, -1 / 3, 0.0, 0.1, -0.2])
    missing = np.zeros(6, bool)
    codes = {3: (1,)}
    return TreeEnsemble(
        3, node, split, left, right, missing, value, np.array([0, 3]), codes, ((1, 2),), 0.1
    )


def rising() -> TreeEnsemble:
    """Return a tree of an index and another column that rises in the index."""
    left, right = np.array([1, -1, -1]), np.array([2, -1, -1])
    split, value = np.array([0.5, 0.0, 0.0]), np.array([0.0, -1 / 3, 0.4])
    still = np.zeros(3, int)
    return TreeEnsemble(2, still, split, left, right, still > 0, value, np.array([0]), {})


def model(kind: str = "linear") -> PublishedModel:
    draws = torch.Generator().manual_seed(0)
    score = {
        "index_trees": lambda: IndexTreesScore(3, [0, 2], [0.7, -1 / 3], rising(), 0.1, (-1, 2)),
        "linear": lambda: LinearScore(3, draws),
        "partly_linear": lambda: PartlyLinearScore(3, movable=[1], hidden=(4, 4), generator=draws),
        "mlp": lambda: MLPScore(3, (5, 4), "relu", 0.2, draws),
        "nearest_centroid": lambda: NearestCentroidScore(3, 4, favourable=2, against=[0, 3]),
        "recurrent": lambda: RecurrentScore([[2], [0], [1]], 4, draws),
        "representation": lambda: RepresentationScore(3, (5, 2), "elu", draws),
        "trees": lambda: TreeScore(stumps(), [0.1, 1 / 3, 2.0], [1.0, 0.7, 3.0]),
    }[kind]()
    unit = Standardiser(np.array([0.1, 1 / 3, 2.0]), np.array([1.0, 0.7, 3.0]), ("a", "b", "c"))
    return PublishedModel(score, unit, SCHEMA.digest(), {"seed": 0}, 0.7)


@pytest.fixture
def stored(tmp_path):
    folder = tmp_path / "model"
    save_model(model(), folder)
    return folder


@pytest.mark.parametrize("kind", storage._KINDS)
def test_round_trip_is_exact(tmp_path, kind):
    saved = model(kind)
    save_model(saved, tmp_path / "m")
    loaded = load_model(tmp_path / "m", SCHEMA)
    X = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert torch.equal(loaded.score(X), saved.score(X))
    assert np.array_equal(loaded.standardiser.scale, saved.standardiser.scale)
    assert loaded.about == saved.about
    assert loaded.threshold == 0.7


def test_the_rule_asks_for_the_threshold_and_the_score_stays():
    stored = replace(model(), about={"probability_slope": 2.0})
    X = torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    wanted = torch.sigmoid(2.0 * stored.score(X)) >= 0.7
    assert torch.equal(stored.rule(X) >= 0, wanted)
    assert 0 < wanted.sum() < len(X)
    assert stored.rule is stored.rule
    assert score_of(stored) is stored.rule
    plain = stored.without_threshold()
    assert plain.rule is stored.score


def test_description_says_what_made_it(stored):
    description = json.loads((stored / DESCRIPTION).read_text())
    assert description["format_version"] == storage.FORMAT_VERSION
    assert description["package_version"]
    assert description["schema_digest"] == SCHEMA.digest()
    assert len(description["weights_sha256"]) == 64


def test_truncated_weights_are_refused(stored):
    path = stored / WEIGHTS
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ModelFileError, match="truncated or was altered"):
        load_model(stored)


def test_tampered_description_is_refused(stored):
    path = stored / DESCRIPTION
    path.write_text(path.read_text().replace('"threshold": 0.7', '"threshold": 0.1'))
    with pytest.raises(ModelFileError, match="was altered"):
        load_model(stored)


def test_truncated_description_is_refused(stored):
    path = stored / DESCRIPTION
    path.write_text(path.read_text()[:40])
    with pytest.raises(ModelFileError, match="not a model description"):
        load_model(stored)


def test_missing_model_is_named(tmp_path):
    with pytest.raises(ModelFileError, match="cannot read"):
        load_model(tmp_path / "nothing")


def test_model_of_another_schema_is_refused(stored):
    with pytest.raises(ModelFileError, match="another schema"):
        load_model(stored, OTHER)


def test_other_format_is_refused_by_name(stored):
    path = stored / DESCRIPTION
    path.write_text(path.read_text().replace('"format_version": 2', '"format_version": 99'))
    with pytest.raises(ModelFileError, match="format version 99"):
        load_model(stored)


@pytest.mark.parametrize("stop_at", [WEIGHTS, DESCRIPTION])
def test_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch, stop_at):
    original = files.write_through

    def interrupted(path, content):
        if path.name == stop_at:
            raise KeyboardInterrupt
        original(path, content)

    monkeypatch.setattr(files, "write_through", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(model(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_a_version_is_never_overwritten(stored):
    before = (stored / DESCRIPTION).read_bytes()
    with pytest.raises(ModelFileError, match="exists already"):
        save_model(model(), stored)
    assert (stored / DESCRIPTION).read_bytes() == before


def covariant() -> PublishedModel:
    """Return the model of the other tests with a covariance beside it."""
    width = model().score.n_features + 1
    return replace(model(), covariance=RuleCovariance(0.1 * np.eye(width), 0.02, 300))


def test_the_covariance_is_kept_beside_the_weights(tmp_path):
    """It comes back to the last bit; a model without one has no file of it."""
    save_model(covariant(), tmp_path / "with")
    save_model(model(), tmp_path / "without")
    loaded = load_model(tmp_path / "with").covariance
    np.testing.assert_array_equal(loaded.matrix, covariant().covariance.matrix)
    assert (loaded.cut_variance, loaded.rows) == (0.02, 300)
    assert load_model(tmp_path / "without").covariance is None
    assert not (tmp_path / "without" / storage.COVARIANCE).exists()


def test_an_altered_covariance_is_refused(tmp_path):
    """As altered weights are."""
    save_model(covariant(), tmp_path / "m")
    path = tmp_path / "m" / storage.COVARIANCE
    path.write_bytes(path.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(ModelFileError, match=r"covariance\.safetensors is truncated or"):
        load_model(tmp_path / "m")


def rewritten(folder, change, weights=None):
    """Change a stored model and its hashes, as somebody would who can write the registry."""
    path = folder / DESCRIPTION
    said = json.loads(path.read_text())
    del said["sha256"]
    if weights is not None:
        held = load_tensors((folder / WEIGHTS).read_bytes())
        weights(held)
        content = save_tensors(held)
        (folder / WEIGHTS).write_bytes(content)
        said["weights_sha256"] = hashlib.sha256(content).hexdigest()
    change(said)
    path.write_text(json.dumps(said | {"sha256": canonical_digest(said)}))


def set_entry(*path, value):
    def change(said):
        for step in path[:-1]:
            said = said[step]
        said[path[-1]] = value

    return change


def fill_in(name, value, at=slice(None)):
    def change(held):
        held[name][at] = value

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (set_entry("threshold", value=0.0), "threshold is 0.0, not between 0 and 1"),
        (set_entry("threshold", value=1.5), "not between 0 and 1"),
        (set_entry("threshold", value="0.5"), "does not describe a model"),
        (set_entry("about", "probability_slope", value=-1.0), "slope is -1.0"),
        (set_entry("standardiser", "names", value=["a", "c", "b"]), "not those of the schema"),
        (set_entry("standardiser", "scale", value=[1.0, 0.0, 1.0]), "scale must be positive"),
        (set_entry("standardiser", "mean", value=[0.0]), "3 finite numbers"),
    ],
)
def test_a_consistently_rewritten_description_is_refused_for_what_it_holds(stored, change, said):
    rewritten(stored, change)
    with pytest.raises(CountermoveError, match=said):
        load_model(stored, SCHEMA)


@pytest.mark.parametrize("kind", ["index_trees", "linear", "mlp", "partly_linear", "trees"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_and_leaves_that_are_no_numbers_are_refused(tmp_path, kind, value):
    save_model(model(kind), tmp_path / "m")
    name = next(
        name
        for name, weights in load_tensors((tmp_path / "m" / WEIGHTS).read_bytes()).items()
        if weights.is_floating_point() and name not in ("trees_split", "bias")
    )
    rewritten(tmp_path / "m", lambda said: None, fill_in(name, value))
    with pytest.raises(ModelFileError, match="finite"):
        load_model(tmp_path / "m", SCHEMA)


@pytest.mark.parametrize(
    ("name", "value", "at", "said"),
    [
        ("trees_split", float("nan"), 0, "compares with no number"),
        ("trees_left", 0, 0, "two parents"),
        ("trees_right", 99, 0, "not stored"),
        ("trees_right", -1, 0, "no child"),
        ("trees_root", 1, 1, "two parents"),
        ("trees_feature", 7, 0, "a column that there is not"),
    ],
)
def test_trees_that_lead_nowhere_are_refused(tmp_path, name, value, at, said):
    save_model(model("trees"), tmp_path / "m")
    rewritten(tmp_path / "m", lambda said: None, fill_in(name, value, at))
    with pytest.raises(ModelFileError, match=said):
        load_model(tmp_path / "m", SCHEMA)
