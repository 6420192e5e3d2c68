"""Folds for tables in which few rows are labelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, column_or_1d

from dsfr.core.arrays import IntArray
from dsfr.estimators.checks import as_targets, is_missing

LEAST_LABELS = 2
"""Labels of a test fold: of a single one, R^2 and nrmse are not defined."""


class LabeledKFold(BaseCrossValidator):
    """K folds of the labelled rows; unlabelled rows are in every training set.

    `sklearn.model_selection.KFold` divides all rows, so that with few labels some test folds have none and their score
    is NaN. Here labels alone are divided, evenly, and a row without a label is never tested.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, at least 2.
    shuffle : bool, default=False
        Whether labelled rows (or groups) are divided at random, and not in their order.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling.
    partition : bool, default=False
        Also put every unlabelled row into one test fold, besides all training sets: `cross_val_predict` asks for folds
        that cover all rows. Scorers must then leave NaN targets out, as `nrmse_scorer` and the estimators' ``score``
        do.

    Examples
    --------
    >>> import numpy as np
    >>> from dsfr import LabeledKFold
    >>> y = np.array([1.0, np.nan, 2.0, np.nan, 3.0, 4.0])
    >>> for train, test in LabeledKFold(2).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 3] [4 5]
    """

    # With `groups` the labels of an owner are all in one fold, as scikit-learn's group splitters have it.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None, partition: bool = False
    ) -> None:
        if not isinstance(n_splits, (int, np.integer)) or isinstance(n_splits, bool) or n_splits < 2:
            raise ValueError(f"n_splits={n_splits!r} must be a whole number >= 2; 5 and 10 are usual")
        if random_state is not None and not shuffle:
            raise ValueError(f"random_state={random_state!r} has no effect with shuffle=False: set shuffle=True")
        self.n_splits = int(n_splits)
        self.shuffle = shuffle
        self.random_state = random_state
        self.partition = partition

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Numbers of the rows to train on and to test on, fold by fold.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; only their number counts.
        y : array-like of shape (n,)
            Targets; NaN marks an unlabelled row.
        groups : array-like of shape (n,), default=None
            Owner of each row. The labels of an owner are all in one test fold.

        Raises
        ------
        ValueError
            If a test fold would have fewer than two labels.
        """
        if y is None:
            raise ValueError("LabeledKFold.split needs y: it divides the labelled rows, and NaN marks the others")
        targets = column_or_1d(as_targets(y))
        check_consistent_length(X, targets, groups)
        labeled, unlabeled = np.flatnonzero(~np.isnan(targets)), np.flatnonzero(np.isnan(targets))
        folds = self._folds(labeled, groups)
        beside = np.arange(len(unlabeled)) % self.n_splits
        for fold in range(self.n_splits):
            test = labeled[folds == fold]
            train = np.sort(np.concatenate([unlabeled, labeled[folds != fold]]))
            tested = np.concatenate([test, unlabeled[beside == fold]]) if self.partition else test
            yield train, np.sort(tested)

    def _folds(self, labeled: IntArray, groups: Any) -> IntArray:
        """The fold of every labelled row."""
        rng = check_random_state(self.random_state)
        if groups is None:
            order = rng.permutation(len(labeled)) if self.shuffle else np.arange(len(labeled))
            folds = np.empty(len(labeled), dtype=np.int64)
            for fold, part in enumerate(np.array_split(order, self.n_splits)):
                folds[part] = fold
        else:
            folds = self._grouped(_owners(groups)[labeled], rng)
        self._check(np.bincount(folds, minlength=self.n_splits), grouped=groups is not None)
        return folds

    def _grouped(self, owners: Any, rng: np.random.RandomState) -> IntArray:
        """Whole groups, the largest first, each into the fold with the fewest labels so far."""
        names, group, sizes = np.unique(owners, return_inverse=True, return_counts=True)
        order = rng.permutation(len(names)) if self.shuffle else np.arange(len(names))
        fold_of, filled = np.zeros(len(names), dtype=np.int64), np.zeros(self.n_splits, dtype=np.int64)
        for name in order[np.argsort(-sizes[order], kind="stable")]:
            fold_of[name] = filled.argmin()
            filled[fold_of[name]] += sizes[name]
        return fold_of[group]

    def _check(self, sizes: IntArray, *, grouped: bool) -> None:
        if sizes.min() >= LEAST_LABELS:
            return
        most = int(sizes.sum()) // LEAST_LABELS
        remedy = f"take n_splits={most} or fewer" if most > 1 and not grouped else "take fewer folds or label more rows"
        whole = " of whole groups" if grouped else ""
        raise ValueError(
            f"n_splits={self.n_splits} leaves a test fold{whole} with {sizes.min()} of {sizes.sum()} labels, and a "
            f"score needs at least {LEAST_LABELS}: {remedy}"
        )


def _owners(groups: Any) -> Any:
    owners = np.asarray(groups)
    if any(map(is_missing, owners.tolist())):
        raise ValueError("groups contains missing values: every row must have an owner")
    return owners.astype(str)
