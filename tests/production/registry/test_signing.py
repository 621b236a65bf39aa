"""Signed records: a consistent rewrite by somebody without the key is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from countermove.data.storage import canonical_digest, seal, unseal
from countermove.errors import ModelFileError, ParameterError
from countermove.production.history import DecisionHistory
from countermove.production.registry import Registry, Signer
from countermove.production.registry.signing import KEY_VARIABLE, SIGNATURE
from countermove.production.retraining.ledger import BatchLedger
from countermove.production.retraining.promotion import promote_or_keep, roll_back

from ..faults.dying import FACTS, model
from ..retraining.test_ledger import batch

KEY, OTHER = b"k" * 32, b"o" * 32


def opened(folder: Path, *keys: bytes, unsigned="refuse") -> Registry:
    return Registry(str(folder), signer=Signer(keys, unsigned))


@pytest.fixture
def folder(tmp_path) -> Path:
    """A signed registry with two promotions and a withdrawn batch."""
    return filled(tmp_path, KEY)


def filled(place: Path, *keys: bytes) -> Path:
    registry = opened(place / "registry", *keys)
    history = DecisionHistory(f"sqlite:///{place / 'history.db'}", "credit")
    for weight in (1.0, 2.0):
        promote_or_keep(registry, history, model(weight), FACTS, [], {"batches": {}})
    BatchLedger(registry).withdraw("one", [batch("one")], "")
    return place / "registry"


def rewritten(path: Path, **changes) -> None:
    """Rewrite a record as somebody would who can compute seals, and has no key."""
    record = unseal(path.read_bytes(), str(path))
    path.write_bytes(seal(record | changes))


def test_what_is_signed_loads_with_the_key_and_only_with_it(folder):
    assert opened(folder, KEY).champion() is not None
    assert opened(folder, OTHER, KEY).champion() is not None
    with pytest.raises(ModelFileError, match=f"is signed: set {KEY_VARIABLE}"):
        opened(folder).champion()
    with pytest.raises(ModelFileError, match="not signed with a key"):
        opened(folder, OTHER).champion()


def test_a_consistent_rewrite_without_the_key_is_refused(folder, tmp_path):
    # Another model takes the champion's place, with every digest made to agree.
    registry = opened(folder, KEY)
    champion = registry.champion()
    forger = Registry(str(tmp_path / "forged"), signer=Signer())
    digest = forger.add(champion.version, model(99.0), FACTS)
    place = folder / "versions" / champion.version
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "forged" / "versions" / champion.version, place)
    facts = unseal((place / "version.json").read_bytes(), "")
    rewritten(
        folder / "champion.json", sha256=digest, facts_sha256=canonical_digest(facts),
        signature=None,
    )  # fmt: skip
    assert opened(folder, KEY, unsigned="accept").champion().sha256 == digest  # It is consistent.
    with pytest.raises(ModelFileError, match="bears no signature"):
        registry.champion()
    rewritten(folder / "champion.json", signature={"key": "0", "hmac": "0" * 64})
    with pytest.raises(ModelFileError, match="somebody rewrote it"):
        registry.champion()


@pytest.mark.parametrize(
    "name", ["champion.json", "batches.json", "decisions/{}.json", "versions/{}/version.json"]
)
def test_every_record_is_signed_for_its_content_and_its_place(folder, name):
    registry = opened(folder, KEY)
    first, second = registry.versions()
    path = folder / name.format(second)
    content = path.read_bytes()
    rewritten(path, at="2020-01-01")
    with pytest.raises(ModelFileError, match="was not signed"):
        registry.read(name.format(second))
    path.write_bytes(content)
    if "{}" in name:
        shutil.copy(folder / name.format(first), path)
        with pytest.raises(ModelFileError, match="was not signed"):
            registry.read(name.format(second))


@pytest.mark.parametrize("signature", [None, 3, [], {}, {"hmac": 3}, {"hmac": "ü"}, "x" * 64])
def test_a_signature_of_any_form_is_refused_in_our_words(folder, signature):
    rewritten(folder / "champion.json", signature=signature)
    with pytest.raises(ModelFileError, match=r"bears no signature|was not signed"):
        opened(folder, KEY).champion()


def test_records_from_before_are_read_if_the_setting_allows_it_and_then_signed(tmp_path):
    folder = filled(tmp_path)
    assert opened(folder).champion() is not None
    with pytest.raises(ModelFileError, match="kedro countermove sign --unsigned"):
        opened(folder, KEY).champion()
    accepting = opened(folder, KEY, unsigned="accept")
    before = accepting.champion()
    assert accepting.sign_all() >= 3
    after = opened(folder, KEY).champion()
    assert (after.version, after.facts) == (before.version, before.facts)
    assert len(opened(folder, KEY).decisions()) == len(accepting.decisions())


def test_a_key_is_changed_by_signing_again(folder):
    assert opened(folder, OTHER, KEY).sign_all() == 6
    assert opened(folder, OTHER).champion() is not None
    assert BatchLedger(opened(folder, OTHER)).entries[0].batch == "one"
    with pytest.raises(ModelFileError, match="not signed with a key"):
        opened(folder, KEY).champion()


def test_no_record_holds_the_key(folder):
    for path in folder.rglob("*.json"):
        assert KEY not in path.read_bytes()
    assert SIGNATURE in json.loads((folder / "champion.json").read_text())


def test_keys_come_from_the_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert Registry(str(tmp_path)).signer.keys == ()
    monkeypatch.setenv(KEY_VARIABLE, f"{'a' * 40} {'b' * 40}")
    assert Registry(str(tmp_path)).signer.keys == (b"a" * 40, b"b" * 40)
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(ParameterError, match="5 characters; at least 32") as refused:
        Registry(str(tmp_path))
    assert "short" not in str(refused.value)


def test_a_rollback_is_signed(folder, tmp_path):
    registry = opened(folder, KEY)
    history = DecisionHistory(f"sqlite:///{tmp_path / 'history.db'}", "credit")
    made = roll_back(registry, history)
    assert opened(folder, KEY).champion().version == made.champion_after
