"""The tests of faults with many more cases than in CI: what was tried, what came of it.

    python -m benchmarks.torture [--factor 10] [--seed 0] [--processes 2] [--anew]

The factor multiplies the number of cases of ``tests/faults``; the seed changes them. Every file of tests runs in a
process of its own, and its results and output are in ``build/torture`` as soon as it has ended: a run that is stopped
goes on with the files that are left, as long as code, seed and factor are the same. Kills of MPI and dask jobs are
counted by ``python -m benchmarks.kills``.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from pathlib import Path

from benchmarks import MISSED
from dsfr.paper.experiments.provenance import describe_source

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "build" / "torture"
LONGEST = 7200.0
"""Seconds after which a file of tests is ended: a test that hangs is a failure."""


@dataclass
class Promise:
    """What one file of tests checks, and what came of it."""

    text: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    outcomes: Counter = field(default_factory=Counter)

    def lines(self) -> list[str]:
        """The promise, the number of tests, and the counts of outcomes."""
        return [self.text, f"  {self.tests()}", *(f"  {count:>7,}  {name}" for name, count in self.outcomes.items())]

    def tests(self) -> str:
        """How many tests there were."""
        return f"{self.passed} tests passed, {self.failed} failed, {self.skipped} skipped"


def main() -> None:
    """Run the tests, and print counts by promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1), help="files at the same time")
    parser.add_argument("--anew", action="store_true", help="run files again that have results for this code")
    told = parser.parse_args()
    source = describe_source()
    print(f"dsfr {source['version']}, commit {source['git']}, seed {told.seed}, factor {told.factor:g} on cases of CI")
    folder = KEPT / f"seed-{told.seed}-factor-{told.factor:g}"
    if told.anew:
        shutil.rmtree(folder, ignore_errors=True)
    promises = run_all(sorted((ROOT / "tests" / "faults").glob("test_*.py")), folder, told)
    for promise in promises:
        print("", *promise.lines(), sep="\n")
    failed = not promises or any(promise.failed for promise in promises)
    print(f"\nevery promise was kept: {'NO' if failed else 'yes'}")
    raise SystemExit(MISSED if failed else 0)


def digest_of(path: Path) -> str:
    """Changes with every change of the package, of a file of tests, or of what tests share, committed or not."""
    digest = blake2b(digest_size=6)
    shared = (found for found in (ROOT / "tests").rglob("*.py") if not found.name.startswith("test_"))
    for found in sorted([path, *shared, *(ROOT / "src").rglob("*.py")]):
        digest.update(found.read_bytes())
    return digest.hexdigest()


def run_all(files: Iterable[Path], folder: Path, told: argparse.Namespace) -> list[Promise]:
    """Promises of all files of tests, in their order."""
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(told.processes) as pool:
        return list(pool.map(partial(run_file, folder=folder, factor=told.factor, seed=told.seed), files))


def run_file(path: Path, folder: Path, factor: float, seed: int) -> Promise:
    """The promise of one file of tests, from its kept report or by running it."""
    kept, report = folder / f"{path.stem}-{digest_of(path)}.xml", folder / f"{path.stem}.partial.xml"
    start = time.perf_counter()
    if not kept.exists():
        # One thread of BLAS: more of them wait for each other where files share cores. Tests of threads set their own.
        environment = os.environ | {"DSFR_TORTURE": str(factor), "DSFR_TEST_SEED": str(seed), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "--durations=10", "-o", "junit_family=xunit1"]
        with (folder / f"{path.stem}.log").open("w") as log:
            ended = _run([*command, f"--junitxml={report}", str(path)], environment, log)
        if (
            ended not in (0, 1) or not report.exists()
        ):  # pytest itself has failed, or was stopped: run it again next time
            return Promise(f"{path.stem} did not run to its end ({ended}), see {log.name}", failed=1)
        report.replace(kept)
    promise = read_report(kept, first_line(path))
    seconds = time.perf_counter() - start
    print(f"{path.stem}: {promise.tests()}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return promise


def _run(command: list[str], environment: dict[str, str], log: object) -> int | str:
    """The exit code of a command."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT, check=False, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"still running after {LONGEST:.0f} s"
    return done.returncode


def read_report(report: Path, text: str) -> Promise:
    """Outcomes of all tests in a report of pytest; a test's properties are its counts."""
    promise = Promise(text)
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            promise.failed += 1
        elif case.find("skipped") is not None:
            promise.skipped += 1
        else:
            promise.passed += 1
        for found in case.iter("property"):
            promise.outcomes[found.get("name", "")] += int(found.get("value", "0"))
    return promise


def first_line(path: Path) -> str:
    """The first line of a module's docstring: the promise that its tests check."""
    return (ast.get_docstring(ast.parse(path.read_text())) or path.stem).partition("\n")[0]


if __name__ == "__main__":
    main()
