"""Messages between coordinator and owners: a bundle of arrays with the names of run, round and task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dsfr.storage.bundles import MAX_BYTES, MAX_HEADER_BYTES, Bundle, from_bytes, read_metadata, to_bytes

SAVE, LOAD = "save_memory", "load_memory"
"""Requests about an owner's own memory, for a fit that can be resumed."""
CHECK = "check_table"
"""The request for yes and no about an owner's table, before any fit."""
MOST_ROUNDS = 10**9


DIGEST_BYTES = 32


def sealed(data: bytes) -> bytes:
    """Bytes with their digest before them. Nobody is kept from making one: it is there to notice damage."""
    return sha256(data).digest() + data


def unsealed(data: bytes) -> bytes:
    """The bytes that were sealed.

    Raises
    ------
    ValueError
        If they are damaged or too long.
    """
    if not isinstance(data, bytes):
        raise ValueError(f"a message is bytes, and not {type(data).__name__}")
    if len(data) > MAX_BYTES + MAX_HEADER_BYTES:
        raise ValueError(f"a message of {len(data)} bytes is too long")
    digest, rest = data[:DIGEST_BYTES], data[DIGEST_BYTES:]
    if sha256(rest).digest() != digest:
        raise ValueError("a message is damaged: its digest does not fit")
    return rest


@dataclass(frozen=True, slots=True)
class Message:
    """A question to an owner."""

    run: str
    """Name of the fit's attempt; new for every job."""
    number: int
    """Number of the question in its run, from 1."""
    task: str
    broadcast: Bundle
    about: Mapping[str, Any] = field(default_factory=dict)
    """What the first question says of the fit."""

    def to_bytes(self) -> bytes:
        """The message as bytes."""
        texts = {"run": self.run, "number": str(self.number), "task": self.task}
        return sealed(to_bytes(self.broadcast, texts | {"about": json.dumps(dict(self.about), sort_keys=True)}))

    @classmethod
    def of(cls, data: bytes) -> Message:
        """The message in bytes, checked.

        Raises
        ------
        ValueError
            If they are no message.
        """
        body = unsealed(data)
        broadcast, texts = from_bytes(body), read_metadata(body)
        if set(texts) != {"run", "number", "task", "about"} or not texts["number"].isdigit():
            raise ValueError(f"a message has run, number, task and about, and not {sorted(texts)}")
        about = json.loads(texts["about"])
        if not isinstance(about, dict) or not 1 <= int(texts["number"]) <= MOST_ROUNDS:
            raise ValueError("a message about something else than a fit")
        return cls(texts["run"], int(texts["number"]), texts["task"], broadcast, about)
