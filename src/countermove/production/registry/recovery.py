"""What an interrupted run left, finished or cleared away, and said in plain words."""

from __future__ import annotations

from countermove.errors import ModelFileError
from countermove.production.registry.records import Decision
from countermove.production.registry.registry import (
    DECISIONS,
    FACTS,
    OPEN_ADVICE,
    VERSIONS,
    Registry,
)


def recover(registry: Registry) -> list[str]:
    """Bring a registry into order before anything else is done with it.

    Half-written files and versions go; a version that was never decided about is
    recorded as interrupted; a decision that was recorded but not carried out is carried
    out, unless its version no longer loads. The champion is never lost on the way.

    Returns
    -------
    list
        What was found and done, one sentence each; empty if all was in order.
    """
    found = [*_stray_files(registry), *_half_versions(registry)]
    return [*found, *_undecided(registry), *_not_carried_out(registry)]


def _stray_files(registry: Registry) -> list[str]:
    store = registry.store
    folders = [
        "",
        DECISIONS,
        OPEN_ADVICE,
        *(f"{VERSIONS}/{name}" for name in store.names(VERSIONS)),
    ]
    stray = [
        f"{folder}/{name}".lstrip("/")
        for folder in folders
        for name in store.names(folder)
        if name.startswith(".") and (".json." in name or ".safetensors." in name)
    ]
    for name in stray:
        store.remove(name)
    return [f"removed {name}, which an interrupted run had begun to write" for name in stray]


def _half_versions(registry: Registry) -> list[str]:
    store = registry.store
    names = store.names(VERSIONS)
    half = [name for name in names if not store.exists(f"{VERSIONS}/{name}/{FACTS}")]
    for name in half:
        store.remove(f"{VERSIONS}/{name}")
    return [f"removed version {name}, which an interrupted run had half written" for name in half]


def _undecided(registry: Registry) -> list[str]:
    decided = {decision.version for decision in registry.decisions()}
    pointer = registry.pointer()
    champion = None if pointer is None else pointer.version
    said = []
    for version in registry.versions():
        if version in decided:
            continue
        reason = f"the run that made version {version} was interrupted before it decided"
        registry.record(
            Decision(
                version, "recovery", "interrupted", registry.time(), champion, champion, [reason]
            )
        )
        said.append(f"{reason}; it is kept, and not promoted")
    return said


def _not_carried_out(registry: Registry) -> list[str]:
    changes = [decision for decision in registry.decisions() if decision.changes_champion]
    pointer = registry.pointer()
    if not changes or (pointer is not None and pointer.decided_by == changes[-1].version):
        return []
    last = changes[-1]
    try:
        registry.carry_out(last)
    except ModelFileError as error:
        return [
            f"decision {last.version} made {last.champion_after} the champion but was interrupted, "
            f"and cannot be carried out now: {error}"
        ]
    return [
        f"decision {last.version} was recorded but not carried out; "
        f"{last.champion_after} is the champion now"
    ]
