"""The people a rule is made for: one catalog entry, made once from the settings.

`countermove.pipelines.people_dataset.PeopleDataset` stores them as those settings and loads them
as the `Response` they describe.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from countermove.data.schema import Schema
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest
from countermove.errors import ParameterError
from countermove.params import SermParameters

if TYPE_CHECKING:
    from countermove.production.registry import StoredVersion
    from countermove.response import Response
else:  # Kedro resolves annotations at start-up, and torch is slow to import.
    Response = StoredVersion = Any

logger = logging.getLogger(__name__)
SETTINGS, SETTINGS_DIGEST = "settings", "settings_sha256"
UNITS_DIGEST, SCHEMA_DIGEST = "standardiser_sha256", "schema_sha256"


def make_people(schema: Schema, standardiser: Standardiser, serm: SermParameters) -> dict[str, Any]:
    """Write down who is assumed to respond: the settings that make these people."""
    settings = people_settings(serm)
    return {
        SETTINGS: settings,
        SETTINGS_DIGEST: canonical_digest(settings),
        UNITS_DIGEST: canonical_digest(standardiser.to_json()),
        SCHEMA_DIGEST: schema.digest(),
    }


def people_settings(serm: SermParameters) -> dict[str, Any]:
    """Return what makes the people: cost, actions, response, confidence set; JSON-ready."""
    included = {"cost", "actions", "response", "confidence_set"}
    return serm.model_dump(mode="json", include=included)


def trusted_settings(
    settings: Mapping[str, Any], present: SermParameters | None, where: str
) -> SermParameters:
    """Return stored settings; refuse a function that the present settings do not name too."""
    # Stored files may be altered: what they name is imported only if the user names it as well.
    named = [] if present is None else [*_functions(people_settings(present))]
    for function in _functions(settings):
        if function not in named:
            raise ParameterError(
                f"{where} names the function {function.get('function')!r} with the arguments "
                f"{function.get('arguments')!r}, which the present settings do not: stored files "
                "call no function by themselves; name it under serm.cost, as when the rule was "
                "trained, if it is yours"
            )
    return SermParameters.model_validate(settings)


def _functions(settings: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every part of some settings that names a function."""
    if isinstance(settings, list):
        for part in settings:
            yield from _functions(part)
    elif isinstance(settings, Mapping):
        if settings.get("kind") == "own" or "function" in settings:
            yield settings
        for part in settings.values():
            yield from _functions(part)


def champion_people(stored: StoredVersion, schema: Schema, serm: SermParameters) -> Response:
    """Return the people a stored version was made for.

    A version that was stored without them has those of the present settings.
    """
    from countermove.production.retraining.nightly import as_estimated

    settings = stored.facts.get("people")
    if settings is None:
        logger.warning(
            "version %s was stored without its people; those of the present settings are used",
            stored.version,
        )
    made_by = serm
    if settings is not None:
        made_by = trusted_settings(settings, serm, f"version {stored.version}")
    assumed = made_by.build(schema, stored.model.standardiser)
    # Retraining may have found that people move farther, or less far, than the settings say.
    return as_estimated(assumed, stored.facts.get("reach"))
