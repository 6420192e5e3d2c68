"""MPI jobs of tests."""

import os
import subprocess
import sys
import time
from pathlib import Path

MPIEXEC = Path(sys.executable).parent / "mpiexec"
ROOT = Path(__file__).parent.parent
SECONDS = 400
TWO_MACHINES = ("-launcher", "fork", "-hosts", "one,other", "-ppn", "2")
"""Two machines for MPI; both are this one."""


def mpiexec(n_ranks, *command, launcher=(), n_cores=None):
    """Run a command on so many ranks; exit code, standard output and error, and how long it took."""

    def share():
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:n_cores])

    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    done = subprocess.run(
        [MPIEXEC, *launcher, "-n", str(n_ranks), *map(str, command)],
        preexec_fn=share,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, time.perf_counter() - start


def program(n_ranks, *arguments, **options):
    """Run a function of `tests.mpi_program` on so many ranks."""
    return mpiexec(n_ranks, sys.executable, "-m", "tests.mpi_program", *arguments, **options)
