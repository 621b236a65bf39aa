"""A batch is judged once, by one champion, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from countermove.data.partitions import raw_partitions
from countermove.data.rows import Rows
from countermove.data.sources import read_file
from countermove.errors import DataError, LockedError, ModelFileError
from countermove.execution import map_parts
from countermove.people import ActionSet, QuadraticCost
from countermove.production.lock import held
from countermove.production.registry import Registry
from countermove.production.scoring import batch as scoring
from countermove.production.scoring.applicants import AdmitTask
from countermove.production.scoring.records import BatchFolder, BatchStart
from countermove.production.scoring.task import certificate_id
from countermove.recourse.advise import AdviceTerms, decide_and_advise
from countermove.recourse.pare import PromiseTerms
from countermove.recourse.phrases import FILE
from countermove.response import BestResponse

from ..tiny_champion import CERTIFICATE, PEOPLE, SCHEMA, Office, model, people, promote


@pytest.fixture
def office(tmp_path):
    return Office(tmp_path)


def files_of(folder):
    """Return every file with its content and its time."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def write(office, name="b1.csv", table=PEOPLE):
    path = office.batches / name
    path.parent.mkdir(exist_ok=True)
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)
    return path


class TestWhatPeopleAreTold:
    def test_everybody_gets_decision_probability_version_certificate_and_words(self, office):
        version = promote(office.registry)
        write(office)
        scored = office.score("b1")
        told = scored.people().read()
        assert told["row_id"].tolist() == PEOPLE["person"].tolist()
        assert set(told["version"]) == {version}
        assert set(told["certificate"]) == {certificate_id(CERTIFICATE)}
        approved = told["decision"] == 1
        assert ((told["probability"] >= 0.5) == approved).all()
        assert (told["status"] == "NOT_NEEDED").equals(approved)
        refused = told[told["status"] == "FOUND"]
        assert len(refused) > 10
        assert (refused["probability_after"] >= 0.5).all()
        assert refused["words"].str.contains("from").all()
        assert scored.manifest["decisions"] == {
            "approved": int(approved.sum()),
            "refused": int((~approved).sum()),
        }
        assert scored.manifest["rows"] == len(PEOPLE)
        assert scored.manifest["certificates"][0]["id"] == certificate_id(CERTIFICATE)

    def test_they_are_told_what_the_recourse_stage_would_tell_them(self, office):
        promote(office.registry)
        write(office)
        told = office.score("b1").people().read()
        rule = model()
        admitted = AdmitTask(SCHEMA)(pa.Table.from_pandas(PEOPLE), 0).to_pandas()
        X = rule.standardiser.transform(admitted[list(SCHEMA.feature_names)].to_numpy())
        rows = Rows(admitted["row_id"].to_numpy(), X, np.zeros(len(X)), pd.DataFrame())
        whole = decide_and_advise(
            rule, rows, SCHEMA, people(rule.standardiser), PromiseTerms(), 0
        ).table
        pd.testing.assert_frame_equal(told[list(whole.columns)], whole, check_dtype=False)

    def test_they_are_told_why_and_in_the_phrases_asked_for(self, office, tmp_path):
        """A champion knows whom it approved and gives reasons, in phrases of the file."""
        promote(office.registry)
        write(office)
        own = tmp_path / "phrases.yml"
        text = FILE.read_text("utf-8").replace("Main reasons:", "Above all:")
        own.write_text(text.replace("nothing to do", "well done"), "utf-8")
        told = office.score("b1", said=AdviceTerms(str(own))).people().read()
        refused = told["decision"] == -1
        assert told.loc[refused, "reasons"].str.startswith("Above all: ").all()
        assert told.loc[~refused, "reasons"].isna().all()
        assert told.loc[~refused, "words"].eq("Approved: well done.").all()
        assert told.loc[refused, "reason_codes"].map(len).between(1, 4).all()
        names = set(SCHEMA.feature_names) | {f.name for f in SCHEMA.features}
        assert {code for codes in told["reason_codes"] for code in codes} <= names

    def test_form_of_the_files_and_size_of_the_parts_do_not_matter(self, office):
        promote(office.registry)
        write(office)
        write(office, "b2.parquet")
        for number in range(3):
            write(office, f"b3/{number}.parquet", PEOPLE.iloc[40 * number : 40 * number + 40])
        first = office.score("b1", rows=1000).people().read()
        for batch, rows, engine in (("b2", 50, "threads"), ("b3", 25, "serial")):
            again = office.score(batch, rows, engine).people().read()
            pd.testing.assert_frame_equal(again, first)

    def test_a_label_is_not_looked_at(self, office):
        promote(office.registry)
        write(office)
        write(office, "b2.csv", PEOPLE.assign(repaid="whatever"))
        write(office, "b3.csv", PEOPLE.drop(columns="group"))
        first = office.score("b1").people().read()
        for batch in ("b2", "b3"):
            pd.testing.assert_frame_equal(office.score(batch).people().read(), first)

    def test_values_beyond_the_training_rows_are_scored_and_counted(self, office):
        promote(office.registry)
        inside = PEOPLE.assign(income=40.0)
        write(office, "inside.csv", inside)
        income = np.where(np.arange(len(PEOPLE)) < 3, 199.0, 40.0)
        write(office, "beyond.csv", PEOPLE.assign(income=income))
        base = office.score("inside").manifest["outside_training_range"]
        scored = office.score("beyond")
        assert scored.manifest["outside_training_range"] in range(base, base + 4)
        assert scored.people().read()["outside_training_range"][:3].all()

    def test_nobody_is_asked_for_more_than_the_version_was_calibrated_with(self, office):
        limit = 0.3 * model().standardiser.scale[list(SCHEMA.feature_names).index("income")]
        asked = {}
        for batch, terms in (("b1", {}), ("b2", {"largest_action": 0.3, "miss_rate": 0.1})):
            promote(office.registry, terms=terms)
            write(office, f"{batch}.csv")
            asked[batch] = office.score(batch, rows=1000).people().read()
        assert asked["b1"]["change:income"].max() > limit
        assert asked["b2"]["change:income"].max() <= limit + 1e-9
        assert (asked["b2"]["status"] == "PROVEN_NONE").any()

    def test_a_promise_for_other_actions_is_not_made(self, office, caplog):
        promote(office.registry)
        write(office)
        scored = office.score(
            "b1", people=lambda stored: BestResponse(QuadraticCost(1.0), ActionSet())
        )
        assert scored.manifest["certificate"] is None
        assert scored.people().read()["certificate"].isna().all()
        assert "its promise is not made to them" in caplog.text


class TestOnce:
    def test_the_same_batch_again_changes_nothing_even_under_another_champion(self, office):
        version = promote(office.registry)
        write(office)
        folder = office.score("b1").folder
        before = files_of(folder)
        promote(office.registry, shift=1.0)
        again = office.score("b1")
        assert again.already
        assert f"already scored by version {version}" in again.words()
        assert files_of(folder) == before
        write(office, "b2.csv")
        assert office.score("b2").manifest["version"] != version

    def test_the_same_id_for_other_people_is_refused_with_both_hashes(self, office):
        promote(office.registry)
        write(office)
        scored = office.score("b1")
        before = files_of(scored.folder)
        write(office, table=PEOPLE.iloc[1:])
        with pytest.raises(DataError, match=r"'b1' was scored on .* other content") as error:
            office.score("b1")
        assert scored.manifest["content_sha256"] in str(error.value)
        content = (office.batches / "b1.csv").read_bytes()
        assert hashlib.sha256(content).hexdigest() in str(error.value)
        assert files_of(scored.folder) == before

    def test_another_run_at_work_is_named_and_nothing_is_done(self, office):
        promote(office.registry)
        write(office)
        with (
            held(BatchFolder(office.scored, "b1").lock),
            pytest.raises(
                LockedError, match=r"process \d+ on .* is at work here and holds .*b1\.lock"
            ),
        ):
            office.score("b1")
        assert not office.score("b1").already

    def test_an_altered_manifest_is_refused(self, office):
        promote(office.registry)
        write(office)
        path = office.score("b1").folder / "manifest.json"
        path.write_text(path.read_text().replace("approved", "refused "))
        with pytest.raises(ModelFileError, match="was altered"):
            office.score("b1")
        path.unlink()
        with pytest.raises(ModelFileError, match=r"holds no manifest\.json"):
            office.score("b1")


def test_scored_people_are_for_their_owner_alone_where_the_unit_says_so(office):
    """`UMask=0077` of the systemd unit holds for whatever is written, parts and renames too."""
    promote(office.registry)
    write(office)
    before = os.umask(0o077)
    try:
        folder = office.score("b1").folder
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    assert len(modes) > 1
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def interrupted(office, monkeypatch, after=1):
    """Score, but die after so many parts; return the folder of what was under way."""

    def stops(task, parts, folder, mapper):
        class Stopping:
            workers = 1

            def map(self, work, items, shared):
                for number, done in enumerate(mapper.map(work, items, shared)):
                    if number == after:
                        raise KeyboardInterrupt
                    yield done

        return map_parts(task, parts, folder, Stopping())

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "map_parts", stops)
        with pytest.raises(KeyboardInterrupt):
            office.score("b1", rows=30)
    return BatchFolder(office.scored, "b1").work


class TestInterrupted:
    def test_the_rest_is_done_by_the_champion_it_was_begun_with(self, office, monkeypatch):
        first = promote(office.registry)
        write(office)
        work = interrupted(office, monkeypatch)
        assert not (office.scored / "b1").exists()
        started = BatchStart.read(work)
        assert started is not None
        assert started.version == first
        promote(office.registry, shift=1.0)
        done = {path.name: path.stat().st_mtime_ns for path in work.glob(".scored.partial/part-*")}
        assert done
        scored = office.score("b1", rows=30)
        assert set(scored.people().read()["version"]) == {first}
        assert scored.manifest["kept_parts"] == len(done)
        kept = {name: (scored.folder / name).stat().st_mtime_ns for name in done}
        assert kept == done
        assert not work.exists()

    def test_nothing_but_the_manifest_missing_is_finished_without_scoring_again(
        self, office, monkeypatch
    ):
        promote(office.registry)
        write(office)

        def dies(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(scoring, "counted", dies)
            with pytest.raises(KeyboardInterrupt):
                office.score("b1")
        monkeypatch.setattr(scoring, "map_parts", dies)
        assert office.score("b1").manifest["kept_parts"] == 3

    def test_a_champion_that_no_longer_loads_stops_it(self, office, monkeypatch):
        first = promote(office.registry)
        write(office)
        work = interrupted(office, monkeypatch)
        promote(office.registry, shift=1.0)
        shutil.rmtree(office.registry / "versions" / first)
        with pytest.raises(ModelFileError, match=f"begun by version {first}, which no longer"):
            office.score("b1", rows=30)
        shutil.rmtree(work)
        assert office.score("b1").manifest["version"] != first

    def test_other_content_is_refused(self, office, monkeypatch):
        promote(office.registry)
        write(office)
        interrupted(office, monkeypatch)
        write(office, table=PEOPLE.iloc[1:])
        with pytest.raises(DataError, match=r"'b1' was begun on .* other content"):
            office.score("b1", rows=30)

    def test_other_settings_do_all_of_it_again_with_the_same_champion(self, office, monkeypatch):
        first = promote(office.registry)
        write(office)
        interrupted(office, monkeypatch)
        promote(office.registry, shift=1.0)
        scored = office.score("b1", rows=30, seed=1)
        assert scored.manifest["kept_parts"] == 0
        assert scored.manifest["version"] == first


class TestSetAside:
    @pytest.mark.parametrize(
        ("column", "cell", "expected"),
        [
            ("education", "kindergarten", "one of "),
            ("savings", 900.0, "at most 200"),
            ("open_loans", "two", "a number"),
            ("income", None, "a value"),
        ],
    )
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_one_wrong_row_is_listed_and_the_others_are_scored(
        self, office, column, cell, expected, form
    ):
        promote(office.registry)
        write(office, f"whole.{form}")
        write(office, f"b1.{form}", with_cell(PEOPLE, column, cell))
        scored, whole = office.score("b1", rows=30), office.score("whole")
        (line,) = pd.read_csv(scored.folder / "quarantine.csv").to_dict("records")
        assert line["row"] == 50
        assert line["row_id"] == "applicant-50"
        assert line["column"] == column
        assert line["expected"].startswith(expected)
        assert scored.manifest["rows"] == 119
        assert scored.manifest["applicants"] == 120
        assert scored.manifest["set_aside"] == 1
        assert "1 of 120 rows set aside (0.8%)" in scored.words()
        found, others = scored.people().read(), whole.people().read()
        pd.testing.assert_frame_equal(found, others.drop(index=50).reset_index(drop=True))
        assert not (whole.folder / "quarantine.csv").exists()

    def test_a_person_twice_is_listed_twice_and_a_repeated_line_once(self, office):
        promote(office.registry)
        write(office, "b1.csv", with_cell(PEOPLE, "person", "applicant-3"))
        write(office, "b2.csv", pd.concat([PEOPLE, PEOPLE.iloc[[7]]]))
        listed = pd.read_csv(office.score("b1", rows=30).folder / "quarantine.csv")
        assert listed["row"].tolist() == [3, 50]
        scored = office.score("b2", rows=30)
        assert pd.read_csv(scored.folder / "quarantine.csv")["row"].tolist() == [120]
        assert scored.people().read()["row_id"].tolist() == PEOPLE["person"].tolist()

    def test_the_rows_are_those_of_the_whole_batch(self, office):
        promote(office.registry)
        write(office, "b1/a.csv", PEOPLE.iloc[:60])
        write(office, "b1/b.csv", with_cell(PEOPLE.iloc[60:], "savings", -1.0))
        listed = pd.read_csv(office.score("b1", rows=20).folder / "quarantine.csv")
        assert listed["row"].tolist() == [110]

    def test_an_interrupted_batch_lists_them_too(self, office, monkeypatch):
        promote(office.registry)
        write(office, table=with_cell(PEOPLE, "savings", -1.0))
        interrupted(office, monkeypatch)
        scored = office.score("b1", rows=30)
        assert scored.manifest["set_aside"] == 1
        assert scored.manifest["applicants"] == 120
        assert (scored.folder / "quarantine.csv").is_file()


class TestRefused:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda t: t.drop(columns="income"), "missing columns: 'income'"),
            (lambda t: t.assign(extra=1), "extra columns"),
            (lambda t: t.assign(income=[-1.0] * 7 + [50.0] * 113), r"7 of 120 rows \(5.8%\)"),
            (lambda t: t.iloc[:0], "no rows"),
        ],
    )
    @pytest.mark.parametrize("form", ["csv", "parquet"])
    def test_a_bad_table_stops_the_batch_and_nothing_is_left(self, office, change, said, form):
        promote(office.registry)
        write(office, f"b1.{form}", change(PEOPLE))
        with pytest.raises(DataError, match=said) as error:
            office.score("b1")
        assert "'b1'" in str(error.value)
        assert [path.name for path in office.scored.iterdir()] == [".b1.lock"]

    def test_a_batch_that_was_corrected_keeps_its_id(self, office):
        promote(office.registry)
        write(office, table=PEOPLE.assign(income=-1.0))
        with pytest.raises(DataError, match="cannot be used"):
            office.score("b1")
        write(office)
        assert office.score("b1").manifest["rows"] == len(PEOPLE)

    def test_without_a_champion_it_says_how_to_get_one(self, office):
        write(office)
        with pytest.raises(ModelFileError, match="kedro run --pipeline=retrain"):
            office.score("b1")

    def test_a_champion_of_another_schema_is_refused(self, office):
        promote(office.registry)
        write(office)
        other = Registry(str(office.registry), replace(SCHEMA, ignore=("z",), sensitive=()))
        with pytest.raises(ModelFileError, match="another schema"):
            office.score("b1", registry=other)

    def test_a_file_that_is_none_is_refused(self, office):
        promote(office.registry)
        (office.batches / "b1.parquet").write_bytes(b"not parquet")
        with pytest.raises(DataError, match="not a parquet file"):
            office.score("b1")
        with pytest.raises(DataError, match="missing table: 'b2'"):
            office.score("b2")


def with_cell(table, column, value):
    """Return a copy with another value in one cell, of person 50."""
    cells = table[column].tolist()
    cells[50] = value
    if isinstance(value, str):
        cells = [str(cell) for cell in cells]
    return table.assign(**{column: cells})


def test_names_of_certificates_do_not_hang_on_the_order_of_keys():
    turned = dict(reversed(CERTIFICATE.items()))
    assert json.dumps(turned) != json.dumps(CERTIFICATE)
    assert certificate_id(turned) == certificate_id(CERTIFICATE)
    assert certificate_id(CERTIFICATE | {"level": 0.9}) != certificate_id(CERTIFICATE)
    assert len(certificate_id(CERTIFICATE)) == 16


def test_long_text_files_are_read_in_pieces_as_in_one(office):
    path = write(office, "b1.csv", PEOPLE.assign(note='a, "b"\nc'))
    pieces = raw_partitions("b1", office.batches, 7).read()
    pd.testing.assert_frame_equal(pieces, read_file(path))
