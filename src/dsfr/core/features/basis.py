"""What rules and wavelets have in common: a fixed map from scaled rows to features that enter linearly."""

from typing import Protocol

from dsfr.core.arrays import Array


class Basis(Protocol):
    """A map from rows to features; the model is linear in these."""

    @property
    def n_outputs(self) -> int:
        """Number of features it makes."""

    def features(self, X: Array) -> Array:
        """Features of scaled rows ``X``; shape (n, n_outputs)."""

    def arrays(self) -> dict[str, Array]:
        """The arrays that define it, by name."""
