"""Fixed-point numbers as residues modulo several primes (a residue number system): sums of them are exact.

A number is rounded to a multiple of ``2**-FRACTION_BITS`` and kept as its remainders modulo `PRIMES`. Adding,
subtracting and multiplying by constants are exact modulo each prime; the Chinese remainder theorem gives the result
back. Because nothing is rounded on the way, the result does not depend on the order of the operations.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError

Residues = npt.NDArray[np.int64]
"""Remainders by prime and number; shape (len(PRIMES), n)."""

PRIMES: npt.NDArray[np.int64] = np.array([2147483647, 2147483629, 2147483587, 2147483579])
"""The largest primes below ``2**31``: products of two remainders fit into 64 bits."""
MODULI = PRIMES[:, None]
"""For rows of residues."""
FRACTION_BITS = 64
"""Contributions are rounded to multiples of 5e-20: far below the rounding of sums that are about 1."""
LARGEST = 2.0**43
"""Contributions must be below this (9e12), so that those of sixty thousand agents add up within the range."""
BYTES = 4 * len(PRIMES)
"""Bytes of one number in a message."""

_MANTISSA_BITS = 53
_RANGE = prod(PRIMES.tolist())


def _powers_of_two(n: int) -> Residues:
    powers = np.ones((n, len(PRIMES)), dtype=np.int64)
    for k in range(1, n):
        powers[k] = 2 * powers[k - 1] % PRIMES
    return powers


_POWERS = _powers_of_two(FRACTION_BITS + 44)


def encode(numbers: npt.NDArray[np.float64], task: str) -> Residues:
    """Residues of a vector of finite numbers, rounded to multiples of ``2**-FRACTION_BITS``.

    Raises
    ------
    EngineError
        If a number is too large.
    """
    if len(numbers) and not float(np.abs(numbers).max()) < LARGEST:
        raise EngineError(
            f"task {task!r} contributes {float(np.abs(numbers).max()):.3g}, and numbers to add up by gossip must be "
            f"below {LARGEST:.3g}: scale columns and target, or train with a coordinator (solver='sums')"
        )
    fraction, exponent = np.frexp(numbers)
    shift = exponent.astype(np.int64) - _MANTISSA_BITS + FRACTION_BITS
    whole = np.ldexp(fraction, np.minimum(shift, 0) + _MANTISSA_BITS)
    mantissa = np.rint(whole).astype(np.int64)
    residues: Residues = (mantissa % MODULI) * _POWERS[np.maximum(shift, 0)].T % MODULI
    return residues


def decode(residues: Residues) -> npt.NDArray[np.float64]:
    """The numbers with these residues, each the nearest floating-point number."""
    whole: Any = (residues.astype(object) * _WEIGHTS[:, None]).sum(axis=0) % _RANGE
    scale = 1 << FRACTION_BITS
    return np.array([(w if 2 * w < _RANGE else w - _RANGE) / scale for w in whole], dtype=np.float64)


def to_message(residues: Residues) -> npt.NDArray[np.uint8]:
    """Residues as bytes."""
    return np.ascontiguousarray(residues, dtype="<u4").view(np.uint8).ravel()


def from_message(message: npt.NDArray[np.uint8]) -> Residues:
    """Residues of their bytes."""
    return message.view("<u4").reshape(len(PRIMES), -1).astype(np.int64)


def _crt_weights() -> Any:
    """For every prime the number that is 1 modulo it and 0 modulo the others."""
    cofactors = [_RANGE // prime for prime in PRIMES.tolist()]
    inverses = [pow(cofactor, -1, prime) for cofactor, prime in zip(cofactors, PRIMES.tolist(), strict=True)]
    return np.array([c * i for c, i in zip(cofactors, inverses, strict=True)], dtype=object)


_WEIGHTS = _crt_weights()
