"""Every documented limit refuses, and says what is expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest

from countermove.errors import ParameterError
from countermove.params import GROUPS
from countermove.params.base import Parameters
from countermove.params.checking import check_group

EXPERIMENTS = {"sweep", "paper", "lookahead", "collective"}
SHOWN = sorted(set(GROUPS) - EXPERIMENTS)
NEEDED: Mapping[str, Any] = {
    "weights": [1.0, 2.0],
    "matrix": [[1.0, 0.0], [0.0, 1.0]],
    "direction": [1.0, 2.0],
    "gamma": 0.5,
    "function": "package.module:function",
    "members": [{"kind": "best"}, {"kind": "none"}],
    "column": "region",
    "level": 0.975,
    "price": [0.9, 1.1],
    "ca_file": "a.pem",
    "cert": "b.pem",
    "key": "c.pem",
}
"""A value for each setting without a default."""


def alternatives(annotation: Any) -> list[Any]:
    """Return the types that an annotation allows."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [each for inner in get_args(annotation) for each in alternatives(inner)]
    return [annotation]


def limits(annotation: Any) -> list[Any]:
    """Return the constraints inside an annotation."""
    inner = [each for one in get_args(annotation) for each in limits(one)]
    own = getattr(annotation, "__metadata__", ())
    return [*inner, *(each for one in own for each in getattr(one, "metadata", [one]))]


def models(annotation: Any) -> list[type[Parameters]]:
    types = [each for each in alternatives(annotation) if isinstance(each, type)]
    return [each for each in types if issubclass(each, Parameters)]


def beyond(annotation: Any, metadata: tuple[Any, ...]) -> Iterator[Any]:
    """Yield values that a setting must refuse."""
    types = alternatives(annotation)
    if NoneType not in types:
        yield None
    for limit in (*metadata, *limits(annotation)):
        for name, step in (("gt", 0), ("ge", -1), ("lt", 0), ("le", 1)):
            edge = getattr(limit, name, None)
            if edge is not None:
                yield edge + step
    if {float, int} & set(types):
        yield from ("abc", float("inf"), float("nan"))
    if int in types and float not in types:
        yield 2.5
    if any(get_origin(each) is Literal for each in types):
        yield "something else"
    if bool in types:
        yield "perhaps"


def cases(path: str, model: type[Parameters]) -> Iterator[tuple[str, str, dict[str, Any], Any]]:
    """Yield the way to a setting, its name, what else its group needs, and a wrong value."""
    given = {
        name: NEEDED[name]
        for name, field in model.model_fields.items()
        if field.is_required() and name != "kind"
    }
    if "kind" in model.model_fields:
        given["kind"] = get_args(model.model_fields["kind"].annotation)[0]
    for name, field in model.model_fields.items():
        lists = [get_origin(each) in (list, tuple, dict) for each in alternatives(field.annotation)]
        if name == "kind" or models(field.annotation) or any(lists):
            continue
        for wrong in beyond(field.annotation, tuple(field.metadata)):
            yield path, name, given, wrong
    for name, field in model.model_fields.items():
        for inner in models(field.annotation):
            if name != "cost" or path == "serm":
                yield from cases(f"{path}.{name}", inner)


ALL = [case for group in SHOWN for case in cases(group, GROUPS[group])]


def nested(path: str, given: Any) -> tuple[str, Any]:
    """Return the group, and the settings with ``given`` at the end of the path."""
    group, *names = path.split(".")
    for name in reversed(names):
        given = {name: given}
    if path.startswith("serm.response."):
        given["response"]["kind"] = "population"  # the only one that holds settings of its own
    if path == "serm.score" and given["score"]["kind"] == "mlp":
        given["response"] = {"kind": "ascent"}
    return group, given


@pytest.mark.parametrize(("path", "name", "given", "wrong"), ALL, ids=str)
def test_a_value_beyond_a_limit_is_refused_in_one_sentence(path, name, given, wrong):
    group, settings = nested(path, given | {name: wrong})
    with pytest.raises(ParameterError) as refused:
        check_group(group, GROUPS[group], settings)
    said = str(refused.value)
    assert said.startswith((f"{path}.{name} should ", f"{path}.{name} is not "))
    assert said.endswith(f"got {wrong!r}")
    assert "\n" not in said
    assert "pydantic" not in said


@pytest.mark.parametrize("path", sorted({case[0] for case in ALL}))
def test_an_unknown_name_is_refused_everywhere(path):
    given = next(case[2] for case in ALL if case[0] == path)
    group, settings = nested(path, given | {"xyzzy": 1})
    with pytest.raises(ParameterError, match=f"^there is no setting {path}.xyzzy"):
        check_group(group, GROUPS[group], settings)


def test_there_are_limits_to_test():
    assert len(ALL) > 150
