"""Measure fuzzy c-means of other packages in their own environment; started by ``benchmarks.speed``.

Reads one line of JSON per request, ``{"peer", "n", "d", "k", "fuzzifier", "steps"}``; replies with seconds and centers.
"""

import json
import sys
import time
import warnings
from functools import lru_cache

import numpy as np


@lru_cache(maxsize=1)
def rows(n: int, d: int) -> np.ndarray:
    """The same rows in every process."""
    return np.random.default_rng(0).uniform(-1.0, 1.0, (n, d))


def start_centers(k: int, d: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-0.5, 0.5, (k, d))


def start_memberships(X: np.ndarray, k: int, fuzzifier: float) -> np.ndarray:
    """Memberships of the start centers, with which peers start, so that their first step is the same."""
    square = np.stack([((X - center) ** 2).sum(axis=1) for center in start_centers(k, X.shape[1])], axis=1)
    ratio = (square.min(axis=1, keepdims=True) / square) ** (1.0 / (fuzzifier - 1.0))
    return ratio / ratio.sum(axis=1, keepdims=True)


def scikit_fuzzy(X: np.ndarray, k: int, fuzzifier: float, steps: int) -> tuple[float, np.ndarray]:
    from skfuzzy import cmeans

    data, init = np.ascontiguousarray(X.T), np.ascontiguousarray(start_memberships(X, k, fuzzifier).T)
    start = time.perf_counter()
    centers = cmeans(data, k, fuzzifier, error=0.0, maxiter=steps, init=init)[0]
    return time.perf_counter() - start, centers


def fuzzy_c_means(X: np.ndarray, k: int, fuzzifier: float, steps: int) -> tuple[float, np.ndarray]:
    from fcmeans import FCM

    u = start_memberships(X, k, fuzzifier)

    class Started(FCM):
        def _init_u(self, X: np.ndarray) -> None:
            self.u = u

    model = Started(n_clusters=k, m=fuzzifier, max_iter=steps, error=1e-9)
    start = time.perf_counter()
    model.fit(X)
    return time.perf_counter() - start, model.centers


PEERS = {"scikit-fuzzy": scikit_fuzzy, "fuzzy-c-means": fuzzy_c_means}


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        asked = json.loads(line)
        X = rows(asked["n"], asked["d"])
        seconds, centers = PEERS[asked["peer"]](X, asked["k"], asked["fuzzifier"], asked["steps"])
        print(json.dumps({"seconds": seconds, "centers": np.asarray(centers).tolist()}), flush=True)


if __name__ == "__main__":
    main()
