"""Signed records: who may write to the registry's folder but lacks the key cannot rewrite it.

A seal (SHA-256) shows damage; anybody can make a new one. The signature is an HMAC-SHA-256 of
the record and of its place, under a key from the environment that is never written anywhere.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from countermove.data.storage import canonical_json
from countermove.errors import ModelFileError, ParameterError

KEY_VARIABLE = "COUNTERMOVE_REGISTRY_KEY"
"""Names the key; several, separated by blanks: the first signs, all are accepted."""
SHORTEST = 32
"""Characters of a key: nobody finds it by trying."""
SIGNATURE = "signature"
Unsigned = Literal["refuse", "accept"]


def checked_key(key: str, where: str) -> bytes:
    """Return a key as bytes; refuse one that is too short."""
    key = key.strip()
    if len(key) < SHORTEST:
        raise ParameterError(
            f"the key in {where} has {len(key)} characters; at least {SHORTEST} random ones are "
            'needed, as `python -c "import secrets; print(secrets.token_hex(32))"` prints them'
        )
    return key.encode()


@dataclass(frozen=True)
class Signer:
    """Signs what a registry writes and checks what it reads; without keys it does neither.

    Parameters
    ----------
    keys
        The first signs; each is accepted.
    unsigned
        What to do with a record that bears no signature, where there are keys.
    """

    keys: tuple[bytes, ...] = ()
    unsigned: Unsigned = "refuse"

    @classmethod
    def from_environment(cls, unsigned: Unsigned = "refuse") -> Signer:
        """Return a signer with the keys that the environment names, if it names any."""
        given = os.environ.get(KEY_VARIABLE, "").split()
        where = f"the environment variable {KEY_VARIABLE}"
        return cls(tuple(checked_key(key, where) for key in given), unsigned)

    def signed(self, place: str, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record with its signature."""
        bare = {name: value for name, value in record.items() if name != SIGNATURE}
        if not self.keys:
            return bare
        key = self.keys[0]
        return bare | {SIGNATURE: {"key": key_name(key), "hmac": _digest(key, place, bare)}}

    def verified(self, place: str, record: Mapping[str, Any], where: str) -> dict[str, Any]:
        """Return a record without its signature; refuse one that nobody with a key has signed."""
        bare = {name: value for name, value in record.items() if name != SIGNATURE}
        said = record.get(SIGNATURE)
        if said is None:
            if self.keys and self.unsigned == "refuse":
                raise ModelFileError(
                    f"{where} bears no signature, and {KEY_VARIABLE} is set: restore it from a "
                    "backup, or, if it was written before records were signed, look at it and sign "
                    "it with: kedro countermove sign --unsigned"
                )
            return bare
        if not self.keys:
            raise ModelFileError(f"{where} is signed: set {KEY_VARIABLE} to check its signature")
        given = said.get("hmac") if isinstance(said, dict) else None
        digests = [_digest(key, place, bare) for key in self.keys]
        if not any(hmac.compare_digest(str(given).encode(), each.encode()) for each in digests):
            raise ModelFileError(
                f"{where} was not signed with a key of {KEY_VARIABLE}: somebody rewrote it, or the "
                "key it was signed with is no longer listed; restore the file, or list that key "
                "after the present one"
            )
        return bare


def _digest(key: bytes, place: str, record: Mapping[str, Any]) -> str:
    return hmac.digest(key, f"{place}\n{canonical_json(record)}".encode(), "sha256").hex()


def key_name(key: bytes) -> str:
    """Return what tells keys apart and gives nothing of them away."""
    return sha256(b"countermove key name\n" + key).hexdigest()[:8]
