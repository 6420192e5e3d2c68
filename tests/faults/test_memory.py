"""A command that runs out of memory leaves files whole; many fits do not make a process grow."""

import resource
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dsfr
from dsfr import SFRRegressor, Sums
from tests.faults.cases import n_cases, random_of, record, write_rows
from tests.faults.forked import Case, run_cases

MOST_GROWTH = 8 << 20
"""Bytes, over all fits; the rows of one fit take 4 MB."""


@pytest.mark.slow
def test_too_little_memory_leaves_files_whole(tmp_path, record_property):
    write_rows(tmp_path / "rows.csv", n_rows=20_000)
    fit = ["fit", "rows.csv", "--target", "y", "--solver", "sums", "-o", "model.dsfr"]
    spare = (2.0 ** random_of("memory").uniform(18.0, 27.0, n_cases(12))).astype(int).tolist()
    outcomes = Counter()
    cases = [Case(fit, str(tmp_path), spare_bytes=size, longest=120.0) for size in (1 << 32, *spare)]
    for ended in run_cases(cases):
        outcomes[how_it_ended(ended)] += 1
    assert outcomes["trained"] >= 1  # the largest is enough
    assert outcomes.total() > outcomes["trained"]  # the smallest is not
    assert np.isfinite(dsfr.load(tmp_path / "model.dsfr").predict(np.zeros((1, 3)))).all()
    record(record_property, outcomes)


def how_it_ended(case):
    """The kind of an ending. OpenBLAS and Arrow are written in C and C++ and end the process themselves, or wait."""
    if case.code == 0:
        return "trained"
    if case.output.startswith("Timeout"):
        assert "_decomp_cholesky.py" in case.output.splitlines()[2], case
        return "OpenBLAS waited for a buffer for 30 s, then ended"
    assert "Traceback" not in case.output, case
    if case.code == 2:
        assert "Error: " in case.output, case
        return "one message of dsfr"
    assert "OpenBLAS error: Memory allocation" in case.output or "terminate called" in case.output, case
    return "ended by OpenBLAS or Arrow, with their message"


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_many_fits_in_one_process_do_not_grow(record_property):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (50_000, 10))
    y = np.where(np.arange(len(X)) < 200, X[:, 0] * X[:, 1], np.nan)

    def fit(times):
        for seed in range(times):
            SFRRegressor(n_rules=2, solver=Sums(tol=0.1), random_state=seed).fit(X, y).predict(X)

    fit(4)
    before = resident_bytes()
    fit(n_cases(10))
    assert resident_bytes() - before < MOST_GROWTH
    record(record_property, Counter({"fits without growth": n_cases(10)}))
