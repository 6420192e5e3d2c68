"""Wavelet features of LapWNN (Xie et al. 2019), the paper's baseline: random hidden nodes, linear output weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.basis import Kernel
from dsfr.core.features.gram import FeatureSums
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.scaling.affine import Ranges

MAX_ARGUMENT = 100.0
"""Bound of ``t``: ``exp(-t^2 / 2)`` is 0 in double precision from ``|t|`` = 39 on."""


@dataclass(frozen=True, slots=True)
class Wavelets:
    """Hidden nodes ``h_i(x) = prod_j psi((x_j - b_ij) / a_ij) / sqrt(a_ij)`` with ``psi(t) = -t exp(-t^2 / 2)``."""

    dilations: Array
    """``a``; shape (nodes, d), in (0, 1)."""
    translations: Array
    """``b``; shape (nodes, d), in (0, 1)."""

    @classmethod
    def draw(cls, n_nodes: int, n_features: int, rng: np.random.Generator) -> Wavelets:
        """Random nodes; ``1 - uniform`` excludes 0, by which the features divide."""
        dilations = 1.0 - rng.random((n_nodes, n_features))
        return cls(dilations, rng.random((n_nodes, n_features)))

    def features(self, X: Array) -> Array:
        """The features of these nodes, see `wavelet_features`."""
        return wavelet_features(X, self)

    def arrays(self) -> dict[str, Array]:
        """Dilations and translations, by name."""
        return {"dilations": self.dilations, "translations": self.translations}

    unit_arrays: ClassVar[tuple[str, ...]] = ("dilations", "translations")

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> Wavelets:
        """The wavelets that `arrays` describes."""
        return cls(arrays["dilations"], arrays["translations"])

    @property
    def locations(self) -> Array:
        """The translations."""
        return self.translations

    @property
    def scales(self) -> Array:
        """The dilations."""
        return self.dilations

    @property
    def n_rules(self) -> int:
        """Wavelets are no rules: 0."""
        return 0

    @property
    def rules(self) -> Rules:
        """Wavelets are no rules: a ValueError."""
        raise ValueError("this model has wavelets, not rules: only rules can be explained or simplified")

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        return FeatureSums.of(X, y, self, ranges, weights)

    def kernel(self, ranges: Ranges, weights: Array) -> Kernel | None:
        """There is none."""
        return None

    def typical_rows(self, n_rows: int, shares: Array | None, rng: np.random.Generator) -> Array:
        """Rows anywhere in [-1, 1]."""
        return rng.uniform(-1.0, 1.0, (n_rows, self.dilations.shape[1]))

    @property
    def n_outputs(self) -> int:
        """Number of hidden nodes."""
        return len(self.dilations)


def wavelet_features(X: Array, wavelets: Wavelets) -> Array:
    """Output of every hidden node on every row; shape (n, nodes).

    Beyond `MAX_ARGUMENT` a wavelet is exactly 0; clipping ``t`` there keeps its square from overflowing.
    """
    H = np.empty((len(X), len(wavelets.dilations)))
    for i, (dilation, translation) in enumerate(zip(wavelets.dilations, wavelets.translations, strict=True)):
        with np.errstate(over="ignore"):
            t = np.clip((X - translation) / dilation, -MAX_ARGUMENT, MAX_ARGUMENT)
        H[:, i] = (-t * np.exp(-0.5 * t * t) / np.sqrt(dilation)).prod(axis=1)
    return H
