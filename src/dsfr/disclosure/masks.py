"""Pairwise masks: two owners share a key, one adds and the other subtracts the same random numbers.

Keys are agreed by X25519 and derived by HKDF, random numbers are the key stream of AES-256 in counter mode. The key of
a mask depends on run, round, task, broadcast and participants, so no mask is used for two different questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.disclosure.ring import Word, add, negate
from dsfr.storage.bundles import Bundle

KEY_BYTES = 32
NUMBER_BYTES = 16
Bytes = npt.NDArray[np.uint8]


def new_key() -> bytes:
    """A private key."""
    key: bytes = _x25519().X25519PrivateKey.generate().private_bytes_raw()
    return key


def public_key(private: bytes) -> bytes:
    """The public key of a private one."""
    key: bytes = _x25519().X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    return key


def pair_secrets(private: bytes, public_keys: Sequence[bytes]) -> list[bytes]:
    """The secret shared with every participant; of the own entry, zeros."""
    x25519, own = _x25519(), public_key(private)
    key = x25519.X25519PrivateKey.from_private_bytes(private)
    secrets = []
    for other in public_keys:
        if other == own:
            secrets.append(bytes(KEY_BYTES))
            continue
        shared = key.exchange(x25519.X25519PublicKey.from_public_bytes(other))
        secrets.append(_derive(shared, b"dsfr pair" + min(own, other) + max(own, other)))
    return secrets


def question(run: bytes, number: int, task: str, broadcast: Bundle, participants: Sequence[bytes]) -> bytes:
    """Digest of everything that a mask belongs to."""
    digest = sha256(b"dsfr mask\0" + run + number.to_bytes(8, "little") + task.encode() + b"\0")
    hash_arrays(digest, broadcast)
    for key in sorted(participants):
        digest.update(key)
    return digest.digest()


def hash_arrays(digest: Any, bundle: Bundle) -> None:
    """Add names, types, shapes and numbers of arrays to a digest."""
    for name in sorted(bundle):
        array = bundle[name]
        digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
        digest.update(array.tobytes())


def mask(secrets: Sequence[bytes], own: int, about: bytes, size: int) -> tuple[Word, Word]:
    """Sum of the masks of one owner with all others: those after it are added, those before it subtracted."""
    total = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
    for other, secret in enumerate(secrets):
        if other != own:
            stream = _stream(_derive(secret, about), size)
            total = add(total, stream if other > own else negate(*stream))
    return total


def _stream(key: bytes, size: int) -> tuple[Word, Word]:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    # The key is used once, so the counter may start at 0.
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(NUMBER_BYTES))).encryptor()
    words = np.frombuffer(encryptor.update(bytes(NUMBER_BYTES * size)), dtype="<u8").astype(np.uint64)
    return words[0::2], words[1::2]


def _derive(secret: bytes, info: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def _x25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError as error:
        raise ImportError("secure sums need cryptography: pip install 'dsfr[federation]'") from error
    return x25519
