"""Names of certificates: whoever holds one can tell which claim a person was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from countermove.data.storage import canonical_digest

DIGITS = 16
"""Hexadecimal digits of a name: 64 bits, enough to tell every certificate ever made apart."""


def certificate_id(certificate: Mapping[str, Any]) -> str:
    """Return the name of a certificate: the beginning of the SHA-256 of its canonical JSON.

    Parameters
    ----------
    certificate
        As `countermove.certificates.Certificate.to_json` writes it; the order of keys does
        not count.
    """
    return canonical_digest(certificate)[:DIGITS]


def leading_certificate(facts: Mapping[str, Any]) -> str | None:
    """Return the name of the promise of recourse that a version's threshold was chosen by.

    None if the version was calibrated without one, or if it does not apply.

    Parameters
    ----------
    facts
        Of a stored version: its ``certificate``, or else the first of ``certificates`` that
        applies.
    """
    led: Mapping[str, Any] | None = facts.get("certificate")
    claims: Sequence[Mapping[str, Any]] = facts.get("certificates", ()) if led is None else [led]
    return next((certificate_id(claim) for claim in claims if claim.get("applicable")), None)
