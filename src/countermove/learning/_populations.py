"""From what a user wrote to the people a model is trained or judged against.

A response may be named, given as an object, or written as the mapping a YAML
file holds; several of them make a robust population.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from countermove._types import Floats
from countermove.errors import ParameterError, UnknownNameError, nearest
from countermove.learning.objectives import check_weights
from countermove.people import ActionSet, Cost
from countermove.response.base import Response
from countermove.response.named import NAMES, named_response
from countermove.response.population import Population
from countermove.response.response_set import RobustResponse

if TYPE_CHECKING:
    import pandas as pd

OF_POPULATION = ("shares", "never", "log_sd", "log_price", "nodes")
"""What a mapping may say of a `Population` beside its kinds."""


@dataclass(frozen=True)
class JudgedMembers:
    """The responses a model is trained or judged against."""

    members: tuple[Response, ...]  # one, or several to be robust over
    weights: tuple[float, ...] | None = None  # of the members; None: the worst one counts
    softness: float = 0.0  # of the maximum over members during training

    @property
    def name(self) -> str:
        """Name of the response, or of the robust mixture."""
        if len(self.members) == 1:
            return self.members[0].name
        return f"robust({', '.join(member.name for member in self.members)})"

    @property
    def published(self) -> bool:
        """Whether this is the SERM paper's population, trained by the paper's protocol."""
        return {member.name for member in self.members} == {"published"}

    def of_rows(self, rows: Any) -> JudgedMembers:
        """Return the population of some rows only: per-person bounds follow them."""
        return replace(self, members=tuple(member.of_rows(rows) for member in self.members))

    def with_windows(self, X: Floats, windows: pd.DataFrame | None) -> JudgedMembers:
        """Return the population of people whose histories are known."""
        members = tuple(member.with_windows(X, windows) for member in self.members)
        return replace(self, members=members)

    def with_cost(self, cost: Cost) -> JudgedMembers:
        """Return the same behaviour at another cost."""
        return replace(self, members=tuple(member.with_cost(cost) for member in self.members))

    @property
    def only(self) -> Response:
        """The single response; robust populations have none."""
        if len(self.members) > 1:
            raise ParameterError(
                f"{self.name} is no single behaviour: name the response people should follow, "
                "for example response='best'"
            )
        return self.members[0]


def population(
    response: Any,
    cost: Cost | None = None,
    actions: ActionSet | None = None,
    temperature: float = 0.5,
) -> JudgedMembers:
    """Build a population from a name, a `Response`, a mapping or a list of these."""
    if isinstance(response, Mapping):
        return _from_mapping(dict(response), cost, actions, temperature)
    if isinstance(response, RobustResponse):
        weights = response.weights
        given = None if weights is None else tuple(float(value) for value in weights)
        return JudgedMembers(response.members, given)
    if isinstance(response, Response):
        return JudgedMembers((response,))
    if isinstance(response, str):
        if response not in NAMES:
            hint = nearest(response, (*NAMES, "robust"))
            raise UnknownNameError(f"no response is called {response!r}: {hint}")
        return JudgedMembers((named_response(response, cost, actions, temperature),))
    if isinstance(response, Sequence):
        return _robust(response, cost, actions, temperature)
    raise ParameterError(
        f"a response is a name ({', '.join(NAMES)}), a Response, a mapping or a list of these, "
        f"got {response!r}"
    )


def population_at(
    costs: Sequence[Cost | None],
    response: Any,
    actions: ActionSet | None = None,
    temperature: float = 0.5,
) -> JudgedMembers:
    """Build the population that responds at any of several costs: each member at every cost."""
    people = population(response, costs[0], actions, temperature)
    if len(costs) == 1:
        return people
    if people.weights is not None:
        raise ParameterError("weights of the members do not go with an unknown cost: drop them")
    members = [people.with_cost(cost).members for cost in costs if cost is not None]
    return replace(people, members=tuple(chain.from_iterable(members)))


def _from_mapping(
    arguments: dict[str, Any],
    cost: Cost | None,
    actions: ActionSet | None,
    temperature: float,
) -> JudgedMembers:
    kind = arguments.pop("kind", None)
    if kind == "population":
        listed = arguments.pop("kinds", ("best",))
        kinds = [population(one, cost, actions, temperature).only for one in listed]
        _refuse_unknown(
            {key: value for key, value in arguments.items() if key not in OF_POPULATION},
            "population",
            ("kinds", *OF_POPULATION),
        )
        return JudgedMembers((Population(kinds, **arguments),))
    if kind != "robust":
        own = float(arguments.pop("temperature", temperature))
        _refuse_unknown(arguments, f"response {kind!r}", ("temperature",))
        return population(kind, cost, actions, own)
    members = arguments.pop("members", ())
    weights = arguments.pop("weights", None)
    softness = float(arguments.pop("softness", 0.0))
    _refuse_unknown(arguments, "robust response", ("members", "weights", "softness"))
    return _robust(members, cost, actions, temperature, weights, softness)


def _robust(
    members: Sequence[Any],
    cost: Cost | None,
    actions: ActionSet | None,
    temperature: float,
    weights: Sequence[float] | None = None,
    softness: float = 0.0,
) -> JudgedMembers:
    if not members:
        raise ParameterError("a robust response needs members, for example ['best', 'smooth']")
    built = tuple(population(member, cost, actions, temperature).only for member in members)
    given = None if weights is None else tuple(float(value) for value in weights)
    if given is not None:
        check_weights(given, len(built))
    return JudgedMembers(built, given, softness)


def _refuse_unknown(rest: Mapping[str, Any], what: str, known: Sequence[str]) -> None:
    """Refuse unknown keys: a misspelt one must not pass silently."""
    for key in rest:
        raise ParameterError(f"{key!r} says nothing about a {what}: {nearest(str(key), known)}")
