"""The roster: names and certificate fingerprints of all owners, agreed out of band, and signatures checked by it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from dsfr.disclosure.statements import Statement

LENGTH = 4
"""Bytes of the length of a certificate in a signature."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Fingerprints (SHA-256 of the certificate, in hexadecimal) by the name of the owner."""

    fingerprints: Mapping[str, str]

    @classmethod
    def read(cls, path: str | Path) -> Roster:
        """The roster in a TOML file with a line ``name = "fingerprint"`` for every owner.

        Raises
        ------
        ValueError
            If it is no such file.
        """
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"roster {path} is not TOML: {error}") from None
        if not found or not all(isinstance(value, str) and len(value) == 64 for value in found.values()):
            raise ValueError(f'roster {path} needs a line name = "64 hexadecimal digits" for every owner')
        return cls(found)


@dataclass(frozen=True, slots=True)
class SiteIdentity:
    """An owner that signs with the key of its kit, and expects the owners of its roster and nobody else."""

    name: str
    certificate: Path
    key: Path
    roster: Roster

    def sign(self, message: bytes) -> bytes:
        """The certificate and the signature of a message."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self.key.read_bytes(), None)
        data = certificate_bytes(self.certificate)
        signature: bytes = key.sign(message, _padding(), SHA256())  # type: ignore[union-attr, call-arg, arg-type]
        return len(data).to_bytes(LENGTH, "little") + data + signature

    def check(self, statements: Sequence[Statement]) -> None:
        """Refuse statements of strangers, missing owners, and signatures that do not fit.

        Raises
        ------
        ValueError
            Naming the owner.
        """
        names = sorted(statement.name for statement in statements)
        if names != sorted(self.roster.fingerprints):
            raise ValueError(f"the roster has {sorted(self.roster.fingerprints)}, and {names} take part")
        for statement in statements:
            _check_signature(statement, self.roster.fingerprints[statement.name])


def _check_signature(statement: Statement, fingerprint: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509 import load_der_x509_certificate

    length = int.from_bytes(statement.signature[:LENGTH], "little")
    data, signature = statement.signature[LENGTH : LENGTH + length], statement.signature[LENGTH + length :]
    if sha256(data).hexdigest() != fingerprint:
        raise ValueError(f"the certificate of {statement.name!r} is not that of the roster")
    certificate, now = load_der_x509_certificate(data), datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        until = certificate.not_valid_after_utc.date()
        raise ValueError(f"the certificate of {statement.name!r} has expired, or is not valid yet: it ends on {until}")
    try:
        public = certificate.public_key()
        public.verify(signature, statement.signed, _padding(), SHA256())  # type: ignore[union-attr, call-arg, arg-type]
    except InvalidSignature:
        raise ValueError(f"the statement of {statement.name!r} was not signed by its certificate") from None


def certificate_bytes(path: Path) -> bytes:
    """The first certificate of a PEM file in its binary form."""
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509 import load_pem_x509_certificate

    data: bytes = load_pem_x509_certificate(path.read_bytes()).public_bytes(Encoding.DER)
    return data


def fingerprint_of(path: Path) -> str:
    """Fingerprint of a certificate, as in a roster."""
    return sha256(certificate_bytes(path)).hexdigest()


def _padding() -> object:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    return PKCS1v15()
