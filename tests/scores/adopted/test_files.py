"""Model files are read without the library that made them; what runs code is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from countermove import adopt, load, save
from countermove.errors import CountermoveError, ModelFileError

FILES = Path(__file__).parent / "files"
STORED = json.loads((FILES / "probabilities.json").read_text())


def stored_rows(name: str = "rows") -> np.ndarray:
    return np.array([[np.nan if v is None else v for v in row] for row in STORED[name]])


@pytest.mark.parametrize("name", ["xgboost.json", "xgboost_dart.json"])
def test_a_stored_boosters_probabilities_are_those_it_had(name: str) -> None:
    rows = stored_rows()
    model = adopt(FILES / name, rows)
    expected = np.array(STORED[name.split(".")[0]])
    assert np.abs(model.predict_proba(rows)[:, 1] - expected).max() <= 1e-6
    turned = adopt(FILES / name, rows, favourable=0)
    assert np.abs(turned.predict_proba(rows)[:, 1] - expected).max() <= 1e-6


def test_sets_of_categories_of_xgboost_are_read() -> None:
    rows = stored_rows("coded_rows")
    model = adopt(FILES / "xgboost_categories.json", rows)
    expected = np.array(STORED["xgboost_categories"])
    assert model.score_.ensemble.coded == ((1,),)
    assert np.abs(model.predict_proba(rows)[:, 1] - expected).max() <= 1e-6


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("model.cbm", b"CBM1....", "CatBoost itself: pass the fitted CatBoostClassifier to adopt"),
        ("model.json", b'{"features_info": {}}', "CatBoost itself: pass the fitted CatBoostClass"),
        ("model.onnx", b"\x08\x07", "ONNX itself: pass an onnxruntime.InferenceSession of it"),
        ("model.skops", b"PK\x03\x04", "skops itself: pass the estimator that skops.io.load"),
        (
            "model.ubj",
            b"{L\x00",
            r"UBJSON itself: .* save it as JSON \(save_model",
        ),
    ],
)
def test_what_a_library_reads_itself_is_named_with_the_way_out(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        adopt(tmp_path / name, np.zeros((5, 5)))


def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    return X, (X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=300) > 0).astype(int)


def test_a_lightgbm_text_file_is_read_without_the_model(tmp_path: Path) -> None:
    X, y = people()
    fitted = lightgbm.LGBMClassifier(n_estimators=10, verbose=-1).fit(X, y)
    fitted.booster_.save_model(tmp_path / "rule.txt")
    model = adopt(tmp_path / "rule.txt", X)
    assert model.own is None
    assert np.abs(model.predict_proba(X) - fitted.predict_proba(X)).max() <= 1e-6


@pytest.mark.parametrize("compressed", [False, True])
def test_a_pickle_is_refused_unopened_with_the_way_out(tmp_path: Path, compressed: bool) -> None:
    import zlib

    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    content = pickle.dumps(Bomb())
    path = tmp_path / ("model.bin" if compressed else "model.joblib")
    path.write_bytes(zlib.compress(content) if compressed else content)
    with pytest.raises(ModelFileError, match="adopt the object, and save"):
        adopt(path, people()[0])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"{ not json", b"hello"])
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.json").write_bytes(content)
    with pytest.raises(CountermoveError):
        adopt(tmp_path / "model.json", people()[0])


@pytest.mark.parametrize(
    "fitted", [lightgbm.LGBMClassifier(n_estimators=5, verbose=-1), LogisticRegression()]
)
def test_a_saved_model_is_the_same_and_an_altered_one_refused(tmp_path: Path, fitted: Any) -> None:
    X, y = people()
    model = adopt(fitted.fit(X, y), X)
    digest = save(model, tmp_path / "rule")
    again = load(tmp_path / "rule")
    assert len(digest) == 64
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.exactness == model.exactness
    with pytest.raises(ModelFileError, match="never overwritten"):
        save(model, tmp_path / "rule")
    path = tmp_path / "rule" / "adopted.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="altered"):
        load(tmp_path / "rule")


BAD = {
    "xgboost.json, three classes": ('"binary:logistic"', '"multi:softprob"', "binary:logistic"),
    "xgboost.json, a number": ('"binary:logistic"', '"reg:squarederror"', "binary:logistic"),
    "xgboost.json, a linear booster": ('"gbtree"', '"gblinear"', "is not read"),
    "model.txt, three classes": ("num_class=1", "num_class=3", "tells 3 classes apart"),
    "model.txt, a number": ("objective=binary", "objective=regression", "gives no probability"),
    "model.txt, linear leaves": ("is_linear=0", "is_linear=1", "linear_tree"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_what_a_file_may_hold_and_is_not_read_is_named(tmp_path: Path, case: str) -> None:
    name, (old, new, words) = case.partition(",")[0], BAD[case]
    if name == "model.txt":
        fitted = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(*people())
        text = fitted.booster_.model_to_string()
    else:
        text = (FILES / name).read_text()
    assert old in text
    (tmp_path / name).write_text(text.replace(old, new))
    with pytest.raises(ModelFileError, match=words):
        adopt(tmp_path / name, np.zeros((5, 5)) if name != "model.txt" else people()[0])
