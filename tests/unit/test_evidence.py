"""The evidence is a Gaussian log-density, needs sums alone, and is at its highest where it is said to be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from dsfr.core.features.gram import FeatureSums
from dsfr.core.solve.evidence import LOG_RIDGE, LOG_WEIGHT, Evidence, maximize_evidence
from dsfr.core.solve.statistics import Statistics, solve_weights

seeds = st.integers(0, 10_000)
powers = st.floats(-4.0, 2.0)


class Plain:
    """Features that are the columns themselves."""

    def __init__(self, n_outputs):
        self.n_outputs = n_outputs

    def features(self, X):
        return X

    def sums(self, X, y, ranges, weights=None, *, fast):
        return FeatureSums.of(X, y, self, ranges, weights)


def problem(seed, n=25, p=6, noise=0.3, penalty=True):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((n, p))
    B = rng.standard_normal((p + 3, p)) * rng.uniform(0.1, 3.0, p)
    y = H @ rng.standard_normal(p) + noise * rng.standard_normal(n)
    return H, y, B.T @ B if penalty else None


def statistics(H, y, G):
    return Statistics.of(H, y, Plain(H.shape[1]), G)


@given(seeds, powers, powers, st.booleans(), st.sampled_from([(25, 6), (4, 12)]))
def test_it_is_the_log_density_of_the_labels(seed, log_weight, log_ridge, penalty, shape):
    n, p = shape  # fewer labels than weights are solved for in another way
    H, y, G = problem(seed, n, p, penalty=penalty)
    weight, ridge = 10.0**log_weight, 10.0**log_ridge
    evidence = Evidence(statistics(H, y, G))
    prior = ridge * np.eye(p) + (weight * G if penalty else 0.0)
    spread = np.eye(len(y)) + H @ np.linalg.solve(prior, H.T)
    noise = float(y @ np.linalg.solve(spread, y)) / len(y)
    assert evidence.noise(weight, ridge) == pytest.approx(np.sqrt(noise), rel=1e-6)
    density = multivariate_normal(np.zeros(len(y)), noise * spread).logpdf(y)
    assert evidence.value(weight, ridge) == pytest.approx(density, rel=1e-6, abs=1e-6)


@given(seeds, powers, powers, st.sampled_from([(25, 6), (4, 12)]))
def test_its_gradient_is_that_of_its_values(seed, log_weight, log_ridge, shape):
    evidence = Evidence(statistics(*problem(seed, *shape)))
    weight, ridge = 10.0**log_weight, 10.0**log_ridge
    step = np.exp(1e-5)
    by_weight = evidence.value(weight * step, ridge) - evidence.value(weight / step, ridge)
    by_ridge = evidence.value(weight, ridge * step) - evidence.value(weight, ridge / step)
    np.testing.assert_allclose(
        evidence.value_and_gradient(weight, ridge)[1], np.array([by_weight, by_ridge]) / 2e-5, rtol=1e-3, atol=1e-4
    )


@settings(max_examples=25)
@given(seeds, st.floats(1e-3, 3.0), st.booleans())
def test_nowhere_on_a_fine_grid_is_it_higher_than_where_it_was_maximised(seed, noise, penalty):
    given_statistics = statistics(*problem(seed, noise=noise, penalty=penalty))
    tuned, evidence = maximize_evidence(given_statistics), Evidence(given_statistics)
    assert tuned.log_evidence == evidence.value(tuned.unlabeled_weight, tuned.ridge)
    weights = 10.0 ** np.linspace(*LOG_WEIGHT, 25) if penalty else [0.0]
    highest = max(evidence.value(w, r) for w in weights for r in 10.0 ** np.linspace(*LOG_RIDGE, 21))
    assert tuned.log_evidence >= highest - 0.05


@given(seeds, st.integers(1, 24))
def test_it_depends_on_sums_alone(seed, cut):
    H, y, G = problem(seed)
    parts = statistics(H[:cut], y[:cut], 0.3 * G) + statistics(H[cut:], y[cut:], 0.7 * G)
    whole, split = maximize_evidence(statistics(H, y, G)), maximize_evidence(parts)
    assert split.log_evidence == pytest.approx(whole.log_evidence, abs=1e-6)


def test_it_finds_the_noise():
    tuned = maximize_evidence(statistics(*problem(0, n=4000, noise=0.3)))
    assert tuned.noise == pytest.approx(0.3, rel=0.05)


@pytest.mark.parametrize("y", [np.zeros(25), np.ones(1)])
def test_labels_that_do_not_vary_speak_for_nothing(y):
    H, _, G = problem(0, n=len(y))
    assert maximize_evidence(statistics(H, 0.0 * y, G)) is None


def test_an_exact_fit_keeps_the_noise_above_zero():
    H, _, G = problem(0)
    tuned = maximize_evidence(statistics(H, H @ np.ones(6), G))
    assert tuned.noise > 0.0
    assert np.isfinite(tuned.log_evidence)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_chosen_can_be_solved_where_labels_have_no_noise_and_the_penalty_is_large(seed):
    H, _, _ = problem(seed, n=8, p=40)
    B = 1e3 * np.random.default_rng(seed + 100).standard_normal((20, 40))
    free = np.linalg.svd(B)[2][20:].sum(axis=0)  # weights that the penalty leaves alone
    total = statistics(H, H @ free, B.T @ B)
    tuned = maximize_evidence(total)
    weights = solve_weights(total.quadratic(tuned.unlabeled_weight), tuned.ridge)
    assert np.linalg.norm(H @ (weights - free)) < 0.1 * np.linalg.norm(H @ free)
