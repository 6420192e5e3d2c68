"""Somebody who tells which rank has died, where the launcher names only a process.

Hydra, the launcher of MPICH, ends the other ranks within milliseconds of the first death, before they could say
anything. It kills their process groups, and spares that of a child that it has seen end: so a shell in the group of
each rank, which waits for the other end of a pipe to close, speaks for the one that has died and for no other. It also
holds the rank's connection to Hydra, which would kill all groups, this one too, when it sees that closed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess

UNDER_HYDRA = "HYDI_CONTROL_FD"
"""Variable of the environment that Hydra gives to what it starts. Other launchers name the rank themselves."""
_CONNECTION = "PMI_FD"
"""Variable with the number of the file by which a rank talks to Hydra."""
_SCRIPT = 'read -r farewell || printf "%s\\n" "$1" >&2'
_called: list[subprocess.Popen[bytes]] = []


def call_witness(rank: int) -> None:
    """Let somebody say so if this process dies without a farewell; only where it is needed, and once."""
    shell, connection = shutil.which("sh"), os.environ.get(_CONNECTION, "")
    if _called or shell is None or UNDER_HYDRA not in os.environ:
        return
    message = (
        f"Error: rank {rank} (process {os.getpid()} on {socket.gethostname()}) was killed or has crashed, and the job "
        "ends. Exit code 9 is a kill, often for want of memory."
    )
    command, held = [shell, "-c", _SCRIPT, "witness", message], [int(connection)] if connection.isdigit() else []
    _called.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=held))


@atexit.register
def dismiss_witness() -> None:
    """Say farewell: this process ends in order."""
    while _called:
        _called.pop().communicate(b"farewell\n")
