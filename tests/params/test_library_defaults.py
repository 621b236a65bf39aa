"""A default exists once: in the library, or in the list of defaults that differ on purpose."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from countermove.params import GROUPS, RetrainParameters, SermParameters
from countermove.params._shape import item, models
from countermove.params.base import Parameters, library_object
from countermove.params.chain import ExecutionParameters
from countermove.params.defaults import DIFFERENT
from countermove.params.production import DriftParameters
from countermove.params.shown import FILES

SHOWN = [group for groups in FILES.values() for group in groups]


def within(model: type[Parameters]) -> Iterator[type[Parameters]]:
    """Yield a group of settings and all that it holds, every kind of them."""
    yield model
    for field in model.model_fields.values():
        inside = item(field.annotation)
        for each in (*models(field.annotation), *(() if inside is None else models(inside))):
            yield from within(each)


def from_library(model: type[Parameters]) -> dict[str, Callable[[], Any]]:
    """Return what reads each default that the library has."""
    factories = {name: field.default_factory for name, field in model.model_fields.items()}
    return {name: made.read for name, made in factories.items() if hasattr(made, "read")}


MODELS = list(dict.fromkeys(each for group in SHOWN for each in within(GROUPS[group])))
LIBRARY = [(model, name) for model in MODELS for name in from_library(model)]


def identity(case: Any) -> str:
    return case.__name__ if isinstance(case, type) else str(case)


@pytest.mark.parametrize(("model", "name"), LIBRARY, ids=identity)
def test_the_default_is_the_librarys_or_differs_on_purpose(model, name):
    there = from_library(model)[name]()
    here = model.model_fields[name].get_default(call_default_factory=True, validated_data={})
    listed = DIFFERENT.get(f"{model.__name__}.{name}")
    assert here == (there if listed is None else listed.value)


@pytest.mark.parametrize(("model", "name"), LIBRARY, ids=identity)
def test_the_librarys_default_is_allowed(model, name):
    """Defaults are not validated by pydantic: one beyond its limit would show only here."""
    field = model.model_fields[name]
    default = field.get_default(call_default_factory=True, validated_data={})
    adapter = TypeAdapter(model)
    given = dict(EXAMPLES.get(model.__name__, {}))
    if "kind" in model.model_fields:
        given["kind"] = model.model_fields["kind"].annotation.__args__[0]
    assert getattr(adapter.validate_python(given | {name: default}), name) == default


EXAMPLES = {
    "MixtureCostParameters": {"direction": [1.0], "gamma": 0.5},
    "PriceByParameters": {"column": "region"},
    "RobustParameters": {"members": [{"kind": "best"}, {"kind": "none"}]},
    "ConfidenceSetParameters": {"level": 0.95, "price": (1.0, 2.0)},
    "CustomGateParameters": {"function": "package.module:function"},
}
"""What a model needs beside its defaults."""


@pytest.mark.parametrize("key", sorted(DIFFERENT))
def test_every_difference_is_real_and_has_a_reason(key):
    """An entry whose value is the library's again, or whose setting is gone, must go."""
    model = next(each for each in MODELS if each.__name__ == key.partition(".")[0])
    there = from_library(model)[key.partition(".")[2]]()
    assert there != DIFFERENT[key].value
    assert len(DIFFERENT[key].reason) > 20


@pytest.mark.parametrize("model", [each for each in MODELS if each.describes], ids=identity)
def test_what_is_described_takes_the_settings(model):
    described = inspect.signature(library_object(model.describes)).parameters
    own = set(from_library(model)) - {
        name for name, read in from_library(model).items() if read.__self__.where
    }
    assert own <= set(described)


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
    """Start-up would take three times as long: conf/base gives a value to every setting."""
    code = (
        "import sys, yaml\nfrom pathlib import Path\n"
        "from countermove.params import GROUPS\n"
        "from countermove.params.checking import check_group\n"
        "from countermove.params.shown import FILES\n"
        "for name, groups in FILES.items():\n"
        "    given = yaml.safe_load(Path(sys.argv[1], name).read_text())\n"
        "    for group in groups:\n        check_group(group, GROUPS[group], given[group])\n"
        "print('torch' in sys.modules)"
    )
    base = Path(__file__).parents[2] / "conf" / "base"
    done = subprocess.run([sys.executable, "-c", code, str(base)], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("group", SHOWN)
def test_settings_survive_writing_and_reading(group):
    settings = GROUPS[group]()
    assert GROUPS[group].model_validate(settings.model_dump(mode="json")) == settings


def test_a_setting_does_not_change():
    with pytest.raises(ValueError, match="frozen"):
        SermParameters().training.patience = 3
