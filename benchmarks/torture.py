"""The tests of faults with many more cases than in CI: what was tried, what came of it.

    python -m benchmarks.torture [--factor 10] [--seed 0]

The factor multiplies the number of cases of ``tests/faults``; the seed changes them. Kills of MPI and dask jobs are
counted by ``python -m benchmarks.kills``.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from benchmarks import MISSED
from dsfr.paper.experiments.provenance import describe_source

ROOT = Path(__file__).parent.parent


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
        tests = f"{self.passed} tests passed, {self.failed} failed, {self.skipped} skipped"
        return [self.text, f"  {tests}", *(f"  {count:>7,}  {name}" for name, count in self.outcomes.items())]


def main() -> None:
    """Run the tests, and print counts by promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    source = describe_source()
    print(f"dsfr {source['version']}, commit {source['git']}, seed {told.seed}, factor {told.factor:g} on cases of CI")
    promises = run_tests(told.factor, told.seed)
    for promise in promises.values():
        print("", *promise.lines(), sep="\n")
    failed = sum(promise.failed for promise in promises.values())
    print(f"\nevery promise was kept: {'NO' if failed or not promises else 'yes'}")
    raise SystemExit(MISSED if failed or not promises else 0)


def run_tests(factor: float, seed: int) -> dict[str, Promise]:
    """Promises by the module of their tests."""
    environment = os.environ | {"DSFR_TORTURE": str(factor), "DSFR_TEST_SEED": str(seed)}
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-o", "junit_family=xunit1", f"--junitxml={report}"]
        subprocess.run([*command, "tests/faults"], cwd=ROOT, env=environment, stdout=sys.stderr, check=False)
        return read_report(report)


def read_report(report: Path) -> dict[str, Promise]:
    """Outcomes of all tests in a report of pytest; a test's properties are its counts."""
    promises: dict[str, Promise] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        module = case.get("classname", "")
        promise = promises.setdefault(module, Promise(first_line(module)))
        if case.find("failure") is not None or case.find("error") is not None:
            promise.failed += 1
        elif case.find("skipped") is not None:
            promise.skipped += 1
        else:
            promise.passed += 1
        for found in case.iter("property"):
            promise.outcomes[found.get("name", "")] += int(found.get("value", "0"))
    return promises


def first_line(module: str) -> str:
    """The first line of a module's docstring: the promise that its tests check."""
    return (import_module(module).__doc__ or module).partition("\n")[0]


if __name__ == "__main__":
    main()
