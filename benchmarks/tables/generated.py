"""Generated tables whose structure is known; each function returns features and target from one random generator."""

from collections.abc import Callable

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]
N_ROWS = 4000
GENERATED: dict[str, Callable[[np.random.Generator], Pair]] = {}


def table(function: Callable[[np.random.Generator], Pair]) -> Callable[[np.random.Generator], Pair]:
    """Register a generated table under the name of its function."""
    GENERATED[function.__name__] = function
    return function


def noisy(rng: np.random.Generator, signal: np.ndarray, share: float) -> np.ndarray:
    """The signal with normal noise of `share` times its standard deviation."""
    return signal + share * signal.std() * rng.standard_normal(len(signal))


def uniform(rng: np.random.Generator, n_features: int) -> np.ndarray:
    return rng.uniform(0.0, 1.0, (N_ROWS, n_features))


@table
def additive_steps(rng: np.random.Generator) -> Pair:
    """A sum of curves of single features, three of them steps."""
    X = uniform(rng, 8)
    curves = 2 * np.sin(4 * X[:, 0]) + 3 * (X[:, 1] - 0.4) ** 2 + np.exp(2 * X[:, 2]) / 3
    steps = 2.0 * (X[:, 3] > 0.6) - 1.5 * (X[:, 4] > 0.3) + 1.0 * np.floor(3 * X[:, 5])
    return X, noisy(rng, curves + steps, 0.1)


@table
def additive_smooth(rng: np.random.Generator) -> Pair:
    """A sum of smooth curves of all features, which are correlated."""
    common = rng.standard_normal((N_ROWS, 1))
    X = 0.6 * common + 0.8 * rng.standard_normal((N_ROWS, 7))
    signal = np.tanh(2 * X[:, 0]) + np.cos(2 * X[:, 1]) + 0.3 * X[:, 2] ** 2 + X[:, 3] - np.abs(X[:, 4])
    return X, noisy(rng, signal, 0.3)


@table
def sparse_curves(rng: np.random.Generator) -> Pair:
    """Three of 24 features matter, through curves and one product."""
    X = uniform(rng, 24)
    signal = np.sin(5 * X[:, 2]) + 4 * (X[:, 9] - 0.5) ** 2 + 2 * X[:, 9] * X[:, 17]
    return X, noisy(rng, signal, 0.2)


@table
def sparse_linear(rng: np.random.Generator) -> Pair:
    """Four of 26 normal features matter, linearly."""
    X = rng.standard_normal((N_ROWS, 26))
    return X, noisy(rng, X[:, [1, 7, 12, 20]] @ [2.0, -1.5, 1.0, 0.7], 0.4)


@table
def logarithm(rng: np.random.Generator) -> Pair:
    """One log-normal feature acts through its logarithm, three others linearly, four not at all."""
    X = rng.standard_normal((N_ROWS, 8))
    X[:, 0] = np.exp(1.5 * X[:, 0])
    return X, noisy(rng, 1.5 * np.log(X[:, 0]) + X[:, 1:4] @ [0.8, -0.5, 0.5], 0.25)


@table
def products(rng: np.random.Generator) -> Pair:
    """Products of two and of three features, and no effect of a feature alone."""
    X = rng.uniform(-1.0, 1.0, (N_ROWS, 6))
    return X, noisy(rng, X[:, 0] * X[:, 1] + 0.7 * X[:, 2] * X[:, 3] * X[:, 4], 0.1)


@table
def friedman1(rng: np.random.Generator) -> Pair:
    """Friedman (1991): sine of a product, a parabola, two lines; five features do not matter."""
    X = uniform(rng, 10)
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, signal + rng.standard_normal(N_ROWS)


def circuit(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of Friedman's second and third function, impedance and reactance of a circuit."""
    low, high = np.array([0.0, 40 * np.pi, 0.0, 1.0]), np.array([100.0, 560 * np.pi, 1.0, 11.0])
    X = low + (high - low) * uniform(rng, 4)
    reactance = X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])
    return X, np.hypot(X[:, 0], reactance), reactance


@table
def friedman2(rng: np.random.Generator) -> Pair:
    """Impedance, with a third of its deviation as noise."""
    X, impedance, _ = circuit(rng)
    return X, noisy(rng, impedance, 1 / 3)


@table
def friedman3(rng: np.random.Generator) -> Pair:
    """Phase angle, with a third of its deviation as noise."""
    X, _, reactance = circuit(rng)
    return X, noisy(rng, np.arctan(reactance / X[:, 0]), 1 / 3)


@table
def linear_without_noise(rng: np.random.Generator) -> Pair:
    """A plane of ten correlated features, noise of 1%."""
    X = rng.standard_normal((N_ROWS, 10)) @ rng.standard_normal((10, 10))
    return X, noisy(rng, X @ rng.standard_normal(10), 0.01)


@table
def heavy_tails(rng: np.random.Generator) -> Pair:
    """Features from Student's t with two degrees of freedom; bounded effects."""
    X = rng.standard_t(2, (N_ROWS, 8))
    signal = np.arctan(X[:, 0]) + np.tanh(X[:, 1] * X[:, 2]) + np.sign(X[:, 3]) * np.log1p(np.abs(X[:, 3]))
    return X, noisy(rng, signal, 0.25)


@table
def long_tailed_target(rng: np.random.Generator) -> Pair:
    """The exponential of a sum of effects: a log-normal target."""
    X = rng.standard_normal((N_ROWS, 7))
    signal = 0.8 * X[:, 0] + 0.5 * np.abs(X[:, 1]) - 0.6 * X[:, 2] + 0.3 * X[:, 3] * X[:, 4]
    return X, np.exp(noisy(rng, signal, 0.3))


@table
def integer_codes(rng: np.random.Generator) -> Pair:
    """Columns of few values: months, weekdays, grades and flags; codes act without order."""
    months, days = rng.integers(1, 13, N_ROWS), rng.integers(0, 7, N_ROWS)
    flags, grades = rng.integers(0, 2, (N_ROWS, 3)), rng.integers(1, 6, (N_ROWS, 3))
    signal = np.cos(2 * np.pi * months / 12) + 0.8 * (days >= 5) + grades[:, 0] / 3 + flags[:, 0] * flags[:, 1]
    return np.column_stack([months, days, flags, grades]).astype(float), noisy(rng, signal, 0.3)


@table
def repeated_columns(rng: np.random.Generator) -> Pair:
    """Five features, each three times: exactly, rescaled, and with 5% noise."""
    Z = uniform(rng, 5)
    X = np.hstack([Z, 100.0 - 30.0 * Z, Z + 0.015 * rng.standard_normal(Z.shape)])
    return X, noisy(rng, np.sin(4 * Z[:, 0]) + 2 * Z[:, 1] * Z[:, 2] + Z[:, 3], 0.2)


@table
def wide_factors(rng: np.random.Generator) -> Pair:
    """Eighty noisy measurements of four factors; the target bends along two of them."""
    factors = rng.standard_normal((N_ROWS, 4))
    X = factors @ rng.standard_normal((4, 80)) + rng.standard_normal((N_ROWS, 80))
    return X, noisy(rng, factors[:, 0] + np.abs(factors[:, 1]) + 0.5 * factors[:, 2], 0.2)


@table
def wide_sparse(rng: np.random.Generator) -> Pair:
    """Five of a hundred features matter, one of them through a step."""
    X = rng.standard_normal((N_ROWS, 100))
    signal = 1.5 * X[:, 3] + X[:, 30] - X[:, 55] + np.tanh(2 * X[:, 71]) + 1.5 * (X[:, 90] > 0)
    return X, noisy(rng, signal, 0.2)


@table
def regimes(rng: np.random.Generator) -> Pair:
    """Three groups of rows, each with a plane of its own."""
    group = rng.integers(0, 3, N_ROWS)
    centers, planes = 3.0 * rng.standard_normal((3, 5)), rng.standard_normal((3, 5))
    X = centers[group] + rng.standard_normal((N_ROWS, 5))
    return X, noisy(rng, ((X - centers[group]) * planes[group]).sum(axis=1) + 2.0 * group, 0.15)


@table
def boxes(rng: np.random.Generator) -> Pair:
    """A tree of six leaves over four of eight features: constant within boxes."""
    X = uniform(rng, 8)
    left = np.where(X[:, 1] < 0.4, 0.0, np.where(X[:, 2] < 0.7, 2.0, 5.0))
    right = np.where(X[:, 3] < 0.5, 4.0, np.where(X[:, 1] < 0.6, 1.0, 3.0))
    return X, noisy(rng, np.where(X[:, 0] < 0.5, left, right), 0.15)


@table
def ratios(rng: np.random.Generator) -> Pair:
    """The ratio of two positive features, and a third as the exponent."""
    X = np.column_stack([rng.uniform(1.0, 10.0, (N_ROWS, 2)), rng.uniform(0.5, 1.5, N_ROWS), uniform(rng, 3)])
    return X, noisy(rng, (X[:, 0] / X[:, 1]) ** X[:, 2] + X[:, 3], 0.1)


@table
def noise_that_grows(rng: np.random.Generator) -> Pair:
    """A gentle curve whose noise grows with one feature."""
    X = uniform(rng, 6)
    signal = 3 * X[:, 0] + np.sin(3 * X[:, 1]) + X[:, 2] ** 2
    return X, signal + (0.1 + 1.2 * X[:, 3] ** 2) * rng.standard_normal(N_ROWS)
