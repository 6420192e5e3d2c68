"""What a fitted estimator has its model do: explain, simplify, save."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from dsfr.core.arrays import Array
from dsfr.core.explain.card import Card
from dsfr.model.explained_prediction import PredictionExplanation
from dsfr.model.explanation import Explanation
from dsfr.model.model import Model
from dsfr.model.simplification import Simplification


class ModelReading:
    """An estimator whose fitted model can be read."""

    model_: Model

    @property
    def feature_importances_(self) -> Array:
        """Share of every feature in the variation that the model explains; they sum to 1 (0 for a constant model).

        The mean square of what changes when a feature is held at its mean, over rows drawn from the model: no row is
        permuted or asked for. ``model_.importances(X)`` takes rows of your own.
        """
        check_is_fitted(self, "model_")
        return self.model_.importances()

    def explain(self, X: Any = None, *, all_models: bool = False) -> Explanation | Card:
        """The rules of the model in words and in the data's units; see `Model.explain`."""
        check_is_fitted(self, "model_")
        return self.model_.explain(X, all_models=all_models)

    def explain_prediction(self, row: Any, X_std: Any = None) -> PredictionExplanation:
        """One prediction taken apart by rules and features; see `Model.explain_prediction`."""
        check_is_fitted(self, "model_")
        return self.model_.explain_prediction(row, X_std)

    def simplify(
        self, X: Any = None, y: Any = None, *, similarity: float = 0.8, min_strength: float = 0.01
    ) -> Simplification:
        """A model with fewer rules and sets, and what that costs in accuracy; see `Model.simplify`."""
        check_is_fitted(self, "model_")
        return self.model_.simplify(X, y, similarity=similarity, min_strength=min_strength)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model into one file that `dsfr.load` reads."""
        check_is_fitted(self, "model_")
        return self.model_.save(path)
