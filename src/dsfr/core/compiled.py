"""Kernels for large tables, compiled by numba where it is installed; equal to their numpy counterparts up to rounding.

Rows are processed in tiles of `TILE`, transposed so that inner loops run along the rows of a tile: these loops are
vectorised, and a tile stays in the first-level cache. numba is imported on first use, which takes a second.
"""

# Kernels are untyped because numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from dsfr.core.arrays import Array

TILE = 64
WORTHWHILE_ROWS = 100_000
"""From this number of rows on, compiled kernels gain more than loading them costs."""
MAX_SCALED, MAX_SCALED_SINGLE = 1e100, 1e15
"""Bounds of scaled values in double and in single precision, so that squares stay finite."""

LOG_2 = 0.6931471805599453
SMALLEST_LOG = -700.0
"""Lower bound of exponents: smaller exponentials would be denormal. The largest exponential is 1."""
BITS_OF_ROOT_HALF = 0x3FE6A09E667F3BCD
"""Bit pattern of ``sqrt(1/2)``: mantissas are normalised to the range from ``sqrt(1/2)`` to ``sqrt(2)``."""


@cache
def available() -> bool:
    """Whether numba is installed."""
    return find_spec("numba") is not None


def worthwhile(n_rows: int) -> bool:
    """Whether compiled kernels are installed and pay off for a table of this length."""
    return n_rows >= WORTHWHILE_ROWS and available()


def cluster_sums(
    X: Array, shift: Array, unit: Array, centers: Array, fuzzifier: float, power: int, *, squares: bool
) -> tuple[Array, Array, float]:
    """Per cluster the sums of ``u^a`` and of ``u^a x`` (or ``u^a (x - m)^2``), and the objective.

    See `dsfr.core.clustering.fuzzy_c_means` for the formulas; ``power`` is 0 where ``1/(a-1)`` is not whole.
    """
    shift, unit, centers = (array.astype(X.dtype) for array in (shift, unit, centers))
    mass, total, objective = _kernels().cluster_sums(X, shift, unit, centers, fuzzifier, power, squares)
    return mass, total, float(objective)


def rule_products(X: Array, shift: Array, unit: Array, centers: Array, widths: Array) -> tuple[Array, Array, Array]:
    """Strengths of rules, products of two strengths, and products of two inputs (1 among them), row after row.

    Shapes (k, n), (k(k+1)/2, n) and ((d+1)(d+2)/2, n); products in the order of an upper triangle.
    """
    n_rows, (n_rules, n_features) = len(X), centers.shape
    strengths = np.empty((n_rules, n_rows))
    strength_products = np.empty((n_rules * (n_rules + 1) // 2, n_rows))
    input_products = np.empty(((n_features + 1) * (n_features + 2) // 2, n_rows))
    _kernels().rule_products(X, shift, unit, centers, widths, strengths, strength_products, input_products)
    return strengths, strength_products, input_products


def rule_strengths(X: Array, centers: Array, widths: Array) -> Array:
    """Strengths of rules for scaled rows; shape (n, k)."""
    strengths = np.empty((len(centers), len(X)))
    zeros, ones = np.zeros(X.shape[1]), np.ones(X.shape[1])
    _kernels().rule_strengths(X, zeros, ones, centers, widths, strengths)
    return strengths.T


def rule_predictions(X: Array, shift: Array, unit: Array, centers: Array, widths: Array, planes: Array) -> Array:
    """Sum over rules of strength times plane; ``planes`` has one row per rule: value at 0, then slopes."""
    predictions = np.empty(len(X))
    _kernels().rule_predictions(X, shift, unit, centers, widths, planes, predictions)
    return predictions


def inverse_roots(values: Array, order: int) -> Array:
    """``values^(-1/order)`` of values from 1 to thousands, to rounding; order 2 or more."""
    roots = np.empty_like(values)
    for start in range(0, len(values), TILE):
        tile = slice(start, start + TILE)
        _kernels().inverse_roots(values[tile], order, roots[tile], np.empty((2, TILE)))
    return roots


class _Kernels:
    """The compiled functions. numba caches them on disk, so they are compiled once per machine."""

    def __init__(self) -> None:
        njit, register = import_module("numba").njit, import_module("numba.extending").register_jitable
        # Sums may be reordered, since rounding differs from numpy's anyway; infinities are respected.
        options = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
        # Inner functions are compiled into the kernels; cached separately they could not be called from Python.
        inner = options | {"cache": False}
        for part in (_inverse_roots, _scale_tile, _tile_distances, _tile_powers, _tile_roots, _add_tile, _add_squares):
            register(**inner)(part)
        register(**inner)(_strengths)
        self.inverse_roots = njit(**inner)(_inverse_roots)
        self.cluster_sums = njit(**options)(_cluster_sums)
        self.rule_strengths = njit(**options)(_rule_strengths)
        self.rule_products = njit(**options)(_rule_products)
        self.rule_predictions = njit(**options)(_rule_predictions)


@cache
def _kernels() -> _Kernels:
    return _Kernels()


def _inverse_roots(values, order, roots, scratch):
    """``values^(-1/order)`` by series of logarithm and exponential, in loops that vectorise."""
    mantissas, exponents = scratch
    bits, bits_of_mantissas = values.view(np.int64), mantissas.view(np.int64)
    for t in range(len(values)):
        exponent = (bits[t] - BITS_OF_ROOT_HALF) >> 52
        bits_of_mantissas[t] = bits[t] - (exponent << 52)
        exponents[t] = exponent
    for t in range(len(values)):
        s = (mantissas[t] - 1.0) / (mantissas[t] + 1.0)
        q = s * s
        series = 1 / 17 + q * (1 / 19 + q * (1 / 21))
        series = 1 / 11 + q * (1 / 13 + q * (1 / 15 + q * series))
        series = 1 / 5 + q * (1 / 7 + q * (1 / 9 + q * series))
        series = 1.0 + q * (1 / 3 + q * series)
        # A sixteenth of the exponent allows a short series; four squarings restore it.
        z = (exponents[t] * LOG_2 + 2.0 * s * series) / (-16.0 * order)
        grown = 1.0 + z * (1 / 9) * (1.0 + z * (1 / 10) * (1.0 + z * (1 / 11) * (1.0 + z * (1 / 12))))
        grown = 1.0 + z * (1 / 5) * (1.0 + z * (1 / 6) * (1.0 + z * (1 / 7) * (1.0 + z * (1 / 8) * grown)))
        grown = z * (1.0 + z * (1 / 2) * (1.0 + z * (1 / 3) * (1.0 + z * (1 / 4) * grown)))
        for _ in range(4):
            grown *= 2.0 + grown
        roots[t] = 1.0 + grown


def _scale_tile(X, start, n_here, shift, scaling, limit, x):
    """Scale the rows of a tile, feature by feature; slots beyond the last row keep their values."""
    for j in range(X.shape[1]):
        for t in range(n_here):
            x[j, t] = min(max((X[start + t, j] - shift[j]) * scaling[j], -limit), limit)


def _tile_distances(x, centers, distances, nearest):
    """Squared distances of a tile's rows to all centers, and the least of each row."""
    n_centers, n_features = centers.shape
    nearest[:] = np.inf
    for k in range(n_centers):
        distance = distances[k]
        distance[:] = x.dtype.type(0.0)
        for j in range(n_features % 4):
            for t in range(TILE):
                gap = x[j, t] - centers[k, j]
                distance[t] += gap * gap
        # Four features per pass: the sum is loaded and stored once for four.
        for j in range(n_features % 4, n_features, 4):
            m0, m1, m2, m3 = centers[k, j], centers[k, j + 1], centers[k, j + 2], centers[k, j + 3]
            for t in range(TILE):
                g0, g1, g2, g3 = x[j, t] - m0, x[j + 1, t] - m1, x[j + 2, t] - m2, x[j + 3, t] - m3
                distance[t] += (g0 * g0 + g1 * g1) + (g2 * g2 + g3 * g3)
        for t in range(TILE):
            nearest[t] = min(nearest[t], distance[t])


def _tile_powers(ratios, nearest, fuzzifier, power, weights, factor, scale):
    """Replace distances by ratios ``r`` of the nearest to each; compute powers ``r^p`` and their sum over centers."""
    one, zero = ratios.dtype.type(1.0), ratios.dtype.type(0.0)
    scale[:] = 0.0
    for k in range(len(ratios)):
        ratio, weight = ratios[k], weights[k]
        for t in range(TILE):
            quotient = nearest[t] / ratio[t]
            quotient = quotient if ratio[t] > zero else one
            ratio[t] = quotient
            factor[t] = quotient
            weight[t] = one
        if power == 0:
            for t in range(TILE):
                factor[t] = ratio[t] ** (1.0 / (fuzzifier - 1.0))
        left = power
        while left > 1:
            if left & 1:
                for t in range(TILE):
                    weight[t] *= factor[t]
            for t in range(TILE):
                factor[t] *= factor[t]
            left >>= 1
        for t in range(TILE):
            weight[t] *= factor[t]
            scale[t] += weight[t]


def _tile_roots(scale, fuzzifier, power, root, scratch):
    """``s^(1-a)``, which is an inverse root of ``s`` where ``1/(a-1)`` is whole."""
    if power == 1:
        for t in range(TILE):
            root[t] = 1.0 / scale[t]
    elif power > 1:
        _inverse_roots(scale, power, root, scratch)
    else:
        for t in range(TILE):
            root[t] = scale[t] ** (1.0 - fuzzifier)


def _add_tile(weights, x, total):
    """Adds ``sum_t w_kt x_jt`` to the totals, four features at a time."""
    zero, n_features = x.dtype.type(0.0), len(x)
    for k in range(len(weights)):
        weight = weights[k]
        for j in range(n_features % 4):
            summed = zero
            for t in range(TILE):
                summed += weight[t] * x[j, t]
            total[k, j] += summed
        for j in range(n_features % 4, n_features, 4):
            s0, s1, s2, s3 = zero, zero, zero, zero
            for t in range(TILE):
                u = weight[t]
                s0 += u * x[j, t]
                s1 += u * x[j + 1, t]
                s2 += u * x[j + 2, t]
                s3 += u * x[j + 3, t]
            total[k, j] += s0
            total[k, j + 1] += s1
            total[k, j + 2] += s2
            total[k, j + 3] += s3


def _add_squares(weights, x, centers, total):
    """Adds ``sum_t w_kt (x_jt - m_kj)^2`` to the totals."""
    for k in range(len(weights)):
        for j in range(len(x)):
            summed = x.dtype.type(0.0)
            for t in range(TILE):
                gap = x[j, t] - centers[k, j]
                summed += weights[k, t] * gap * gap
            total[k, j] += summed


def _cluster_sums(X, shift, unit, centers, fuzzifier, power, squares):
    n_rows, n_features = X.shape
    n_centers = len(centers)
    limit = X.dtype.type(MAX_SCALED if X.itemsize == 8 else MAX_SCALED_SINGLE)
    mass, total, objective = np.zeros(n_centers), np.zeros((n_centers, n_features)), 0.0
    x, scaling = np.zeros((n_features, TILE), X.dtype), X.dtype.type(1.0) / unit
    ratios, weights = np.empty((n_centers, TILE), X.dtype), np.empty((n_centers, TILE), X.dtype)
    nearest, factor = np.empty(TILE, X.dtype), np.empty(TILE, X.dtype)
    scale, root, scratch = np.empty(TILE), np.empty(TILE), np.empty((2, TILE))
    for start in range(0, n_rows, TILE):
        n_here = min(TILE, n_rows - start)
        _scale_tile(X, start, n_here, shift, scaling, limit, x)
        _tile_distances(x, centers, ratios, nearest)
        _tile_powers(ratios, nearest, fuzzifier, power, weights, factor, scale)
        _tile_roots(scale, fuzzifier, power, root, scratch)
        root[n_here:] = 0.0
        # sum_k u^a d = nearest * sum_k r^p / s^a = nearest * s^(1-a)
        for t in range(TILE):
            objective += nearest[t] * root[t]
            factor[t] = root[t] / scale[t]
        for k in range(n_centers):
            summed, weight = X.dtype.type(0.0), weights[k]
            for t in range(TILE):
                weight[t] *= ratios[k, t] * factor[t]
                summed += weight[t]
            mass[k] += summed
        if squares:
            _add_squares(weights, x, centers, total)
        else:
            _add_tile(weights, x, total)
    return mass, total, 0.5 * objective


def _strengths(X, start, n_here, shift, scaling, centers, sharpness, x, strengths, scratch):
    """Scaled inputs and normalised strengths of one tile: a softmax, with the exponential from its series."""
    n_rules, n_features = centers.shape
    nearest, total, powers_of_two = scratch
    bits = powers_of_two.view(np.int64)
    _scale_tile(X, start, n_here, shift, scaling, MAX_SCALED, x)
    nearest[:] = np.inf
    for k in range(n_rules):
        strength = strengths[k]
        strength[:] = 0.0
        for j in range(n_features):
            center, sharp = centers[k, j], sharpness[k, j]
            for t in range(TILE):
                gap = (x[j, t] - center) * sharp
                strength[t] += gap * gap
        for t in range(TILE):
            nearest[t] = min(nearest[t], strength[t])
    total[:] = 0.0
    for k in range(n_rules):
        strength = strengths[k]
        for t in range(TILE):
            strength[t] = max(nearest[t] - strength[t], SMALLEST_LOG)
            bits[t] = (np.int64(np.floor(strength[t] * (1.0 / LOG_2) + 0.5)) + 1023) << 52
        for t in range(TILE):
            z = strength[t] - np.floor(strength[t] * (1.0 / LOG_2) + 0.5) * LOG_2
            series = 1.0 + z * (1 / 10) * (1.0 + z * (1 / 11) * (1.0 + z * (1 / 12) * (1.0 + z * (1 / 13))))
            series = 1.0 + z * (1 / 6) * (1.0 + z * (1 / 7) * (1.0 + z * (1 / 8) * (1.0 + z * (1 / 9) * series)))
            series = 1.0 + z * (1 / 3) * (1.0 + z * (1 / 4) * (1.0 + z * (1 / 5) * series))
            strength[t] = (1.0 + z * (1.0 + z * (1 / 2) * series)) * powers_of_two[t]
            total[t] += strength[t]
    for k in range(n_rules):
        for t in range(TILE):
            strengths[k, t] /= total[t]


def _rule_strengths(X, shift, unit, centers, widths, strengths):
    x, scaling, sharpness = np.zeros((X.shape[1], TILE)), 1.0 / unit, 1.0 / widths
    tile, scratch = np.empty((len(centers), TILE)), np.empty((3, TILE))
    for start in range(0, len(X), TILE):
        n_here = min(TILE, len(X) - start)
        _strengths(X, start, n_here, shift, scaling, centers, sharpness, x, tile, scratch)
        strengths[:, start : start + n_here] = tile[:, :n_here]


def _rule_products(X, shift, unit, centers, widths, strengths, strength_products, input_products):
    n_rows, n_features = X.shape
    n_rules = len(centers)
    x, scaling, sharpness = np.zeros((n_features, TILE)), 1.0 / unit, 1.0 / widths
    tile, scratch = np.empty((n_rules, TILE)), np.empty((3, TILE))
    for start in range(0, n_rows, TILE):
        n_here = min(TILE, n_rows - start)
        _strengths(X, start, n_here, shift, scaling, centers, sharpness, x, tile, scratch)
        strengths[:, start : start + n_here] = tile[:, :n_here]
        place = 0
        for k in range(n_rules):
            for other in range(k, n_rules):
                for t in range(n_here):
                    strength_products[place, start + t] = tile[k, t] * tile[other, t]
                place += 1
        input_products[0, start : start + n_here] = 1.0
        input_products[1 : n_features + 1, start : start + n_here] = x[:, :n_here]
        place = n_features + 1
        for j in range(n_features):
            for other in range(j, n_features):
                for t in range(n_here):
                    input_products[place, start + t] = x[j, t] * x[other, t]
                place += 1


def _rule_predictions(X, shift, unit, centers, widths, planes, predictions):
    n_rows, n_features = X.shape
    n_rules = len(centers)
    x, scaling, sharpness = np.zeros((n_features, TILE)), 1.0 / unit, 1.0 / widths
    tile, scratch = np.empty((n_rules, TILE)), np.empty((3, TILE))
    plane, predicted = np.empty(TILE), np.empty(TILE)
    for start in range(0, n_rows, TILE):
        n_here = min(TILE, n_rows - start)
        _strengths(X, start, n_here, shift, scaling, centers, sharpness, x, tile, scratch)
        predicted[:] = 0.0
        for k in range(n_rules):
            plane[:] = planes[k, 0]
            for j in range(n_features):
                for t in range(TILE):
                    plane[t] += planes[k, j + 1] * x[j, t]
            for t in range(TILE):
                predicted[t] += tile[k, t] * plane[t]
        predictions[start : start + n_here] = predicted[:n_here]
