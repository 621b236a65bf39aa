"""The ledger: nothing is used or dropped silently, and every content stays on record."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from countermove.errors import BlockedError, ModelFileError, NothingNewError, UnknownNameError
from countermove.production.registry import Decision, Registry
from countermove.production.retraining.labelled_batch import LabelledBatch, ReadyMarker
from countermove.production.retraining.ledger import BatchLedger

from ..faults.dying import FACTS, model

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)
MARKED = ReadyMarker()


def batch(name: str, rows: int = 3, shift: int = 0, **beside) -> LabelledBatch:
    return LabelledBatch(name, pd.DataFrame({"a": range(shift, shift + rows)}), **beside)


@pytest.fixture
def registry(tmp_path) -> Registry:
    """A registry with a champion, promoted without any batch."""
    made = Registry(str(tmp_path / "registry"), clock=lambda: NOW)
    version = made.next_version()
    made.add(version, model(), FACTS)
    first = Decision(
        version, "cold_start", "promoted", made.time(), None, version, [], {"batches": {}}
    )
    made.record(first)
    made.carry_out(first)
    return made


def use(registry: Registry, *batches: LabelledBatch, outcome: str = "kept") -> Decision:
    """Record a decision that was based on these batches."""
    facts = {
        each.name: {"sha256": each.sha256, "rows": each.rows, "set_aside": 1, "rule": "r"}
        for each in batches
    }
    champion = registry.pointer().version
    said = ("retrain", outcome, registry.time(), champion, champion, ["why"], {"batches": facts})
    made = Decision(registry.next_version(), *said)
    registry.record(made)
    return made


def states(registry, *files, ready="none"):
    found = BatchLedger(registry).states(files, ready)
    return [(each.batch, each.state, each.rows) for each in found]


def test_a_batch_is_new_until_a_decision_has_used_it(registry):
    one, two = batch("one"), batch("two", 4)
    assert BatchLedger(registry).check_new([one]).new == ["one"]
    use(registry, one)
    assert states(registry, one, two) == [("one", "taken", 3), ("two", "new", 4)]
    with pytest.raises(NothingNewError, match="no new batch: all 1 were looked at before"):
        BatchLedger(registry).check_new([one])


def test_a_blocked_decision_uses_nothing(registry):
    said = ("retrain", "blocked", registry.time(), "a", "a", ["empty"])
    registry.record(Decision(registry.next_version(), *said))
    assert BatchLedger(registry).check_new([batch("one")]).new == ["one"]


def test_changed_content_blocks_and_names_the_command(registry):
    use(registry, batch("one"))
    with pytest.raises(BlockedError, match="kedro countermove supersede one"):
        BatchLedger(registry).check_new([batch("one", 4)])


def test_corrected_content_supersedes_and_both_stay_on_record(registry):
    old, new = batch("one"), batch("one", 4)
    use(registry, old)
    said = BatchLedger(registry).supersede("one", [new], "labels corrected")
    assert new.sha256[:12] in said
    assert states(registry, new) == [("one", "superseded", 3), ("one", "new", 4)]
    ledger = BatchLedger(registry)
    chosen = ledger.check_new([new])
    assert (chosen.new, chosen.withdrawn) == (["one"], ["one"])
    assert ledger.first_use("one")["rule"] == "r"
    use(registry, new)
    assert states(registry, new) == [("one", "superseded", 3), ("one", "taken", 4)]
    # The old content does not come back silently, nor a third.
    for other in (old, batch("one", 5)):
        with pytest.raises(BlockedError, match="has changed since it was used"):
            BatchLedger(registry).check_new([other])
    BatchLedger(registry).supersede("one", [old], "the first was right")
    assert BatchLedger(registry).check_new([old]).new == ["one"]


def test_superseding_what_is_in_use_or_was_never_used_is_refused(registry):
    use(registry, batch("one"))
    ledger = BatchLedger(registry)
    with pytest.raises(UnknownNameError, match="put the corrected file in its place first"):
        ledger.supersede("one", [batch("one")], "")
    with pytest.raises(UnknownNameError, match="was never used"):
        ledger.supersede("two", [batch("two")], "")
    with pytest.raises(UnknownNameError, match="no file of a batch 'thre'"):
        ledger.supersede("thre", [batch("one")], "")
    assert ledger.entries == []


def test_a_withdrawn_batch_is_left_out_and_the_next_decision_names_it(registry):
    one, two = batch("one"), batch("two", 4)
    use(registry, one, two)
    BatchLedger(registry).withdraw("two", [one, two], "wrong labels")
    ledger = BatchLedger(registry)
    chosen = ledger.check_new([one, two])
    assert [each.name for each in chosen.batches] == ["one"]
    assert (chosen.new, chosen.withdrawn) == ([], ["two"])
    # Once a run has decided without it, nothing is left to name; the file may go.
    use(registry, one)
    with pytest.raises(NothingNewError):
        BatchLedger(registry).check_new([one, two])
    with pytest.raises(NothingNewError):
        BatchLedger(registry).check_new([one])
    assert ("two", "withdrawn", 4) in states(registry, one)
    with pytest.raises(BlockedError, match="has changed since it was withdrawn"):
        BatchLedger(registry).check_new([one, batch("two", 5)])


def test_a_withdrawal_is_undone(registry):
    one, two = batch("one"), batch("two", 4)
    use(registry, one, two)
    BatchLedger(registry).withdraw("two", [one, two], "")
    with pytest.raises(UnknownNameError, match="withdrawn already"):
        BatchLedger(registry).withdraw("two", [one, two], "")
    use(registry, one)
    BatchLedger(registry).restore("two", "")
    assert BatchLedger(registry).check_new([one, two]).new == ["two"]
    with pytest.raises(UnknownNameError, match="is not withdrawn"):
        BatchLedger(registry).restore("two", "")


def test_a_batch_that_was_never_used_can_be_withdrawn(registry):
    said = BatchLedger(registry).withdraw("bad", [batch("bad")], "")
    assert "no run takes it" in said
    with pytest.raises(NothingNewError):
        BatchLedger(registry).check_new([batch("bad")])
    with pytest.raises(UnknownNameError, match="no file of a batch 'bda'"):
        BatchLedger(registry).withdraw("bda", [batch("bad")], "")


def test_a_used_batch_that_is_gone_blocks_until_it_is_withdrawn(registry):
    one, two = batch("one"), batch("two", 4)
    use(registry, one, two)
    with pytest.raises(BlockedError, match=r"'two'.* is gone.*kedro countermove withdraw two"):
        BatchLedger(registry).check_new([one])
    BatchLedger(registry).withdraw("two", [one], "lost")
    assert BatchLedger(registry).check_new([one]).withdrawn == ["two"]


def test_a_date_in_the_future_is_asked_about(registry):
    ahead = batch("2027-01")
    with pytest.raises(BlockedError, match="kedro countermove batches --confirm 2027-01"):
        BatchLedger(registry).check_new([ahead])
    BatchLedger(registry).confirm("2027-01", [ahead], "a fiscal year")
    assert BatchLedger(registry).check_new([ahead]).new == ["2027-01"]
    with pytest.raises(BlockedError, match="in the future"):  # Another content: asked again.
        BatchLedger(registry).check_new([batch("2027-01", 9)])
    # Present month, tomorrow, and no date at all.
    for name in ("2026-11", "2026-11-18", "monday"):
        assert BatchLedger(registry).check_new([batch(name)]).new == [name]


def test_a_clock_set_back_makes_no_past_batch_a_future_one(registry):
    use(registry, batch("2026-10"))
    back = Registry(registry.store.url, clock=lambda: NOW - timedelta(days=400))
    chosen = BatchLedger(back).check_new([batch("2026-10"), batch("2026-11", 4)])
    assert chosen.new == ["2026-11"]


def test_a_batch_waits_for_its_marker_and_others_go_on(registry):
    half, whole = batch("half"), batch("whole", 4, marker=MARKED)
    chosen = BatchLedger(registry).check_new([half, whole], "marker")
    assert chosen.new == ["whole"]
    assert chosen.waiting == ["batch 'half' waits for its ready marker half.ready; it is not taken"]
    use(registry, whole)
    assert states(registry, half, whole, ready="marker") == [
        ("half", "waiting", 3), ("whole", "taken", 4)
    ]  # fmt: skip


def test_a_batch_that_waits_for_more_than_a_day_alerts(registry):
    fresh = batch("half", changed_at=NOW - timedelta(hours=3))
    with pytest.raises(NothingNewError, match=r"half\.ready"):
        BatchLedger(registry).check_new([fresh], "marker")
    late = batch("half", changed_at=NOW - timedelta(hours=30))
    with pytest.raises(BlockedError, match="has waited for more than a day"):
        BatchLedger(registry).check_new([late], "marker")


def test_used_batches_need_no_marker(registry):
    use(registry, batch("old"))
    assert states(registry, batch("old"), ready="rows") == [("old", "taken", 3)]


def test_an_unreadable_batch_blocks_unless_it_is_withdrawn(registry):
    broken = LabelledBatch("x", pd.DataFrame(), problem="cannot be read: half", content="ab" * 32)
    with pytest.raises(BlockedError, match="batch 'x' cannot be read"):
        BatchLedger(registry).check_new([broken])
    BatchLedger(registry).withdraw("x", [broken], "")
    with pytest.raises(NothingNewError):
        BatchLedger(registry).check_new([broken])


def test_a_person_deleted_from_a_batch_leaves_it_taken_also_after_a_correction(registry):
    old, new, after = batch("one"), batch("one", 4), batch("one", 2)
    use(registry, old)
    BatchLedger(registry).supersede("one", [new], "")
    use(registry, new)
    registry.write("forgotten.json", {"batches": {"one": [after.sha256]}})
    assert states(registry, after)[-1] == ("one", "taken", 2)
    with pytest.raises(NothingNewError):
        BatchLedger(registry).check_new([after])


def test_a_run_without_a_champion_goes_on_without_any_batch(tmp_path):
    empty = Registry(str(tmp_path / "empty"))
    assert BatchLedger(empty).check_new([]).batches == []
    assert not empty.store.exists("batches.json")


def test_a_ledger_of_another_form_is_refused(registry):
    for entries in (None, 3, [3], [{}], [{"batch": 1, "act": "withdrawn"}], {"a": 1}):
        registry.write("batches.json", {"entries": entries})
        with pytest.raises(ModelFileError, match="no ledger of batches"):
            BatchLedger(registry).check_new([])


def test_the_ledger_keeps_every_entry(registry):
    one = batch("one")
    use(registry, one)
    BatchLedger(registry).withdraw("one", [one], "a")
    BatchLedger(registry).restore("one", "b")
    stored = json.loads(registry.store.read("batches.json"))
    assert [(entry["act"], entry["reason"]) for entry in stored["entries"]] == [
        ("withdrawn", "a"), ("restored", "b")
    ]  # fmt: skip
