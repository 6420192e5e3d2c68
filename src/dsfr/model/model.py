"""The trained model: predict, explain, simplify, save, load."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.explain.card import Card
from dsfr.core.explain.html import rules_html, shortened
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.structure import Structure
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.link import learnt_name
from dsfr.core.prediction.mixture import WITHOUT_UNCERTAINTY, Deviations, Member, Mixture
from dsfr.core.prediction.predictor import Predictor
from dsfr.model.explained_prediction import PredictionExplanation, explain_prediction
from dsfr.model.explanation import Explanation, explain_structure, width_scales
from dsfr.model.file import read_model_file, write_model_file
from dsfr.model.importances import MOST_ROWS, importances, partial_dependence
from dsfr.model.inputs import as_matrix, as_noise
from dsfr.model.schema import Schema
from dsfr.model.simplification import Simplification, simplify
from dsfr.model.student import student_card
from dsfr.model.target_notes import target_notes


class Interval(NamedTuple):
    """Ends of an interval for every row: ``low, high = model.interval(X)``."""

    low: Array
    high: Array


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """A mixture of one or several predictors, the names of the columns, and a record of the training."""

    mixture: Mixture
    feature_names: tuple[str, ...]
    target_name: str = "y"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of the training run."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Rows, labels, agents, rounds, bytes and termination of the training run; its history and ledger."""
    schema: Schema | None = None
    """Columns of the table that the features are made of, if some are categories; else every feature is a column."""

    def __post_init__(self) -> None:
        """Tell the mixture which features are levels of one category."""
        object.__setattr__(self, "mixture", replace(self.mixture, categories=self.columns.groups))

    @property
    def columns(self) -> Schema:
        """Columns of the tables that the model takes."""
        return Schema.of(self.feature_names) if self.schema is None else self.schema

    def __repr__(self) -> str:
        return f"<Model of {shortened(self.target_name, 60)} from {len(self.feature_names)} features: {self._kind()}>"

    def _repr_html_(self) -> str:
        """The rules as a small table; of a model without rules, its name."""
        if isinstance(self.predictor.basis, Wavelets):
            return rules_html(repr(self), [])
        return self.explain()._repr_html_()

    def _kind(self) -> str:
        """What the model consists of."""
        n_rules = sum(member.predictor.basis.n_rules for member in self.members if member.share > 0)
        members = f" in {len(self.members)} members" if len(self.members) > 1 else ""
        return f"{n_rules} rule{'s' * (n_rules != 1)}{members}" if n_rules else f"no rules{members}"

    @property
    def members(self) -> tuple[Member, ...]:
        """Members of the mixture: predictors whose predictions are averaged, with their shares."""
        return self.mixture.members

    @property
    def predictor(self) -> Predictor:
        """The predictor with the largest share."""
        return self.mixture.strongest

    def predict(self, X: Any, X_std: Any = None) -> Array:
        """Predictions for the rows of an array, a data frame or a `dsfr.scan`, whose columns are found by name.

        Missing values (NaN) and values with noise are integrated out: the prediction is the expected one, given what
        is known of the row. ``X_std`` is the standard deviation of the noise of the inputs, in their units: one number,
        one for each feature, one for each value, or a mapping from names of features.
        """
        if hasattr(X, "predictions"):
            return np.concatenate([np.empty(0), *X.predictions(self, X_std)])
        rows = as_matrix(X, self.feature_names, self.schema, gaps=True)
        return self.predict_rows(rows, as_noise(X_std, rows, self.feature_names))

    def predict_rows(self, X: Array, noise: Array | None = None, *, fast: bool | None = None) -> Array:
        """Predictions for checked rows, with deviations of their noise if any."""
        return self.mixture.predict(X, noise, fast=fast)

    def deviations(self, X: Any, X_std: Any = None) -> Array:
        """Standard deviation of a new observation at every row of an array, a data frame or a `dsfr.scan`.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        if hasattr(X, "predictions"):
            blocks = X.features(self.columns)
            return np.concatenate([np.empty(0), *(self.deviations(block, X_std) for block in blocks)])
        rows = as_matrix(X, self.feature_names, self.schema, gaps=True)
        return self.mixture.deviations(rows, as_noise(X_std, rows, self.feature_names))

    def deviation_parts(self, X: Any, X_std: Any = None) -> Deviations:
        """What the standard deviation of a new observation is made of: noise, ignorance, and uncertain inputs.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        rows = as_matrix(X, self.feature_names, self.schema, gaps=True)
        return self.mixture.deviation_parts(rows, as_noise(X_std, rows, self.feature_names))

    def interval(self, X: Any, coverage: float = 0.9, X_std: Any = None) -> Interval:
        """Ends of the jackknife interval of every row of an array or a data frame, see `half_width`."""
        self.half_width(coverage)
        rows = as_matrix(X, self.feature_names, self.schema, gaps=True)
        return Interval(*self.mixture.interval(rows, coverage, as_noise(X_std, rows, self.feature_names)))

    def in_domain(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each row lies where the model has seen data; beyond the model's limits, features are clipped.

        A row is in the domain if every known value lies where training rows are and the model follows its feature.
        """
        return self.mixture.in_domain(as_matrix(X, self.feature_names, self.schema, gaps=True))

    def completed(self, X: Any) -> Array:
        """Rows with missing values replaced by what is expected of them, given the other values of the row.

        Raises
        ------
        ValueError
            If values are missing, and the model does not know the distribution of the rows.
        """
        return self.mixture.completed(as_matrix(X, self.feature_names, self.schema, gaps=True))

    def half_width(self, coverage: float = 0.9) -> float:
        """Half the width of the jackknife interval of a typical row, of nominal coverage ``coverage``.

        On the scale on which the model is learnt: of a logarithm it is the logarithm of a factor. That of another row
        is in proportion to its standard deviation, see `deviations`.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty, or with too few labels for such a coverage.
        """
        if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r} must be a number between 0 and 1; 0.9 is usual")
        if self.mixture.scores is None:
            raise ValueError(WITHOUT_UNCERTAINTY)
        return self.mixture.scores.half_width(float(coverage))

    def half_widths(self, coverages: Sequence[float]) -> dict[float, float]:
        """`half_width` of every coverage for which there are enough labels; empty without uncertainty."""
        scores = self.mixture.scores
        known = [] if scores is None else [coverage for coverage in coverages if scores.suffice_for(coverage)]
        return {coverage: self.half_width(coverage) for coverage in known}

    @property
    def is_student(self) -> bool:
        """Whether the model consists of rules over shared terms, see `RuleRegressor`."""
        return isinstance(self.predictor.basis, LinguisticRules)

    @property
    def rule_base(self) -> RuleBase:
        """The rules of all members that are rule bases, those of the largest share first.

        Raises
        ------
        ValueError
            If the model has wavelets or effects only.
        """
        return RuleBase.of(self.members, width_scales(self.settings, self.training, self.members))

    @property
    def structure(self) -> Structure:
        """Rules and effects of all members, by which the model is explained.

        Raises
        ------
        ValueError
            If the model has wavelets.
        """
        return Structure.of(self.members, width_scales(self.settings, self.training, self.members))

    def explain(self, X: Any = None, *, all_models: bool = False) -> Explanation | Card:
        """The rules in words and in the data's units; printing them shows sentences, ``to_frame()`` gives a table.

        Words such as low and high refer to the distribution of the rows ``X``, and each rule names the rows most
        typical of it, by their labels in the index of a data frame, or else by numbers from 1. Without ``X`` they refer
        to rows drawn from the model. Of several rule bases, the one with the largest share is explained, or all with
        ``all_models``. Effects of features, pairs and triples are the attribute ``effects``: of all members that have
        them, weighted by their shares, with mean 0 over the rows. Rules over shared terms (`RuleRegressor`) need no
        rows: their text is the model.
        """
        if self.is_student:
            return student_card(self)
        rows = None if X is None else self.completed(X)
        return explain_structure(
            self.structure,
            self.columns,
            learnt_name(self.target_name, self.mixture.link),
            rows,
            self.target_notes(),
            all_models=all_models,
            row_names=list(X.index) if hasattr(X, "iloc") else None,
        )

    def target_notes(self) -> list[str]:
        """Sentences about the target: its scale, its limits, and whether it has few values."""
        return target_notes(self.target_name, self.mixture.link, self.training)

    def explain_prediction(self, row: Any, X_std: Any = None) -> PredictionExplanation:
        """One prediction as a sum of contributions of rules, features, pairs and triples.

        ``row`` has one value per feature, or is a row of a data frame with the model's columns. Values may be missing
        (NaN) or have noise, of standard deviations ``X_std`` as in `predict`: contributions are then those of the
        expected prediction, and the text says what is unknown and what is expected of it.
        """
        return explain_prediction(self, row, X_std)

    def importances(self, X: Any = None) -> Array:
        """Share of every feature in the variation that the model explains; they sum to 1, see `importances`.

        Over the rows ``X``, or over rows drawn from the model: around its clusters, or at the quantiles that it knows.
        Short rules draw from the normal distribution of the rows.
        """
        return importances(self.mixture, self._rows_or_drawn(X))

    def partial_dependence(self, feature: str | int, X: Any = None, *, n_points: int = 50) -> tuple[Array, Array]:
        """Values of a feature where rows are, and the mean prediction over rows whose feature is held there.

        Over the rows ``X``, or over rows drawn from the model, as in `importances`.
        """
        rows = self._rows_or_drawn(X)
        j = self.feature_names.index(feature) if isinstance(feature, str) else int(feature)
        domain = self.predictor.domain
        grid = np.linspace(domain.low[j], domain.high[j], n_points)
        return grid, partial_dependence(self.mixture, rows, j, grid)

    def _rows_or_drawn(self, X: Any) -> Array:
        if X is not None:
            return self.completed(X)
        if self.is_student:
            return self.mixture.drawn_rows(MOST_ROWS)
        of = self.predictor
        if isinstance(of.basis, Wavelets):
            rows = of.basis.typical_rows(MOST_ROWS, None, np.random.default_rng(0))
            return of.ranges.midpoints + of.ranges.half_widths * rows
        return self.structure.synthetic_rows()

    def simplify(
        self, X: Any = None, y: Any = None, *, similarity: float = 0.8, min_strength: float = 0.01
    ) -> Simplification:
        """A model with fewer rules and sets, and what that costs in accuracy.

        Rules whose strength is below ``min_strength`` on every row are dropped; sets of a feature with a similarity of
        at least ``similarity`` (1 for equal sets) become one; rules that then have the same sets are joined. All this
        is measured on the rows ``X``, with targets ``y`` if known, or else on rows drawn from the model.
        """
        if self.is_student:
            raise ValueError(
                "these rules are as simple as asked for: train with fewer max_rules (dsfr fit --rules N) or max_terms"
            )
        rows = None if X is None else self.completed(X)
        return simplify(self, rows, y, similarity=similarity, min_strength=min_strength)

    def renamed(self, feature_names: Sequence[str], target_name: str) -> Model:
        """The same model with other names for its columns."""
        if len(feature_names) != len(self.feature_names):
            raise ValueError(f"{len(feature_names)} names for {len(self.feature_names)} features")
        if self.schema is not None:
            raise ValueError("a model with categories keeps the names of its columns")
        return replace(self, feature_names=tuple(feature_names), target_name=target_name)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model into one file; an existing file is replaced whole or not at all."""
        return write_model_file(
            path,
            self.mixture,
            {
                "feature_names": list(self.feature_names),
                "target_name": self.target_name,
                "settings": dict(self.settings),
                "training": dict(self.training),
                **({} if self.schema is None else {"columns": self.schema.to_json()}),
            },
        )


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model that `Model.save` has written.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, altered, or of another format.
    """
    mixture, metadata = read_model_file(path)
    return Model(
        mixture=mixture,
        feature_names=tuple(metadata["feature_names"]),
        target_name=metadata["target_name"],
        settings=metadata["settings"],
        training=metadata["training"],
        schema=Schema.from_json(metadata["columns"]) if "columns" in metadata else None,
    )
