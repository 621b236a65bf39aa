"""A default of the settings is the library's, or differs for a reason that stands here."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from countermove.params import GROUPS, RetrainParameters, SermParameters
from countermove.params.base import Parameters, library_object
from countermove.params.chain import ExecutionParameters
from countermove.params.production import DriftParameters

BASE = Path(__file__).parents[2] / "conf" / "base"
DIFFERENT: Mapping[str, tuple[Any, str]] = {
    "RecourseParameters.largest_loss": (
        0.02,
        "a run must not give up more than two points of accuracy for a promise unless asked to; "
        "in Python the promise asked for is kept whatever it costs",
    ),
    "MLPScoreParameters.hidden": (
        (16,),
        "people climb the network in every step of training, so a run starts from a small one; "
        "the library's is that of the recourse paper",
    ),
    "MLPScoreParameters.dropout": (
        0.0,
        "a small network needs none, and people would climb another score than the published one",
    ),
}
EXAMPLES = {
    "OwnCostParameters": {"function": "package.module:function"},
    "MixtureCostParameters": {"direction": [1.0], "gamma": 0.5},
    "PriceByParameters": {"column": "region"},
    "RobustParameters": {"members": [{"kind": "best"}, {"kind": "none"}]},
    "ConfidenceSetParameters": {"level": 0.95, "price": (1.0, 2.0)},
    "CustomGateParameters": {"function": "package.module:function"},
}
"""What a model needs beside its defaults."""


def groups_within(annotation: Any) -> Iterator[type[Parameters]]:
    """Yield the groups of settings inside an annotation, and all that they hold."""
    if isinstance(annotation, type) and issubclass(annotation, Parameters):
        yield annotation
        for field in annotation.model_fields.values():
            yield from groups_within(field.annotation)
    for inner in get_args(annotation):
        yield from groups_within(inner)


def library_defaults(model: type[Parameters]) -> dict[str, Any]:
    """Return the defaults of the object that a group describes, by name."""
    described = library_object(model.describes)
    if dataclasses.is_dataclass(described):
        fields = dataclasses.fields(described)
        missing = dataclasses.MISSING
        plain = {one.name: one.default for one in fields if one.default is not missing}
        made = {one.name: one.default_factory for one in fields}
        return plain | {name: make() for name, make in made.items() if make is not missing}
    parameters = inspect.signature(described).parameters
    return {name: one.default for name, one in parameters.items() if one.default is not one.empty}


EXPERIMENTS = {"sweep", "paper", "lookahead", "collective"}
SHOWN = sorted(set(GROUPS) - EXPERIMENTS)
MODELS = list(dict.fromkeys(each for name in SHOWN for each in groups_within(GROUPS[name])))
SHARED = [
    (model, name)
    for model in MODELS
    if model.describes
    for name in model.model_fields.keys() & library_defaults(model).keys()
]


def identity(case: Any) -> str:
    return case.__name__ if isinstance(case, type) else str(case)


def as_built(value: Any) -> Any:
    """Return a default as the library gets it."""
    if isinstance(value, Parameters):
        return value.build()
    if isinstance(value, Mapping):
        return {name: as_built(each) for name, each in value.items()}
    return tuple(map(as_built, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(("model", "name"), sorted(SHARED, key=str), ids=identity)
def test_the_default_is_the_librarys_or_differs_on_purpose(model, name):
    field = model.model_fields[name]
    if field.is_required():
        return
    listed = DIFFERENT.get(f"{model.__name__}.{name}")
    assert field.default == listed[0] if listed else True
    expected = field.default if listed else library_defaults(model)[name]
    assert as_built(field.default) == as_built(expected)


@pytest.mark.parametrize("model", MODELS, ids=identity)
def test_every_default_is_allowed(model):
    """Defaults are not validated by pydantic: one beyond its limit would show only here."""
    settings = dict(EXAMPLES.get(model.__name__, {}))
    if "kind" in model.model_fields:
        settings["kind"] = get_args(model.model_fields["kind"].annotation)[0]
    for name, field in model.model_fields.items():
        if name in settings or field.is_required():
            continue
        built = TypeAdapter(model).validate_python(settings | {name: field.default})
        assert getattr(built, name) == field.default


@pytest.mark.parametrize("key", sorted(DIFFERENT))
def test_every_difference_is_real(key):
    """An entry whose value is the library's again, or whose setting is gone, must go."""
    model = next(each for each in MODELS if each.__name__ == key.partition(".")[0])
    assert library_defaults(model)[key.partition(".")[2]] != DIFFERENT[key][0]


@pytest.mark.parametrize(
    "built",
    [
        lambda: GROUPS["recourse"](largest_loss=None, digits=None, confidence=None).build(),
        lambda: GROUPS["evaluation"]().build(),
        lambda: DriftParameters().build(),
        lambda: ExecutionParameters().build(),
        *[lambda gate=gate: gate for gate in RetrainParameters().gates.build()],
    ],
)
def test_terms_of_default_settings_are_those_of_the_library(built):
    made = built()
    assert made == type(made)()


def test_the_classifier_has_every_setting_of_training():
    from countermove import StrategicClassifier

    StrategicClassifier(**SermParameters().training.model_dump())


def test_importing_and_checking_the_settings_imports_no_torch():
    """Start-up would take three times as long."""
    code = (
        "import sys, yaml\nfrom pathlib import Path\n"
        "from countermove.params import GROUPS\n"
        "from countermove.params.checking import check_group\n"
        "for path in Path(sys.argv[1]).glob('parameters*.yml'):\n"
        "    for group, settings in yaml.safe_load(path.read_text()).items():\n"
        "        if group in GROUPS:\n"
        "            check_group(group, GROUPS[group], settings)\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(BASE)], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("group", SHOWN)
def test_settings_survive_writing_and_reading(group):
    settings = GROUPS[group]()
    assert GROUPS[group].model_validate(settings.model_dump(mode="json")) == settings


def test_a_setting_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        SermParameters().training.patience = 3
