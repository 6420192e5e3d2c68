"""Journal: a file to which records of arrays are appended; an incomplete last record is ignored."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import Bundle, BundleError, from_bytes, read_metadata, to_bytes

_FRAME = 12
"""Bytes before each record: length and checksum."""


@dataclass(frozen=True, slots=True)
class Record:
    """Arrays and string metadata."""

    arrays: Bundle
    metadata: Mapping[str, str] = field(default_factory=dict)


class Journal:
    """Records in a file.

    A record is a length, a checksum and the bytes of a bundle (safetensors), which hold no code. Reading stops at the
    first incomplete record.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[Record]:
        """All complete records, in order."""
        if not self.path.is_file():
            return []
        return list(_records(self.path.read_bytes()))

    def replace(self, records: Sequence[Record]) -> None:
        """Replace the file by these records."""
        with replacing(self.path) as file:
            for record in records:
                file.write(_framed(record))

    def append(self, record: Record) -> None:
        """Append a record."""
        with self.path.open("ab") as file:
            file.write(_framed(record))


def _records(data: bytes) -> Iterator[Record]:
    start = 0
    while start + _FRAME <= len(data):
        length = int.from_bytes(data[start : start + 8], "little")
        body = data[start + _FRAME : start + _FRAME + length]
        if len(body) < length or zlib.crc32(body) != int.from_bytes(data[start + 8 : start + _FRAME], "little"):
            return
        try:
            yield Record(from_bytes(body), read_metadata(body))
        except BundleError:
            return
        start += _FRAME + length


def _framed(record: Record) -> bytes:
    data = to_bytes(record.arrays, record.metadata)
    return len(data).to_bytes(8, "little") + zlib.crc32(data).to_bytes(4, "little") + data
