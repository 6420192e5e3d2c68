"""Feature maps: a fixed map from scaled rows to features that enter the model linearly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array

if TYPE_CHECKING:
    from dsfr.core.features.gram import FeatureSums
    from dsfr.core.features.takagi_sugeno import Rules
    from dsfr.core.scaling.affine import Ranges


Kernel: TypeAlias = Callable[[Array], Array]
"""Predictions, standardised, of rows that are not scaled."""


class FeatureMap(Protocol):
    """A map from scaled rows to features, of which sums are taken."""

    @property
    def n_outputs(self) -> int:
        """Number of features it makes."""

    def features(self, X: Array) -> Array:
        """Features of scaled rows ``X``; shape (n, n_outputs)."""

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1`` of labelled rows, scaled first if ``ranges`` are given.

        A row counts ``weights`` times; None: once.
        """


class Basis(FeatureMap, Protocol):
    """The features of a model, which is linear in these."""

    unit_arrays: ClassVar[tuple[str, ...]]
    """Names of the arrays with a row per unit (rule or hidden node) and a column per input."""

    @property
    def locations(self) -> Array:
        """Where each unit lies; shape (units, d)."""

    @property
    def scales(self) -> Array:
        """How wide each unit is, > 0; shape (units, d)."""

    @property
    def n_rules(self) -> int:
        """Number of rules; 0 if the units are no rules."""

    @property
    def rules(self) -> Rules:
        """The fuzzy rules, where the basis consists of rules; else a ValueError."""

    def typical_rows(self, n_rows: int, shares: Array | None, rng: np.random.Generator) -> Array:
        """Scaled rows drawn from the basis alone, as a stand-in for training rows; shape (n_rows, d)."""

    def kernel(self, ranges: Ranges, weights: Array) -> Kernel | None:
        """Compiled predictions of rows that are not scaled; None if there are none, and numpy serves."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that define it, by name."""
