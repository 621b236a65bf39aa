"""JSON of any shape in the place of a record: our error, never another's."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from countermove import load
from countermove.data.schema import load_schema
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest, seal
from countermove.errors import CountermoveError, ModelFileError, SchemaError
from countermove.production.forgetting import rehashed
from countermove.production.history import DecisionHistory
from countermove.production.open_advice import AdviceRegister
from countermove.production.open_advice.register import AdvisedMove
from countermove.production.registry import Registry, recover
from countermove.production.retraining.ledger import BatchLedger
from countermove.production.retraining.promotion import promote_or_keep
from countermove.production.scoring.records import BatchFolder, BatchStart

from ..faults.dying import FACTS, model
from ..retraining.test_ledger import batch

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
RAW = (
    b"", b"{", b"null", b"3", b"[]", b"{}", b'"x"', b"\xff\xfe", b"NaN", b'{"seal": NaN}',
    b"[" * 20_000, b'{"a":' * 20_000, b'{"a": 1e400, "seal": 1}', b"9" * 10_000,
    b'{"seal": "x", "a": "\\ud800"}', b"\x00" * 100, b'{"seal": {"seal": []}}',
)  # fmt: skip
RECORDS = ("champion", "decision", "facts", "model", "ledger", "forgotten", "advice")


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> tuple[Registry, dict[str, Path]]:
    """A registry with every kind of record."""
    folder = tmp_path_factory.mktemp("tampered")
    registry = Registry(str(folder / "registry"))
    history = DecisionHistory(f"sqlite:///{folder / 'history.db'}", "credit")
    facts = {"batches": {"one": {"sha256": "x", "rule": None}}}
    made = promote_or_keep(registry, history, model(), FACTS, [], facts)
    BatchLedger(registry).withdraw("one", [batch("one")], "")
    registry.write("forgotten.json", {"batches": {"one": ["x"]}})
    AdviceRegister(registry).write("may", made.version, {"p": {"a": AdvisedMove(1.0, 2.0)}}, 30)
    root = folder / "registry"
    version = root / "versions" / made.version
    paths = {
        "champion": root / "champion.json",
        "decision": root / "decisions" / f"{made.version}.json",
        "facts": version / "version.json",
        "model": version / "model.json",
        "ledger": root / "batches.json",
        "forgotten": root / "forgotten.json",
        "advice": root / "open_advice" / "may.json",
    }
    return registry, paths


def read_everything(registry: Registry) -> None:
    """Read all that a retraining and a scoring read of a registry."""
    registry.champion()
    recover(registry)
    ledger = BatchLedger(registry)
    ledger.states([batch("one"), batch("two")])
    ledger.withdrawn()
    rehashed(registry)
    AdviceRegister(registry).of_people(["p"])


def with_content(place, name: str, content: bytes) -> None:
    """Put a content in a record's place; reading raises our error, or nothing."""
    registry, paths = place
    before = {path: path.read_bytes() for path in paths.values()}
    paths[name].write_bytes(content)
    try:
        with suppress(CountermoveError):
            read_everything(registry)
    finally:
        for path, kept in before.items():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(kept)


def sealed(name: str, record: dict[str, Any]) -> bytes:
    """Return a record as somebody writes it who can compute digests (of NaN there is none)."""
    try:
        if name != "model":
            return seal(record)
        bare = {key: value for key, value in record.items() if key != "sha256"}
        return json.dumps(bare | {"sha256": canonical_digest(bare)}).encode()
    except ValueError:
        return json.dumps(record | {"seal": "x", "sha256": "x"}).encode()


def test_an_untouched_registry_is_read(place):
    read_everything(place[0])


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("content", RAW, ids=lambda content: repr(content[:14]))
def test_what_is_no_record_is_refused(place, name, content):
    registry, paths = place
    kept = paths[name].read_bytes()
    paths[name].write_bytes(content)
    try:
        with pytest.raises(ModelFileError, match=paths[name].name):
            read_everything(registry)
    finally:
        paths[name].write_bytes(kept)


def alter_somewhere(place, name: str, data: st.DataObject) -> None:
    """Replace or delete one value of a record, however deep, and seal it again."""
    record = json.loads(place[1][name].read_bytes())
    record.pop("seal", None)
    at: Any = record
    for _ in range(data.draw(st.integers(0, 3))):
        inner = [key for key, value in at.items() if isinstance(value, dict) and value]
        if not inner:
            break
        at = at[data.draw(st.sampled_from(inner))]
    key = data.draw(st.sampled_from(sorted(at)))
    if data.draw(st.booleans()):
        at[key] = data.draw(ANY)
    else:
        del at[key]
    with_content(place, name, sealed(name, record))


FEW = settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.parametrize("name", RECORDS)
@FEW
@given(data=st.data())
def test_a_sealed_record_with_any_value_in_any_field(place, name, data):
    alter_somewhere(place, name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", RECORDS)
@settings(FEW, max_examples=300)
@given(data=st.data())
def test_a_sealed_record_with_any_value_in_any_field_many_times(place, name, data):
    alter_somewhere(place, name, data)


@pytest.mark.parametrize("name", RECORDS)
@FEW
@given(record=st.dictionaries(st.text(max_size=8), ANY, max_size=5))
def test_a_sealed_record_of_any_shape(place, name, record):
    with_content(place, name, sealed(name, record))


@pytest.mark.parametrize(
    "version", ["²00001-x", "000001", "../000001-x", "000001-x/..", "１-x", ""]
)
def test_names_that_are_no_versions_are_refused(place, version):
    with pytest.raises(ModelFileError):
        place[0].load(version)


@FEW
@given(record=ANY)
def test_a_standardiser_of_any_shape(record):
    with suppress(CountermoveError):
        Standardiser.from_json(record)


@pytest.mark.parametrize("content", RAW, ids=lambda content: repr(content[:14]))
def test_an_adopted_model_of_any_shape(tmp_path, content):
    for name in ("adopted.json", "adopted.safetensors"):
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFileError):
        load(tmp_path)


@pytest.mark.parametrize("content", RAW, ids=lambda content: repr(content[:14]))
def test_the_manifest_and_the_start_of_a_scored_batch_of_any_shape(tmp_path, content):
    place = BatchFolder(tmp_path, "may")
    place.published.mkdir()
    (place.published / "manifest.json").write_bytes(content)
    (place.published / "started.json").write_bytes(content)
    for read in (place.manifest, lambda: BatchStart.read(place.published)):
        with pytest.raises(ModelFileError):
            read()
    for name in ("manifest.json", "started.json"):
        (place.published / name).write_bytes(seal({"batch": 3, "version": ["x"]}))
    for read in (place.manifest, lambda: BatchStart.read(place.published)):
        with pytest.raises(ModelFileError, match="does not"):
            read()


def test_a_schema_that_is_nested_too_deeply(tmp_path):
    (tmp_path / "deep.yml").write_text("label: " + "[" * 10_000 + "]" * 10_000)
    with pytest.raises(SchemaError, match=r"deep\.yml is nested too deeply"):
        load_schema("deep", tmp_path)
