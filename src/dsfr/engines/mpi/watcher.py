"""Watcher of a rank: prints which rank has died, where the launcher names only a process.

Hydra, the launcher of MPICH, kills the other ranks within milliseconds of the first death, before they can print
anything. It kills their process groups, but not that of a child that has ended already. So a shell in the group of each
rank waits until its pipe to the rank closes, and prints a message if the rank did not end in order. It also holds the
rank's connection to Hydra open: Hydra kills all groups, the watcher's too, when that connection closes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess

UNDER_HYDRA = "HYDI_CONTROL_FD"
"""Environment variable that Hydra sets. Other launchers name the rank themselves."""
_CONNECTION = "PMI_FD"
"""Environment variable with the file descriptor of a rank's connection to Hydra."""
_SCRIPT = 'read -r line || printf "%s\\n" "$1" >&2'
_watchers: list[subprocess.Popen[bytes]] = []


def start_watcher(rank: int) -> None:
    """Start the watcher of this process, once, if the launcher is Hydra."""
    shell, connection = shutil.which("sh"), os.environ.get(_CONNECTION, "")
    if _watchers or shell is None or UNDER_HYDRA not in os.environ:
        return
    message = (
        f"Error: rank {rank} (process {os.getpid()} on {socket.gethostname()}) was killed or has crashed, and the job "
        "ends. Exit code 9 is a kill, often because the machine has run out of memory."
    )
    command, held = [shell, "-c", _SCRIPT, "watcher", message], [int(connection)] if connection.isdigit() else []
    _watchers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=held))


@atexit.register
def stop_watcher() -> None:
    """Stop the watcher without a message: this process ends in order."""
    while _watchers:
        _watchers.pop().communicate(b"done\n")
