"""People at rest: the settings that make them, with the digests of the units and of the schema.

Apart from `countermove.pipelines.people` because the catalog is slow to import.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from countermove.catalog import AtomicJSONDataset
from countermove.data.schema import load_schema
from countermove.data.standardise import Standardiser
from countermove.data.storage import canonical_digest
from countermove.errors import MissingPartError, ParameterError
from countermove.params import SermParameters
from countermove.pipelines.people import (
    SCHEMA_DIGEST,
    SETTINGS,
    SETTINGS_DIGEST,
    UNITS_DIGEST,
    people_settings,
    trusted_settings,
)

if TYPE_CHECKING:
    from countermove.response import Response


class PeopleDataset(AtomicJSONDataset):  # type: ignore[misc]
    """People at rest: saved as the facts of `make_people`, loaded as a `Response`.

    Parameters
    ----------
    filepath
        The JSON file.
    schema, standardiser
        ``{"path": …}`` of the present ones: people made for others are refused.
    remade_by
        The pipeline that makes these people, for messages.
    metadata
        Layer and other hints for kedro-viz.
    """

    def __init__(
        self,
        filepath: str,
        schema: dict[str, str],
        standardiser: dict[str, str],
        remade_by: str,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(filepath=filepath, metadata=metadata)
        self._schema, self._standardiser = Path(schema["path"]), Path(standardiser["path"])
        self._remade_by = remade_by
        self.present: Mapping[str, Any] | None = None
        """Settings of the present run, set by `PeopleHook`; None compares no settings."""

    def load(self) -> Response:
        """Build the people from their settings; refuse people that are not the present run's."""
        if not self._there():
            raise MissingPartError(
                f"{self._filepath} is not there: who responds to the rule was not written down "
                f"yet; run: kedro run --pipeline={self._remade_by}"
            )
        facts = super().load()
        unit = Standardiser.from_json(json.loads(self._standardiser.read_text("utf-8")))
        schema = load_schema(self._schema.stem, self._schema.parent)
        changed = [*self._changed_settings(facts)]
        if facts[UNITS_DIGEST] != canonical_digest(unit.to_json()):
            changed.append("the standardiser has changed")
        if facts[SCHEMA_DIGEST] != schema.digest():
            changed.append("the schema has changed")
        if changed:
            raise ParameterError(
                f"the people in {self._filepath} were made for another run: {'; '.join(changed)}. "
                f"Run kedro run --pipeline={self._remade_by} again (rules trained for other people "
                "are not this run's either), or restore what changed"
            )
        present = None if self.present is None else SermParameters.model_validate(self.present)
        trusted = trusted_settings(facts[SETTINGS], present, str(self._filepath))
        return trusted.build(schema, unit)

    def _changed_settings(self, facts: Mapping[str, Any]) -> Iterator[str]:
        if self.present is None:
            return
        now = people_settings(SermParameters.model_validate(self.present))
        if canonical_digest(now) == facts[SETTINGS_DIGEST]:
            return
        before, present = dict(_leaves(facts[SETTINGS])), dict(_leaves(now))
        for name in sorted({*before, *present}):
            if before.get(name) != present.get(name):
                yield f"serm.{name} was {before.get(name)!r} and is {present.get(name)!r}"


def _leaves(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every setting by its dotted name."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
