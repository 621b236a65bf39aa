"""ONNX: tree ensembles and linear classifiers by reading the graph, others as black boxes.

Graphs compute in float32. A graph is read where it is one classifier after at most a scaler;
what follows it (normalising, zipping labels) does not change the probabilities of two labels.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from countermove._types import Floats
from countermove.errors import MissingPartError, ModelFileError, ParameterError
from countermove.scores._links import Link
from countermove.scores.adopted._columns import TableColumns
from countermove.scores.adopted._parsed import ParsedTrees
from countermove.scores.adopted._readers import (
    AdoptedBody,
    Labels,
    black_box,
    linear_body,
    names_of,
    plain,
    tree_body,
)
from countermove.scores.trees import largest_double

HARMLESS = {"Identity", "Cast", "ZipMap", "Normalizer", "ArrayFeatureExtractor", "Reshape"}
"""Nodes after a classifier that leave the probabilities of two labels what they are."""


def load_onnx(path: Path) -> Any:
    """Return the graph of a file."""
    onnx = _onnx()
    try:
        return onnx.load_model(str(path))
    except Exception as error:
        raise ModelFileError(f"{path} is no ONNX model: {error}") from error


def of_onnx(model: Any, background: Any, favourable: Any, columns: Any) -> AdoptedBody:
    """Return the body of a graph or of a session."""
    graph = model if hasattr(model, "graph") else _graph_of(model)
    nodes = [node for node in graph.graph.node if node.op_type not in HARMLESS]
    kinds = [node.op_type for node in nodes]
    n = _width(graph, columns, background)
    names, _ = names_of(None, background, columns, n)
    session = _session(model)
    place_of = Labels.of(np.array([0, 1]), favourable)
    if kinds in (["TreeEnsembleClassifier"], ["LinearClassifier"]):
        said = _attributes(nodes[0])
        classes = said.get("classlabels_int64s") or said.get("classlabels_strings") or [0, 1]
        labels = Labels.of(np.array(classes), favourable)
        own = _own(session, labels.place)
        table = TableColumns(names)
        if kinds == ["LinearClassifier"]:
            return _linear(said, n, table, labels, own)
        parsed = _trees(said, labels.place)
        return tree_body(parsed, plain(n), table, labels, "ONNX tree ensemble", own)
    warnings.warn(
        f"the ONNX graph is adopted as a black box: of its nodes ({', '.join(kinds)}) only a lone "
        "TreeEnsembleClassifier or LinearClassifier is read, so that crossings are searched for "
        "and never proven",
        UserWarning,
        stacklevel=3,
    )
    return black_box(_own(session, place_of.place), TableColumns(names), place_of, "ONNX graph")


def _width(graph: Any, columns: Any, background: Any) -> int:
    """Return how many columns a graph reads: as it says itself, else as they are named."""
    dims = graph.graph.input[0].type.tensor_type.shape.dim
    said = int(dims[1].dim_value) if len(dims) == 2 else 0
    return said or (np.shape(background)[1] if columns is None else len(columns))


def _linear(
    said: dict[str, Any], n: int, table: TableColumns, labels: Labels, own: Any
) -> AdoptedBody:
    weights = np.array(said["coefficients"], np.float64).reshape(-1, n)
    constants = np.array(said.get("intercepts", np.zeros(len(weights))), np.float64)
    if said.get("post_transform", "NONE") not in ("LOGISTIC", "SOFTMAX"):
        raise ParameterError("an ONNX linear classifier without a logistic gives no probability")
    slope, constant = weights[-1], constants[-1]
    if said["post_transform"] == "SOFTMAX" and len(weights) == 2:
        slope, constant = weights[1] - weights[0], constants[1] - constants[0]
    sign = 1.0 if labels.place == 1 else -1.0
    return linear_body(
        sign * slope, sign * float(constant), plain(n), table, labels, "ONNX linear classifier", own
    )


def _trees(said: dict[str, Any], place: int) -> ParsedTrees:
    """Return the trees of a TreeEnsembleClassifier for one of its two labels."""
    owners = np.array(said["nodes_treeids"])
    ids = np.array(said["nodes_nodeids"])
    weights = _leaf_weights(said, place)
    logistic = said.get("post_transform", "NONE") == "LOGISTIC"
    base = said.get("base_values", [])
    offset = float(base[min(place, len(base) - 1)]) if base else 0.0
    parsed = ParsedTrees(offset=offset, link=Link() if logistic else Link("probability"))
    if logistic and place == 0:
        parsed.offset = -offset
    tracks = said.get("nodes_missing_value_tracks_true") or [0] * len(ids)
    for tree in dict.fromkeys(owners.tolist()):
        _add(parsed, said, np.flatnonzero(owners == tree), ids, weights, int(tree), tracks)
    return parsed


def _leaf_weights(said: dict[str, Any], place: int) -> dict[tuple[int, int], float]:
    """Return what every leaf adds to the favourable label."""
    ids, classes = said["class_ids"], said["class_weights"]
    logistic = said.get("post_transform", "NONE") == "LOGISTIC"
    one = len(set(ids)) == 1  # two labels told apart by one number
    found: dict[tuple[int, int], float] = {}
    for tree, node, label, weight in zip(
        said["class_treeids"], said["class_nodeids"], ids, classes, strict=True
    ):
        if one:
            value = float(weight)
            if place == 0:
                value = -value
            found[int(tree), int(node)] = value
        elif int(label) == place:
            found[int(tree), int(node)] = float(weight)
    if one and place == 0 and not logistic:
        raise ParameterError(
            "the ONNX trees hold the probability of the second label alone; adopt the model with "
            "that one as the favourable label"
        )
    return found


def _add(
    parsed: ParsedTrees,
    said: dict[str, Any],
    here: Any,
    ids: Any,
    weights: dict[tuple[int, int], float],
    tree: int,
    tracks: Any,
) -> None:
    at = {int(ids[k]): place for place, k in enumerate(here)}
    feature, split, left, right, missing, value = ([] for _ in range(6))
    for k in here:
        mode = said["nodes_modes"][k]
        mode = mode.decode() if isinstance(mode, bytes) else mode
        feature.append(int(said["nodes_featureids"][k]))
        value.append(weights.get((tree, int(ids[k])), 0.0))
        if mode == "LEAF":
            split.append(0.0)
            left.append(-1)
            right.append(-1)
            missing.append(False)
            continue
        if mode not in ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE"):
            raise ModelFileError(f"ONNX tree nodes of mode {mode} are not read")
        yes, no = at[int(said["nodes_truenodeids"][k])], at[int(said["nodes_falsenodeids"][k])]
        strict = mode in ("BRANCH_LT", "BRANCH_GTE")
        bound = np.array([np.float32(said["nodes_values"][k])], np.float64)
        split.append(float(largest_double(bound, strict)[0]))
        upward = mode in ("BRANCH_GT", "BRANCH_GTE")
        left.append(no if upward else yes)
        right.append(yes if upward else no)
        missing.append(bool(tracks[k]) != upward)
    parsed.add(feature, split, left, right, missing, value)


def _attributes(node: Any) -> dict[str, Any]:
    from onnx.helper import get_attribute_value

    found = {one.name: get_attribute_value(one) for one in node.attribute}
    return {k: v.decode() if isinstance(v, bytes) else v for k, v in found.items()}


def _own(session: Any, place: int) -> Any:
    name = session.get_inputs()[0].name

    def probabilities(table: Any) -> Floats:
        found = session.run(None, {name: np.asarray(table, np.float32)})[-1]
        if isinstance(found, list):  # a mapping from label to probability per row
            found = np.array([list(row.values()) for row in found])
        found = np.asarray(found, np.float64)
        if found.ndim == 1 or found.shape[1] == 1:
            one = np.ravel(found)
            return one if place == 1 else 1.0 - one
        result: Floats = found[:, place]
        return result

    return probabilities


def _session(model: Any) -> Any:
    if hasattr(model, "run"):
        return model
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPartError(
            "ONNX models are run by onnxruntime; install countermove[onnx]"
        ) from error
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def _graph_of(session: Any) -> Any:
    path = getattr(session, "_model_path", None)
    content = getattr(session, "_model_bytes", None)
    if path:
        return _onnx().load_model(path)
    if content:
        return _onnx().load_model_from_string(content)
    raise ParameterError("this ONNX session does not say what it was made from; adopt its file")


def _onnx() -> Any:
    try:
        import onnx
    except ImportError as error:
        raise MissingPartError("ONNX graphs are read by onnx; install countermove[onnx]") from error
    return onnx
