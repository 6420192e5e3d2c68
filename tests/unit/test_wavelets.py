import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.features.wavelets import Wavelets, wavelet_features


@given(st.integers(0, 10_000), st.integers(1, 5))
def test_features_equal_the_product_of_wavelets(seed, d):
    rng = np.random.default_rng(seed)
    wavelets = Wavelets(rng.uniform(0.2, 1.0, (6, d)), rng.uniform(0.0, 1.0, (6, d)))
    X = rng.uniform(-1, 1, (8, d))
    t = (X[:, None, :] - wavelets.translations) / wavelets.dilations
    expected = (-t * np.exp(-(t**2) / 2) / np.sqrt(wavelets.dilations)).prod(axis=2)
    np.testing.assert_allclose(wavelet_features(X, wavelets), expected, rtol=1e-9, atol=1e-300)


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 5), st.floats(0.01, 0.99))
def test_features_equal_the_formula_number_by_number(seed, d, n_nodes, smallest):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(smallest, 1.0, (n_nodes, d)), rng.uniform(0.0, 1.0, (n_nodes, d))
    X = rng.uniform(-1, 1, (4, d))
    H = wavelet_features(X, Wavelets(dilations=a, translations=b))
    for n in range(4):
        for i in range(n_nodes):
            product = 1.0
            for j in range(d):
                t = (float(X[n, j]) - float(b[i, j])) / float(a[i, j])
                product *= -t * math.exp(-t * t / 2) / math.sqrt(float(a[i, j]))
            assert math.isclose(H[n, i], product, rel_tol=1e-9, abs_tol=1e-300)


def test_extreme_dilations_and_rows_give_finite_features():
    wavelets = Wavelets(np.array([[1e-300, 1e-300], [1.0, 1e-12]]), np.array([[0.5, 0.5], [0.0, 0.0]]))
    H = wavelet_features(np.array([[0.5, 0.5], [1.0, -1.0], [1e308, 0.0]]), wavelets)
    assert np.isfinite(H).all()


def test_drawn_nodes_lie_in_the_unit_cube(rng):
    wavelets = Wavelets.draw(50, 3, rng)
    assert wavelets.n_outputs == 50
    assert ((wavelets.dilations > 0) & (wavelets.dilations <= 1)).all()
    assert ((wavelets.translations >= 0) & (wavelets.translations < 1)).all()
