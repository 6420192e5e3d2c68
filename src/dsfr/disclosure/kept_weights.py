"""Weights of rows that were computed before: every question of a fit is compared with all before it, on the same rows.

A key is a digest of the rows and of the question, so what is found can be of no other rows. Results are the same with
and without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from hashlib import blake2b

import numpy as np

from dsfr.core.arrays import Array

MOST_BYTES = 64 * 2**20
"""Of one process; with more, all are forgotten."""


class KeptWeights:
    """Arrays by block of rows and question, of a limited size together."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._n_bytes = most_bytes, 0
        self._kept: dict[tuple[bytes, bytes], Array] = {}
        self._last: tuple[Array, bytes] = (np.empty(0), b"")
        self._lock = threading.Lock()  # workers of dask run several agents at once

    def get(self, question: bytes, X: Array, make: Callable[[], Array]) -> Array:
        """Weights of a block of rows in a question with this digest; made if they are not kept."""
        key = (question, self._digest(X))
        found = self._kept.get(key)
        if found is None:
            found = make()
            self._keep(key, found)
        return found

    def _keep(self, key: tuple[bytes, bytes], made: Array) -> None:
        made.flags.writeable = False
        with self._lock:
            if self._n_bytes + made.nbytes > self._most_bytes:
                self._kept, self._n_bytes = {}, 0
            self._kept[key] = made
            self._n_bytes += made.nbytes

    def _digest(self, X: Array) -> bytes:
        """Digest of a block; the last one is known, because a block is compared for many questions."""
        last = self._last
        if last[0] is not X:
            shape = str(X.shape).encode()
            self._last = last = (X, blake2b(np.ascontiguousarray(X).tobytes() + shape, digest_size=32).digest())
        return last[1]
