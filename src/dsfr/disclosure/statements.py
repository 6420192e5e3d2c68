"""What owners state to each other before a fit: number of labels, public key, and who signs that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol

import numpy as np

from dsfr.engines.flattening import pack_bundles, unpack_bundles
from dsfr.storage.bundles import Bundle

MOST_OWNERS = 1024
LARGEST_STATEMENT = 4096
"""Bytes of one statement at most."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What one owner states; without an identity, name and signature are empty."""

    labels: int
    public_key: bytes
    name: str = ""
    signature: bytes = b""

    @property
    def signed(self) -> bytes:
        """The bytes that the signature is about."""
        return b"\0".join([b"dsfr statement", self.name.encode(), str(self.labels).encode(), self.public_key])

    def bundle(self) -> Bundle:
        """The statement as arrays."""
        texts = {"name": self.name.encode(), "public_key": self.public_key, "signature": self.signature}
        arrays: Bundle = {name: np.frombuffer(text, dtype=np.uint8) for name, text in texts.items()}
        return {"labels": np.asarray(self.labels, dtype=np.int64), **arrays}

    @classmethod
    def of(cls, bundle: Bundle) -> Statement:
        """The statement in arrays.

        Raises
        ------
        ValueError
            If these are no statement.
        """
        if set(bundle) != {"labels", "name", "public_key", "signature"} or bundle["labels"].shape != ():
            raise ValueError(f"a statement has labels, name, public_key and signature, and not {sorted(bundle)}")
        name, key, signature = (bundle[field].tobytes() for field in ("name", "public_key", "signature"))
        return cls(int(bundle["labels"]), key, name.decode(errors="replace"), signature)


class Identity(Protocol):
    """Who an owner is to others."""

    @property
    def name(self) -> str:
        """Name of the owner."""

    def sign(self, message: bytes) -> bytes:
        """Signature of a message by the owner's key."""

    def check(self, statements: Sequence[Statement]) -> None:
        """Raise a ValueError unless all statements are of partners that the owner expects, and signed by them."""


def pack_statements(statements: Sequence[Statement]) -> Bundle:
    """Statements as a broadcast."""
    return {"statements": np.frombuffer(pack_bundles([one.bundle() for one in statements]), dtype=np.uint8)}


def unpack_statements(broadcast: Bundle) -> list[Statement]:
    """Statements of a broadcast.

    Raises
    ------
    ValueError
        If it has none, too many or too long ones.
    """
    packed = broadcast.get("statements", np.empty(0, dtype=np.uint8))
    if packed.dtype != np.uint8 or packed.nbytes > MOST_OWNERS * LARGEST_STATEMENT:
        raise ValueError(f"statements of {packed.nbytes} bytes and type {packed.dtype} are no statements of owners")
    return [Statement.of(bundle) for bundle in unpack_bundles(packed.tobytes())]


def run_of(statements: Sequence[Statement]) -> bytes:
    """Identifies a run: its owners' keys are new, so no other run has it."""
    return sha256(b"".join(sorted(one.signed for one in statements))).digest()
