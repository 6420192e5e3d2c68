"""The same fit gives the same bits in threads, in forked workers and with any number of threads of BLAS."""

import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dsfr import AutoSFRRegressor, Ensemble, RuleRegressor, SFRRegressor
from dsfr.core import compiled
from tests.faults.cases import n_cases, record
from tests.tables import make_table

SOLVERS = ("sums", "conjugate")


def fitted(seed):
    """Predictions of a fit; seeds differ in data, solver and number of agents, and every fourth makes short rules."""
    X, _, y = make_table(seed, n_rows=300)
    alike = {"n_agents": 1 + seed % 3, "random_state": seed}
    estimator = SFRRegressor(n_rules=3, solver=SOLVERS[seed % 2], **alike)
    if seed % 4 == 3:
        estimator = RuleRegressor(teacher=AutoSFRRegressor(ensemble=Ensemble(n_models=2)), **alike)
    return estimator.fit(X, y).predict(X)


def test_fits_in_parallel_threads(record_property):
    seeds = range(n_cases(8))
    alone = [fitted(seed) for seed in seeds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, seeds))
    np.testing.assert_array_equal(together, alone)
    record(record_property, Counter({"same bits": len(seeds)}))


FORKED = """
import json, multiprocessing, sys, warnings
from hashlib import sha256
from tests.faults.test_same_bits import fitted

def digest(seed):
    return sha256(fitted(seed).tobytes()).hexdigest()

seeds = range(int(sys.argv[1]))
alone = [digest(seed) for seed in seeds]  # threads of libraries run before the process is forked
warnings.simplefilter("ignore", DeprecationWarning)  # of forking a process that has threads
with multiprocessing.get_context("fork").Pool(2) as pool:
    forked = pool.map_async(digest, seeds).get(timeout=300)
print(json.dumps([alone, forked]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked on Linux")
def test_fits_in_forked_workers(record_property):
    n_seeds = n_cases(4)
    command = [sys.executable, "-c", FORKED, str(n_seeds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    alone, forked = json.loads(done.stdout)
    assert forked == alone
    record(record_property, Counter({"same bits": n_seeds}))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_of_blas(record_property, n_threads):
    with threadpool_limits(limits=1, user_api="blas"):
        alone = [fitted(seed) for seed in range(n_cases(4))]
    with threadpool_limits(limits=n_threads, user_api="blas"):
        found = [fitted(seed) for seed in range(n_cases(4))]
    np.testing.assert_array_equal(found, alone)
    record(record_property, Counter({f"same bits, {n_threads} threads": n_cases(4)}))


@pytest.mark.slow  # it compiles
@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_compiled_kernels_give_the_same_predictions(record_property, monkeypatch):
    """To rounding, not to the bit: the kernels add in another order."""
    plain = [fitted(seed) for seed in range(n_cases(4))]
    monkeypatch.setattr(compiled, "WORTHWHILE_ROWS", 1)
    for seed, expected in enumerate(plain):
        np.testing.assert_allclose(fitted(seed), expected, rtol=1e-4, atol=1e-3)
    record(record_property, Counter({"same predictions to the tolerance of a fit": len(plain)}))
