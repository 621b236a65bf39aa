"""`help()` on every public name opens with an example, and the example is true."""

from __future__ import annotations

import doctest
import importlib

import pytest

import countermove

NAMES = [f"countermove:{name}" for name in countermove.__all__ if name != "__version__"]
NAMES += [
    f"countermove.people:{name}"
    for name in (
        *("QuadraticCost", "WeightedQuadraticCost", "MahalanobisCost", "LinearCost"),
        *("MixtureCost", "ConicCost"),
    )
]
NAMES += [
    *(f"countermove.response:{kind}Response" for kind in ("Scalar", "Best", "Conic")),
    "countermove.recourse:smallest_calibration_size",
    "countermove.transfer:induce",
    *("countermove.dynamics:retrain_until_stable", "countermove.dynamics:LevelKPopulation"),
    *("countermove.dynamics:Collective", "countermove.dynamics:collective_recourse"),
]


@pytest.mark.parametrize("name", NAMES)
def test_help_opens_with_an_example_that_is_true(name):
    module, _, attribute = name.partition(":")
    text = getattr(importlib.import_module(module), attribute).__doc__
    summary, _, rest = text.partition("\n\n")
    assert rest.lstrip().startswith(">>>"), f"{name}: {summary!r} is not followed by an example"
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    said: list[str] = []
    failed = doctest.DocTestRunner(verbose=False).run(example, out=said.append).failed
    assert not failed, "".join(said)
