"""People are written down once, load as a response, and are never used where they are stale."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from kedro.io import DatasetError

from countermove.data.schema import load_schema
from countermove.data.standardise import Standardiser
from countermove.errors import MissingPartError, ParameterError, ours
from countermove.params import SermParameters
from countermove.people import QuadraticCost
from countermove.pipelines.people import champion_people, make_people
from countermove.pipelines.people_dataset import PeopleDataset
from countermove.production.registry import StoredVersion

from ..production.tiny_champion import model

SCHEMAS = Path(__file__).parents[2] / "conf" / "base" / "schemas"
SCHEMA = load_schema("tiny", SCHEMAS)
D = len(SCHEMA.feature_names)
UNITS = Standardiser(np.zeros(D), np.full(D, 2.0), SCHEMA.feature_names)
SERM = {"cost": {"kind": "quadratic", "scale": 3.0}, "response": {"kind": "smooth"}}


@pytest.fixture
def people(tmp_path):
    units = tmp_path / "standardiser.json"
    units.write_text(json.dumps(UNITS.to_json()))
    place = str(tmp_path / "people.json")
    schema = {"path": str(SCHEMAS / "tiny.yml")}
    return PeopleDataset(place, schema, {"path": str(units)}, "training")


def settings(**changes):
    return SermParameters.model_validate(SERM | changes)


def refused(people):
    with pytest.raises(DatasetError) as caught:
        people.load()
    return ours(caught.value)


def test_people_load_as_the_response_their_settings_describe(people):
    people.save(make_people(SCHEMA, UNITS, settings()))
    people.present = SERM
    assert people.load().describe() == settings().build(SCHEMA, UNITS).describe()


def test_settings_that_do_not_make_people_leave_them_as_they_are(people):
    people.save(make_people(SCHEMA, UNITS, settings()))
    people.present = SERM | {"training": {"optimiser": "adam", "max_epochs": 3}}
    assert people.load().cost.scale == 3.0


def test_people_of_other_settings_are_refused_by_name(people):
    people.save(make_people(SCHEMA, UNITS, settings()))
    people.present = SERM | {"cost": {"kind": "quadratic", "scale": 4.0}}
    error = refused(people)
    assert isinstance(error, ParameterError)
    assert "serm.cost.scale was 3.0 and is 4.0" in str(error)
    assert "kedro run --pipeline=training" in str(error)


def test_people_of_other_units_are_refused(people, tmp_path):
    people.save(make_people(SCHEMA, UNITS, settings()))
    other = Standardiser(np.ones(D), np.full(D, 2.0), SCHEMA.feature_names)
    (tmp_path / "standardiser.json").write_text(json.dumps(other.to_json()))
    assert "the standardiser has changed" in str(refused(people))


def test_people_who_were_never_written_down_are_asked_for(people):
    assert isinstance(refused(people), MissingPartError)


def test_a_champion_brings_its_own_people(caplog):
    facts = {"people": make_people(SCHEMA, UNITS, settings())["settings"]}
    stored = StoredVersion("000001-x", model(), "sha", facts)
    now = settings(cost={"kind": "quadratic", "scale": 9.0})
    assert champion_people(stored, SCHEMA, now).cost.scale == 3.0
    assert not caplog.records
    old = StoredVersion("000001-x", model(), "sha", {})
    assert champion_people(old, SCHEMA, now).cost.scale == 9.0
    assert "stored without its people" in caplog.text


CALLED = []


def priced(scale: float = 2.0) -> QuadraticCost:
    CALLED.append(scale)
    return QuadraticCost(scale)


OWN = {"kind": "own", "function": "my_prices:priced", "arguments": {"scale": 4.0}}


@pytest.fixture
def my_prices(monkeypatch):
    monkeypatch.setitem(sys.modules, "my_prices", sys.modules[__name__])
    CALLED.clear()


@pytest.mark.parametrize(
    "stored",
    [
        {"cost": OWN},
        {"cost": OWN | {"function": "os:system", "arguments": {"command": "true"}}},
        {
            "response": {
                "kind": "population",
                "kinds": [{"kind": "best", "share": 1.0, "cost": OWN}],
            }
        },
    ],
)
@pytest.mark.parametrize("present", [{}, {"cost": OWN | {"arguments": {"scale": 5.0}}}])
def test_a_stored_function_that_the_settings_do_not_name_is_never_called(
    my_prices, stored, present
):
    champion = StoredVersion("000001-x", model(), "sha", {"people": stored})
    with pytest.raises(ParameterError, match="version 000001-x names the function"):
        champion_people(champion, SCHEMA, SermParameters.model_validate(present))
    assert not CALLED


def test_a_stored_function_that_the_settings_name_too_makes_the_cost(my_prices, people):
    facts = {"people": make_people(SCHEMA, UNITS, settings(cost=OWN))["settings"]}
    stored = StoredVersion("000001-x", model(), "sha", facts)
    assert champion_people(stored, SCHEMA, settings(cost=OWN)).cost.scale == 4.0
    people.save(make_people(SCHEMA, UNITS, settings(cost=OWN)))
    people.present = SERM | {"cost": OWN}
    assert people.load().cost.scale == 4.0


def test_people_altered_at_rest_call_no_function(my_prices, people):
    facts = make_people(SCHEMA, UNITS, settings())
    facts["settings"]["cost"] = OWN
    people.save(facts)
    for present in (None, SERM):
        people.present = present
        assert "names the function 'my_prices:priced'" in str(refused(people))
    assert not CALLED


CREDIT = load_schema("credit", SCHEMAS)


def credit_people(**settings):
    """Return people of credit's schema, in units of one."""
    d = len(CREDIT.feature_names)
    units = Standardiser(np.zeros(d), np.ones(d), CREDIT.feature_names)
    return SermParameters.model_validate(settings).build(CREDIT, units)


def test_relations_bind_responses_unless_they_cannot_or_settings_relax_them(caplog):
    assert credit_people().actions.possible.in_responses
    assert not credit_people(actions={"responses": "relax"}).actions.possible.in_responses
    assert not caplog.text
    mixture = {"kind": "mixture", "direction": [1.0] * len(CREDIT.feature_names), "gamma": 0.3}
    relaxed = credit_people(cost=mixture)
    assert not relaxed.actions.possible.in_responses
    assert "do not bind these responses" in caplog.text
    assert credit_people(cost=mixture, actions={"responses": "obey"}).actions.possible.in_responses


@pytest.mark.slow
def test_a_part_of_the_chain_refuses_people_of_other_settings(project):
    first = project.run(
        "--pipelines=ingest,training",
        "--env=test",
        "--params=serm.training.optimiser=adam,serm.training.max_epochs=1",
    )
    assert first.returncode == 0, first.stderr
    stale = project.run(
        "--pipeline=recourse",
        "--env=test",
        "--params=serm.training.optimiser=adam,serm.training.max_epochs=1,serm.cost.scale=2",
    )
    assert stale.returncode == 1
    assert "serm.cost.scale was 1.0 and is 2.0" in " ".join(stale.stderr.split())
