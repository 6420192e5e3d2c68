"""Kernel for predictions of effects of single features, pairs and triples; tiles of rows as in `dsfr.core.compiled`."""

# Kernels are untyped because numba infers their types.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.compiled import MAX_SCALED, TILE


@dataclass(frozen=True, slots=True)
class EffectTables:
    """What the kernel needs of effects and their weights: curves of a feature are tables of values at its knots.

    Curve 0 of a feature is the sum of all its curves, times their weights; the others are those that products have.
    """

    knots: Array
    """Ascending; shape (d, m)."""
    values: Array
    """Of every curve at the knots; shape (d, c, m)."""
    slopes: Array
    """Behind each knot; shape (d, c, m)."""
    lines: Array
    """Weight of each feature's line; shape (d,)."""
    pairs: IntArray
    """Feature and term, twice, of every product of two; term 0 is the line; shape (q, 4)."""
    triples: IntArray
    """Feature and term, three times, of every product of three; shape (t, 6)."""
    weights: Array
    """Of pairs, then of triples; shape (q + t,)."""
    constant: float
    farthest: float
    """Lines are constant beyond."""


def effect_predictions(X: Array, shift: Array, unit: Array, tables: EffectTables) -> Array:
    """Constant, lines, curves and products of effects, summed for every row."""
    predictions = np.empty(len(X))
    arrays = (tables.knots, tables.values, tables.slopes, tables.lines, tables.pairs, tables.triples)
    _kernel()(X, shift, unit, *arrays, tables.weights, tables.constant, tables.farthest, predictions)
    return predictions


@cache
def _kernel() -> Callable[..., None]:
    options = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    # Inner functions are compiled into the kernel; cached separately they could not be called from Python.
    import_module("numba.extending").register_jitable(**(options | {"cache": False}))(_add_products)
    compiled: Callable[..., None] = import_module("numba").njit(**options)(_effect_predictions)
    return compiled


def _effect_predictions(
    X, shift, unit, knots, values, slopes, lines, pairs, triples, weights, constant, farthest, predictions
):
    n_rows, n_features = X.shape
    n_curves, n_knots = values.shape[1:]
    scaling = 1.0 / unit
    x, places, predicted = np.zeros(TILE), np.zeros(TILE, np.int64), np.empty(TILE)
    terms = np.zeros((n_features, n_curves, TILE))
    for start in range(0, n_rows, TILE):
        n_here = min(TILE, n_rows - start)
        predicted[:] = constant
        for j in range(n_features):
            line = terms[j, 0]
            for t in range(n_here):
                x[t] = min(max((X[start + t, j] - shift[j]) * scaling[j], -MAX_SCALED), MAX_SCALED)
            places[:] = 0
            last = n_knots - 1
            while last > 0 and knots[j, last - 1] == knots[j, last]:
                last -= 1  # features with fewer knots repeat the last one
            for k in range(1, last + 1):
                for t in range(TILE):
                    places[t] += x[t] >= knots[j, k]
            for t in range(TILE):
                line[t] = min(max(x[t], -farthest), farthest)
                predicted[t] += lines[j] * line[t]
                x[t] = min(max(x[t], knots[j, 0]), knots[j, n_knots - 1]) - knots[j, places[t]]
                predicted[t] += values[j, 0, places[t]] + slopes[j, 0, places[t]] * x[t]
            for c in range(1, n_curves):
                for t in range(TILE):
                    terms[j, c, t] = values[j, c, places[t]] + slopes[j, c, places[t]] * x[t]
        _add_products(terms, pairs, triples, weights, predicted)
        predictions[start : start + n_here] = predicted[:n_here]


def _add_products(terms, pairs, triples, weights, predicted):
    for q in range(len(pairs)):
        first, second, weight = terms[pairs[q, 0], pairs[q, 1]], terms[pairs[q, 2], pairs[q, 3]], weights[q]
        for t in range(TILE):
            predicted[t] += weight * first[t] * second[t]
    for q in range(len(triples)):
        first, second = terms[triples[q, 0], triples[q, 1]], terms[triples[q, 2], triples[q, 3]]
        third, weight = terms[triples[q, 4], triples[q, 5]], weights[len(pairs) + q]
        for t in range(TILE):
            predicted[t] += weight * first[t] * second[t] * third[t]
