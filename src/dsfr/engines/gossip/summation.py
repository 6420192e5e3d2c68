"""What an agent brings to a sum by gossip, and how it reads the result.

Contributions are masked: the two ends of every link add and subtract the same random residues, which cancel in the sum
and which nobody else knows. An agent with several links shows its contribution to none of its neighbors.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from hashlib import shake_256

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError
from dsfr.engines.gossip.residues import BYTES, MODULI, PRIMES, Residues, decode, encode, from_message

KEY_BYTES = 16
"""Random bytes that each end of a link contributes to the key of its masks."""

Vector = npt.NDArray[np.float64]


def contribution(name: str, numbers: Vector, keys: Mapping[str, bytes], round_number: int, task: str) -> Residues:
    """An agent's numbers as residues, its check number behind them, masked by the keys it shares with neighbors."""
    own = np.hstack([encode(numbers, task), _check_number(name) % MODULI])
    for neighbor, key in keys.items():
        own += (1 if name < neighbor else -1) * _mask(key, round_number, own.shape[1])
    masked: Residues = own % MODULI
    return masked


def total(value: Residues, names: Iterable[str], task: str) -> Vector:
    """The numbers of a sum over these agents.

    Raises
    ------
    EngineError
        If the sum of the check numbers, which everybody knows, has not come out.
    """
    expected = sum(map(_check_number, names))
    if (value[:, -1] != expected % PRIMES).any():
        raise EngineError(
            f"the sum of task {task!r} has come out wrong: agents know another graph than the one their messages took, "
            "or a message was changed on its way. Check that all agents have the same topology"
        )
    return decode(value[:, :-1])


def message_bytes(n_numbers: int) -> int:
    """Bytes of one message in a sum of so many numbers; the check number goes along."""
    return BYTES * (n_numbers + 1)


def _check_number(name: str) -> int:
    return zlib.crc32(name.encode())


def _mask(key: bytes, round_number: int, n: int) -> Residues:
    """Random residues from a key that two agents share; never the same for two sums."""
    stream = shake_256(key + round_number.to_bytes(8, "little")).digest(BYTES * n)
    mask: Residues = from_message(np.frombuffer(stream, dtype=np.uint8)) % MODULI
    return mask
