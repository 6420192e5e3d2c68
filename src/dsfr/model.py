"""A trained model as people handle it: predict, explain, save, load."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain import Rule, explain
from dsfr.core.mixture import WITHOUT_UNCERTAINTY, Mixture
from dsfr.core.model import Predictor
from dsfr.modelfile import read_model_file, write_model_file


@dataclass(frozen=True, slots=True)
class Model:
    """A predictor with the names of its columns and a record of how it was trained."""

    predictor: Predictor
    feature_names: tuple[str, ...]
    target_name: str = "y"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the training run."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Rows, labels, agents, rounds, bytes and termination of the training run."""
    mixture: Mixture | None = None
    """Several predictors (``predictor`` is the strongest) and how sure they are, if the training was asked for it."""

    @property
    def members(self) -> tuple[tuple[float, Predictor], ...]:
        """Shares and predictors whose weighted sum the model predicts; a single one of share 1 as a rule."""
        if self.mixture is None:
            return ((1.0, self.predictor),)
        return tuple((member.share, member.predictor) for member in self.mixture.members)

    def predict(self, X: Any) -> Array:
        """Predictions for the rows of an array, a data frame or a `dsfr.scan`, whose columns are found by name."""
        if hasattr(X, "predictions"):
            return np.concatenate([np.empty(0), *X.predictions(self)])
        return self.predict_rows(_as_matrix(X, self.feature_names))

    def predict_rows(self, X: Array, *, fast: bool | None = None) -> Array:
        """Predictions for checked rows."""
        return (self.predictor if self.mixture is None else self.mixture).predict(X, fast=fast)

    def deviations(self, X: Any) -> Array:
        """Standard deviation of a new observation at every row of ``X``.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        return self._sure().deviations(_as_matrix(X, self.feature_names))

    def half_width(self, coverage: float = 0.9) -> float:
        """Half the width of intervals about predictions that hold a new target with probability ``coverage``.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty, or with too few labels for such a coverage.
        """
        if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1; 0.9 is usual")
        scores = self._sure().scores
        if scores is None:
            raise ValueError(WITHOUT_UNCERTAINTY)
        return scores.half_width(float(coverage))

    def _sure(self) -> Mixture:
        if self.mixture is None:
            raise ValueError(WITHOUT_UNCERTAINTY)
        return self.mixture

    def explain(self) -> tuple[Rule, ...]:
        """The rules, in the data's units; printing one shows it as a sentence."""
        return explain(self.predictor, self.feature_names, self.target_name)

    def renamed(self, feature_names: Sequence[str], target_name: str) -> Model:
        """The same model with other names for its columns."""
        if len(feature_names) != len(self.feature_names):
            raise ValueError(f"{len(feature_names)} names for {len(self.feature_names)} features")
        return replace(self, feature_names=tuple(feature_names), target_name=target_name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model into one file; an existing file is replaced whole or not at all."""
        return write_model_file(
            path,
            self.predictor if self.mixture is None else self.mixture,
            {
                "feature_names": list(self.feature_names),
                "target_name": self.target_name,
                "settings": dict(self.settings),
                "training": dict(self.training),
            },
        )


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `Model.save` has written.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, altered, or of a newer format.
    """
    found, metadata = read_model_file(path)
    mixture = found if isinstance(found, Mixture) else None
    return Model(
        predictor=found.strongest if isinstance(found, Mixture) else found,
        mixture=mixture,
        feature_names=tuple(metadata["feature_names"]),
        target_name=metadata["target_name"],
        settings=metadata["settings"],
        training=metadata["training"],
    )


def _as_matrix(X: Any, feature_names: Sequence[str]) -> Array:
    matrix = _numbers(_by_name(X, feature_names))
    if matrix.ndim != 2 or matrix.shape[1] != len(feature_names):
        raise ValueError(
            f"X has shape {matrix.shape}; the model needs two dimensions and {len(feature_names)} columns: "
            f"{', '.join(feature_names)}"
        )
    if not np.isfinite(matrix).all():
        bad = [feature_names[j] for j in np.flatnonzero(~np.isfinite(matrix).all(axis=0)).tolist()]
        raise ValueError(f"X has missing or infinite values in {', '.join(bad)}: fill them in or drop those rows")
    return matrix


def _by_name(X: Any, feature_names: Sequence[str]) -> Any:
    """Columns of a data frame in the model's order; as they stand where the frame has no names of its own."""
    columns = list(getattr(X, "columns", ()))
    if not columns or not all(isinstance(column, str) for column in columns):
        return X
    missing = [name for name in feature_names if name not in columns]
    if missing:
        raise ValueError(f"X lacks the column(s) {', '.join(missing)} that the model was trained on")
    return X[list(feature_names)]


def _numbers(X: Any) -> Array:
    try:
        matrix: Array = np.asarray(X, dtype=np.float64)
    except TypeError as error:
        raise ValueError(f"X cannot be read as numbers: {error}") from None
    return matrix
