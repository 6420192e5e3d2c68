"""Twenty random kills per engine: ``dsfr fit`` with a checkpoint, one process of which is killed at a random round.

Kills alternate between the coordinator (rank 0; dask's client) and an agent (another rank; a dask worker), when the
journal has reached a random length. Then either the job continues by itself (dask, a worker), or it ends with an error
and is resumed (MPI: on three ranks instead of four). The model must equal that of an undisturbed run (predictions
within 1e-8), no job may hang, and no process may remain.

    python -m benchmarks.kills [--kills 20] [--engine mpi] [--seed 0]
"""

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import dsfr
from benchmarks import MISSED

N_SITES, N_ROWS, N_FEATURES = 4, 2000, 4
TOL = "1e-6"
LONGEST = 120.0
"""Seconds that a job may take before it counts as hanging."""
GONE_AFTER = 15.0
"""Seconds after which a job's processes must be gone."""
MARK = "DSFR_KILLS"
"""Name of the variable in the environment by which a job's processes are found."""


@dataclass
class Job:
    """One ``dsfr fit``, with all processes it has started."""

    command: list[str]
    folder: Path

    def __post_init__(self) -> None:
        self.mark = secrets.token_hex(8)
        environment = os.environ | {MARK: self.mark, "OMP_NUM_THREADS": "1"}
        self.log = (self.folder / "log").open("w+")
        self.process = subprocess.Popen(
            self.command, env=environment, stdout=self.log, stderr=self.log, start_new_session=True
        )

    def pids(self) -> list[int]:
        """Processes of this job that are alive."""
        return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if self._is_mine(path)]

    def _is_mine(self, path: Path) -> bool:
        try:
            return f"{MARK}={self.mark}".encode() in path.read_bytes() and _state(path.parent) not in "ZX"
        except OSError:
            return False

    def wait(self) -> int | None:
        """Exit code, or None if the job hangs and had to be killed."""
        try:
            return self.process.wait(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return None

    def leftovers(self) -> int:
        """Processes that are still there after the job has ended and some time has passed; they are ended."""
        deadline = time.perf_counter() + GONE_AFTER
        while self.pids() and time.perf_counter() < deadline:
            time.sleep(0.1)
        left = self.pids()
        for pid in left:
            _kill(pid)
        self.log.close()
        return len(left)

    def said(self) -> str:
        """Output of the job."""
        return (self.folder / "log").read_text(errors="replace")


def _state(process: Path) -> str:
    return (process / "stat").read_text().rpartition(")")[2].split()[0]


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _environ(pid: int) -> dict[str, str]:
    data = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    return dict(item.split("=", 1) for item in data.split("\0") if "=" in item)


def mpi_victims(job: Job) -> dict[str, list[int]]:
    """Rank 0 and the other ranks."""
    ranks = {pid: _environ(pid).get("PMI_RANK") for pid in job.pids()}
    ranks = {pid: rank for pid, rank in ranks.items() if rank is not None and "python" in _command(pid)}
    return {
        "coordinator": [pid for pid, rank in ranks.items() if rank == "0"],
        "agent": [pid for pid, rank in ranks.items() if rank != "0"],
    }


def dask_victims(job: Job) -> dict[str, list[int]]:
    """The client, and the workers."""
    workers = [pid for pid in job.pids() if "spawn_main" in _command(pid)]
    return {"coordinator": [job.process.pid], "agent": workers}


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def mpi_command(data: Path, n_ranks: int) -> list[str]:
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    return [str(launcher), "-n", str(n_ranks), *_fit("mpi", data)]


def dask_command(data: Path, n_ranks: int) -> list[str]:
    return _fit("dask", data)


def _fit(engine: str, data: Path) -> list[str]:
    return [sys.executable, "-m", "dsfr", "fit", "--engine", engine, str(data), "--target", "y", "--tol", TOL]


ENGINES: dict[str, tuple[Callable, Callable]] = {
    "mpi": (mpi_command, mpi_victims),
    "dask": (dask_command, dask_victims),
}


def write_sites(folder: Path, rng: np.random.Generator) -> np.ndarray:
    """Files of all sites; rows to predict on."""
    for number in range(N_SITES):
        X = rng.uniform(-1.0, 1.0, (N_ROWS, N_FEATURES))
        y = np.where(np.arange(N_ROWS) < 20, np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2], np.nan)
        table = {f"x{j}": X[:, j] for j in range(N_FEATURES)} | {"y": pa.array(y, from_pandas=True)}
        pa.parquet.write_table(pa.table(table), folder / f"site-{number}.parquet")
    return rng.uniform(-1.0, 1.0, (200, N_FEATURES))


def journal_bytes(checkpoint: Path) -> int:
    sizes = [path.stat().st_size for path in checkpoint.glob("*/journal") if path.exists()]
    return max(sizes, default=0)


@dataclass
class Trial:
    """All that one kill needs."""

    engine: str
    data: Path
    scratch: Path
    rows: np.ndarray
    expected: np.ndarray
    full: int
    """Bytes of the journal of an undisturbed run."""

    def run(self, victim: str, share: float, rng: np.random.Generator) -> str:
        """Kill once, resume if need be; what came of it."""
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        job = self._start(folder, resume=False)
        killed = self._kill(job, folder, victim, share * self.full, rng)
        code = job.wait()
        hung, left = code is None, job.leftovers()
        if hung or left:
            return "HUNG" if hung else "LEFT PROCESSES"
        if not killed:
            return "too late to kill"
        if code == 0:
            return "went on, same model" if self._same(folder) else "OTHER MODEL"
        resumed = self._start(folder, resume=True)
        code = resumed.wait()
        if resumed.leftovers() or code is None:
            return "LEFT PROCESSES"
        if code:
            return "clear error" if "Error: " in resumed.said() and "Traceback" not in resumed.said() else "CRASH"
        return "resumed, same model" if self._same(folder) else "OTHER MODEL"

    def _start(self, folder: Path, *, resume: bool) -> Job:
        make, _ = ENGINES[self.engine]
        kept = ["--checkpoint", str(folder / "kept"), "-o", str(folder / "model.dsfr"), *(["--resume"] * resume)]
        return Job([*make(self.data, 3 if resume else N_SITES), *kept], folder)

    def _kill(self, job: Job, folder: Path, victim: str, n_bytes: float, rng: np.random.Generator) -> bool:
        """Wait until the journal is long enough, and kill; whether there was anybody to kill."""
        deadline = time.perf_counter() + LONGEST
        while journal_bytes(folder / "kept") < max(n_bytes, 1) and job.process.poll() is None:
            if time.perf_counter() > deadline:
                return False
            time.sleep(0.002)
        if job.process.poll() is not None:
            return False
        pids = ENGINES[self.engine][1](job)[victim]
        return bool(pids) and _kill(int(rng.choice(pids)))

    def _same(self, folder: Path) -> bool:
        found = dsfr.load(folder / "model.dsfr").predict(self.rows)
        return bool(np.abs(found - self.expected).max() < 1e-8)


def undisturbed(engine: str, data: Path, scratch: Path, rows: np.ndarray) -> Trial:
    folder = Path(tempfile.mkdtemp(dir=scratch))
    trial = Trial(engine, data, scratch, rows, np.empty(0), 0)
    job = trial._start(folder, resume=False)
    if job.wait() != 0 or job.leftovers():
        sys.exit(f"{engine}: an undisturbed run failed: {job.said()}")
    expected = dsfr.load(folder / "model.dsfr").predict(rows)
    return Trial(engine, data, scratch, rows, expected, journal_bytes(folder / "kept"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--engine", choices=sorted(ENGINES), action="append")
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    print(
        f"dsfr {dsfr.__version__}, {told.kills} kills per engine, {N_SITES} agents, admm to {TOL}, seed {told.seed}\n"
    )
    print(f"{'engine':<8}{'killed':<14}{'kills':>6}  what came of it")
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        rng = np.random.default_rng(told.seed)
        data = Path(scratch) / "data"
        data.mkdir()
        rows = write_sites(data, rng)
        for engine in told.engine or sorted(ENGINES, reverse=True):
            start = time.perf_counter()
            good &= show(engine, kill_often(undisturbed(engine, data, Path(scratch), rows), told.kills, rng))
            print(f"{engine}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"\nno hang, no process left, and the same model every time: {'yes' if good else 'NO'}")
    raise SystemExit(0 if good else MISSED)


def kill_often(trial: Trial, n_kills: int, rng: np.random.Generator) -> dict[str, Counter]:
    """Outcomes by who was killed; jobs that were done before they could be killed are tried again, so often."""
    found: dict[str, Counter] = {"coordinator": Counter(), "agent": Counter()}
    n_done = n_late = 0
    while n_done < n_kills and n_late < n_kills:
        victim = ("coordinator", "agent")[n_done % 2]
        outcome = trial.run(victim, float(rng.uniform(0.0, 0.95)), rng)
        if outcome == "too late to kill":
            n_late += 1
            continue
        n_done += 1
        found[victim][outcome] += 1
        print(f"{trial.engine} {n_done}: {victim}: {outcome}", file=sys.stderr, flush=True)
    return found


def show(engine: str, found: dict[str, Counter]) -> bool:
    for victim, outcomes in found.items():
        told = ", ".join(f"{outcome}: {count}" for outcome, count in sorted(outcomes.items()))
        print(f"{engine:<8}{victim:<14}{outcomes.total():>6}  {told}", flush=True)
    outcomes = [outcome for counter in found.values() for outcome in counter]
    return bool(outcomes) and all(not outcome.split()[0].isupper() for outcome in outcomes)


if __name__ == "__main__":
    main()
