"""Models at rest: safetensors for the numbers, JSON for what they mean.

A model is written beside its destination and renamed into place, so a reader
sees a whole model or none. Both files carry a SHA-256; loading never runs code.
"""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest, write_folder
from countermove.errors import CountermoveError, DataError, ModelFileError, nearest
from countermove.scores.base import Score, values
from countermove.scores.covariance import BootstrapRefits, RuleCovariance
from countermove.scores.index_trees import IndexTreesScore
from countermove.scores.linear import LinearScore
from countermove.scores.mlp import MLPScore
from countermove.scores.nearest_centroid import NearestCentroidScore
from countermove.scores.partly_linear import PartlyLinearScore
from countermove.scores.recurrent import RecurrentScore
from countermove.scores.representation import RepresentationScore
from countermove.scores.trees import TreeScore

FORMAT_VERSION = 2
WEIGHTS = "score.safetensors"
COVARIANCE = "covariance.safetensors"
"""Only there where the rule knows its covariance."""
REFITS = "refits.safetensors"
"""Only there where a score without a covariance was fitted again to rows drawn from its own."""
DESCRIPTION = "model.json"
SCHEMA = "schema"
"""Key of a model's facts: the name and the content of the schema it was made for."""
_KINDS: dict[str, type[Score]] = {
    kind.kind: kind
    for kind in (
        IndexTreesScore,
        LinearScore,
        MLPScore,
        NearestCentroidScore,
        PartlyLinearScore,
        RecurrentScore,
        RepresentationScore,
        TreeScore,
    )
}


@dataclass(frozen=True)
class PublishedModel:
    """A score and a threshold with everything needed to apply them to a raw table."""

    score: Score  # as it was trained, in standardised units
    standardiser: Standardiser  # from original to standardised units
    schema_digest: str  # SHA-256 of the schema the model was made for
    about: dict[str, Any] = field(default_factory=dict)  # parameters, response, seed
    threshold: float = 0.5  # the probability that is asked for
    covariance: RuleCovariance | None = None  # how far another fit would move the score
    refits: BootstrapRefits | None = None  # the same of scores without a covariance

    @property
    def probability_slope(self) -> float:
        """Log-odds per unit of score: 1 unless training found another factor."""
        return float(self.about.get("probability_slope", 1.0))

    @cached_property
    def schema(self) -> Schema | None:
        """The schema it was made for; None where only its digest was stored."""
        if SCHEMA not in self.about:
            return None
        found = Schema.from_mapping(**self.about[SCHEMA])
        if found.digest() != self.schema_digest:
            raise ModelFileError(
                f"the schema {found.name!r} beside the model is not the one it was made for "
                f"(digest {found.digest()[:12]}…, recorded {self.schema_digest[:12]}…); restore "
                "the files or use another version"
            )
        return found

    @cached_property
    def rule(self) -> Score:
        """The final rule, which people respond to: favourable where this score is at least 0."""
        if self.threshold == 0.5:
            return self.score
        return self.score.at_threshold(self.threshold, self.probability_slope)

    def without_threshold(self) -> PublishedModel:
        """Return the model at a probability of one half: its score as it was trained."""
        return replace(self, threshold=0.5)


def schema_facts(schema: Schema) -> dict[str, Any]:
    """Return the schema as a model's facts hold it, JSON-ready."""
    return {SCHEMA: {"name": schema.name, "mapping": schema.to_mapping()}}


def model_digest(model: PublishedModel) -> str:
    """Return the SHA-256 of a model's description, weights included: what `save_model` returns."""
    return canonical_digest(_described(model, _files(model)))


def score_digest(score: Score) -> str:
    """Return a SHA-256 that two scores share only if they are the same function."""
    said = json.dumps([score.kind, score.describe()], sort_keys=True)
    return hashlib.sha256(said.encode() + _weights(score)).hexdigest()


def pack_model(model: PublishedModel) -> tuple[dict[str, bytes], str]:
    """Return a model as files by name, its description last, and the description's SHA-256."""
    files = _files(model)
    description = _described(model, files)
    digest = canonical_digest(description)
    text = json.dumps(description | {"sha256": digest}, indent=2, allow_nan=False)
    return {**files, DESCRIPTION: text.encode()}, digest


def save_model(model: PublishedModel, folder: Path) -> str:
    """Write a model into a new folder, all or nothing; return the SHA-256 of its description."""
    files, digest = pack_model(model)
    write_folder(folder, files)
    return digest


def load_model(folder: Path, schema: Schema | None = None) -> PublishedModel:
    """Read a model, refusing one that is damaged, altered or made for another schema."""
    return unpack_model(lambda name: _read(folder / name), str(folder), schema)[0]


def unpack_model(
    read: Callable[[str], bytes], where: str, schema: Schema | None = None
) -> tuple[PublishedModel, str]:
    """Return the model in the files that ``read`` returns by name, and its SHA-256."""
    try:
        model, digest = _unpacked(read, where, schema)
        wrong = _faults(model, schema)
    except CountermoveError:
        raise
    except Exception as error:
        # Whoever rewrites a description with its digest can put anything anywhere in it.
        raise ModelFileError(
            f"{where} does not describe a model: {type(error).__name__}: {str(error)[:200]}; "
            "restore the files or use another version"
        ) from error
    if wrong:
        raise ModelFileError(
            f"the model in {where} cannot decide about anybody: {'; '.join(wrong)}; restore the "
            "files, or go back with: kedro countermove rollback"
        )
    return model, digest


def _faults(model: PublishedModel, schema: Schema | None) -> list[str]:
    """Return what is wrong with a model's numbers; who rewrites all hashes can store any."""
    d, rules = model.standardiser.n_features, [model.score]
    rules += [] if model.refits is None else model.refits.scores
    checks = {
        f"its threshold is {model.threshold}, not between 0 and 1": 0.0 < model.threshold < 1.0,
        f"its slope is {model.probability_slope}, not a number above 0": (
            0.0 < model.probability_slope < math.inf
        ),
        f"its score reads {model.score.n_features} columns, its units are of {d}": all(
            rule.n_features == d for rule in rules
        ),
        "its weights, or those of its refits, are not all finite": all(map(_finite, rules)),
    }
    if schema is not None:
        checks["its columns are not those of the schema"] = (
            model.standardiser.names == schema.feature_names
        )
    wrong = [fault for fault, right in checks.items() if not right]
    if not wrong and not np.isfinite(values(model.score, np.zeros((1, d)))).all():
        wrong.append("its score of the average person is no finite number")
    return wrong


def _finite(score: Score) -> bool:
    """Return whether every weight is a number; a split of trees may be infinite."""
    return all(
        bool(torch.isfinite(weights).all())
        for name, weights in score.state_dict().items()
        if weights.is_floating_point() and not name.startswith("trees_")
    )


def _unpacked(
    read: Callable[[str], bytes], where: str, schema: Schema | None
) -> tuple[PublishedModel, str]:
    description, digest = _read_description(read(DESCRIPTION), f"{where}/{DESCRIPTION}")
    if schema is not None and description["schema_digest"] != schema.digest():
        raise ModelFileError(
            f"the model in {where} was made for another schema (digest "
            f"{description['schema_digest'][:12]}…, the present one is {schema.digest()[:12]}…); "
            "retrain it, or restore the schema it was trained with"
        )
    weights = _verified(read, where, WEIGHTS, description["weights_sha256"])
    kind = description["score"]["kind"]
    if kind not in _KINDS:
        raise ModelFileError(
            f"{where} holds a score of unknown kind {kind!r}; {nearest(kind, _KINDS)}"
        )
    try:
        score = _KINDS[kind].rebuilt(description["score"]["arguments"], load_tensors(weights))
    except (SafetensorError, RuntimeError, KeyError) as error:
        raise ModelFileError(f"{where}/{WEIGHTS} does not fit its description: {error}") from error
    standardiser = Standardiser.from_json(description["standardiser"])
    about, made_for = description["about"], description["schema_digest"]
    covariance = _read_covariance(read, where, description, score)
    refits = _read_refits(read, where, description)
    threshold = description["threshold"]
    return PublishedModel(
        score, standardiser, made_for, about, threshold, covariance, refits
    ), digest


def score_to_json(score: Score) -> dict[str, Any]:
    """Return a score with its weights, as text, inside a JSON record."""
    said: dict[str, Any] = {"kind": score.kind, "arguments": score.describe()}
    return said | {"weights": b64encode(_weights(score)).decode()}


def score_from_json(said: Mapping[str, Any]) -> Score:
    """Return the score that `score_to_json` described."""
    if said["kind"] not in _KINDS:
        hint = nearest(str(said["kind"]), _KINDS)
        raise ModelFileError(f"no score is of kind {said['kind']!r}; {hint}")
    return _KINDS[said["kind"]].rebuilt(said["arguments"], load_tensors(b64decode(said["weights"])))


def _verified(read: Callable[[str], bytes], where: str, name: str, recorded: str) -> bytes:
    """Return a file's content, refused unless it has the SHA-256 that its description records."""
    content = read(name)
    if hashlib.sha256(content).hexdigest() != recorded:
        raise ModelFileError(
            f"{where}/{name} is truncated or was altered: its SHA-256 is not the one its "
            "description records; restore the file or use another version"
        )
    return content


def _read_covariance(
    read: Callable[[str], bytes], where: str, description: dict[str, Any], score: Score
) -> RuleCovariance | None:
    """Return the covariance beside the weights; None of a model that has none."""
    said = description.get("covariance")
    if said is None:
        return None
    content = _verified(read, where, COVARIANCE, said["sha256"])
    try:
        found = RuleCovariance.from_json(load_tensors(content)["matrix"].numpy(), said)
    except (SafetensorError, KeyError, DataError) as error:
        raise ModelFileError(f"{where}/{COVARIANCE} holds no covariance: {error}") from error
    if found.n_features != score.n_features:
        raise ModelFileError(
            f"{where}/{COVARIANCE} is of {found.n_features} weights, the score has "
            f"{score.n_features}; use another version"
        )
    return found


def _read_refits(
    read: Callable[[str], bytes], where: str, description: dict[str, Any]
) -> BootstrapRefits | None:
    """Return the refits beside the weights; None of a model that has none."""
    said = description.get("refits")
    if said is None:
        return None
    content = _verified(read, where, REFITS, said["sha256"])
    try:
        stacked, arguments = load_tensors(content), description["score"]["arguments"]
        kind = _KINDS[description["score"]["kind"]]
        scores = tuple(
            kind.rebuilt(arguments, {name: part[k] for name, part in stacked.items()})
            for k in range(said["count"])
        )
        return BootstrapRefits(scores, int(said["rows"]), float(said["cut_variance"]))
    except (SafetensorError, RuntimeError, IndexError, KeyError, DataError) as error:
        raise ModelFileError(f"{where}/{REFITS} holds no refits: {error}") from error


def _weights(score: Score) -> bytes:
    weights: bytes = save_tensors({k: v.contiguous() for k, v in score.state_dict().items()})
    return weights


def _files(model: PublishedModel) -> dict[str, bytes]:
    """Return the files of numbers by name."""
    files = {WEIGHTS: _weights(model.score)}
    if model.covariance is not None:
        files[COVARIANCE] = save_tensors({"matrix": torch.from_numpy(model.covariance.matrix)})
    if model.refits is not None:
        parts = [score.state_dict() for score in model.refits.scores]
        files[REFITS] = save_tensors(
            {name: torch.stack([part[name] for part in parts]).contiguous() for name in parts[0]}
        )
    return files


def _described(model: PublishedModel, files: dict[str, bytes]) -> dict[str, Any]:
    said: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "package_version": version("countermove"),
        "schema_digest": model.schema_digest,
        "score": {"kind": model.score.kind, "arguments": model.score.describe()},
        "threshold": model.threshold,
        "standardiser": model.standardiser.to_json(),
        "about": model.about,
        "weights_sha256": hashlib.sha256(files[WEIGHTS]).hexdigest(),
    }
    if model.covariance is not None:
        digest = hashlib.sha256(files[COVARIANCE]).hexdigest()
        said["covariance"] = model.covariance.to_json() | {"sha256": digest}
    if model.refits is not None:
        said["refits"] = {
            "count": len(model.refits.scores),
            "rows": model.refits.rows,
            "cut_variance": model.refits.cut_variance,
            "sha256": hashlib.sha256(files[REFITS]).hexdigest(),
        }
    return said


def _read_description(content: bytes, path: str) -> tuple[dict[str, Any], str]:
    try:
        description: dict[str, Any] = json.loads(content)
        recorded: str = description.pop("sha256")
        digest = canonical_digest(description)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ModelFileError(
            f"{path} is not a model description: {type(error).__name__}: {str(error)[:200]}; "
            "restore the file or use another version"
        ) from error
    if description.get("format_version") != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {description.get('format_version')!r}, this release reads "
            f"{FORMAT_VERSION}; load it with the release that wrote it "
            f"({description.get('package_version')})"
        )
    if digest != recorded:
        raise ModelFileError(
            f"{path} was altered: its content does not match the SHA-256 it records; "
            "restore the file or use another version"
        )
    return description, recorded


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror or error}") from error
