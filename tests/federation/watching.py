"""What processes listen on and write to, as Linux tells."""

from __future__ import annotations

import ipaddress
import os
import struct
from contextlib import suppress
from pathlib import Path

from dsfr.federation.processes import descendants

LISTENING = "0A"
"""State of a socket in the tables of the system."""


def family(pid):
    return [pid, *descendants(pid)]


def opened(pid):
    """What the file descriptors of a process are, and the flags they were opened with."""
    for path in Path(f"/proc/{pid}/fd").glob("*"):
        with suppress(OSError, StopIteration):
            flags = next(
                line for line in Path(f"/proc/{pid}/fdinfo/{path.name}").read_text().splitlines() if "flags" in line
            )
            yield os.readlink(path), int(flags.split()[1], 8)


def listening(pids):
    """Addresses and ports that processes wait for connections at."""
    found = set()
    for pid in pids:
        inodes = {target for target, _ in opened(pid) if target.startswith("socket:")}
        for table in ("tcp", "tcp6"):
            with suppress(OSError):
                for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == LISTENING and f"socket:[{fields[9]}]" in inodes:
                        found.add(_place(fields[1]))
    return found


def written(pids):
    """Files that processes have open for writing."""
    return {
        Path(target)
        for pid in pids
        for target, flags in opened(pid)
        if target.startswith("/") and not target.startswith("/dev/") and flags & (os.O_WRONLY | os.O_RDWR)
    }


def _place(text):
    """An address and a port; the system writes addresses in words of its own byte order."""
    address, _, port = text.partition(":")
    data = bytes.fromhex(address)
    words = struct.unpack(f">{len(data) // 4}I", data)
    found = ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))
    return getattr(found, "ipv4_mapped", None) or found, int(port, 16)
