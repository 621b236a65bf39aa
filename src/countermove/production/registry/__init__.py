"""Where versions of a rule are kept, and which one is the champion."""

from countermove.production.registry.records import Decision
from countermove.production.registry.recovery import recover
from countermove.production.registry.registry import Champion, Registry, StoredVersion
from countermove.production.registry.signing import Signer
from countermove.production.registry.store import Store

__all__ = [
    "Champion",
    "Decision",
    "Registry",
    "Signer",
    "Store",
    "StoredVersion",
    "recover",
]
