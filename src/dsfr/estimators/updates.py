"""New labels for a trained model, without the rows that it was trained on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from dsfr.core.arrays import Array
from dsfr.estimators.checks import as_targets
from dsfr.estimators.label_weights import weighted_labels
from dsfr.estimators.parameters import ComponentEstimator
from dsfr.model.model import Model
from dsfr.training.label_sums import LabelSums, with_labels


class LabelUpdates(ComponentEstimator):
    """An estimator that takes more labels after its training."""

    model_: Model
    agent_models_: dict[str, Model]
    sums_: LabelSums | None
    solver: Any
    _weight_unit: float

    def update(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add labels that have arrived since the training; its rows are not needed.

        Sums over labels add, so the lines of the rules become those of a fit on all labels with the same rules, ridge,
        penalty on unlabelled rows and shares. With many new labels a new `fit` is better: it also chooses these again.
        Effects of a feature that was the same for all labels so far come with a new `fit` alone.
        Leave-one-out errors stay those of the training, so that intervals change by the standard deviations alone.
        A row that was trained on with its label counts twice if it is given again.

        Parameters
        ----------
        X : array-like of shape (m, d)
            Rows with new labels.
        y : array-like of shape (m,)
            Their targets; rows with NaN are left out.
        sample_weight : array-like of shape (m,), default=None
            How often each label counts, in the units of the weights of the training.
        """
        check_is_fitted(self, "model_")
        sums = self._summed()
        rows, targets, weights = self._new_labels(X, y, sample_weight)
        mixture, self.sums_ = with_labels(self.model_.mixture, sums, rows, targets, weights)
        n_labeled = self.model_.training["n_labeled"] + len(targets)
        self.model_ = replace(self.model_, mixture=mixture, training={**self.model_.training, "n_labeled": n_labeled})
        if hasattr(self, "agent_models_"):
            self.agent_models_ = dict.fromkeys(self.agent_models_, self.model_)
        return self

    def _summed(self) -> LabelSums:
        """The sums of the training.

        Raises
        ------
        ValueError
            If there are none, or a policy forbids to add single labels to them.
        """
        if self.component("engine").policy is not None:
            raise ValueError(
                "update does not go with a policy: the difference of two models shows a few labels. Train again"
            )
        if self.sums_ is None:
            raise ValueError(
                f"update needs the sums over labels, which solver={self.solver!r} does not collect from several "
                'agents: train with solver="sums"'
            )
        return self.sums_

    def _new_labels(self, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array, Array | None]:
        """Labelled rows alone, checked, and the weights of their labels."""
        rows = self.model_.completed(self._rows(X))
        targets, weights = weighted_labels(column_or_1d(as_targets(y)), sample_weight)
        check_consistent_length(rows, targets)
        labeled = ~np.isnan(targets)
        if not labeled.any() or np.isinf(targets).any():
            raise ValueError("update needs at least one label in y, and all labels must be finite")
        if weights is None and self._weight_unit != 1.0:
            weights = np.ones(len(targets))
        own = None if weights is None else weights[labeled] / self._weight_unit
        return rows[labeled], targets[labeled], own

    def _rows(self, X: Any) -> Array:
        raise NotImplementedError
