"""What all estimators share: rows go to agents, a protocol trains, a model predicts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from dsfr.core.arrays import Array, with_dtype
from dsfr.core.explain.card import Card
from dsfr.core.prediction.errors import in_units, unit_of
from dsfr.core.prediction.mixture import Mixture
from dsfr.engines import Engine
from dsfr.estimators.checks import as_targets, check_finite, check_numbers, checked_count, dtype_of, is_missing, is_scan
from dsfr.estimators.engines import Dask
from dsfr.estimators.parameters import ComponentEstimator, drawn_state, training_seed
from dsfr.estimators.predictions import Predictions
from dsfr.estimators.training_warnings import training_warnings
from dsfr.io.dask_frames import is_lazy, lazy_engine, lazy_shards
from dsfr.model.explanation import Explanation, PredictionExplanation
from dsfr.model.model import Model
from dsfr.model.record import record
from dsfr.model.simplification import Simplification
from dsfr.training import TASKS, Settings, Training, make_shards, train
from dsfr.training.completion import ScarceValuesError
from dsfr.training.fit_report import FitReport, Stopwatch
from dsfr.training.shard import Shard
from dsfr.training.split import split_rows


class DistributedRegressor(RegressorMixin, Predictions, ComponentEstimator):
    """A regressor whose rows may belong to several agents."""

    fit_report_: FitReport

    def fit(self, X: Any, y: Any = None, agents: Any = None) -> Self:
        """Train on labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or Scan
            Features of all rows; NaN marks a missing value. Column names of a data frame are kept. A `dsfr.scan` of
            files has its targets and owners in it, and is never in memory as a whole.
        y : array-like of shape (n,)
            Targets; NaN marks an unlabelled row. With ``engine="dask"``, X is a dask data frame and y a dask series.
        agents : array-like of shape (n,), default=None
            Who owns each row. Left out, rows are split at random over ``n_agents``.
        """
        where = self.component("engine")
        self._random_state = drawn_state(self.random_state)
        if where.takes_dask_frames:
            return self._fit_frames(where, X, y, agents)
        if is_lazy(X):
            raise ValueError(f'X is a dask data frame: train with {type(self).__name__}(engine="dask")')
        watch = Stopwatch()
        with watch.stage("reading"):
            settings, shards = self._scanned(X, y, agents) if is_scan(X) else self._checked(X, y, agents)
        engine = where.engine(shards, watch.around(TASKS), settings.seed, gossip=settings.solver.gossips)
        return self._train_over(engine, settings, list(shards), watch)

    def _fit_frames(self, where: Dask, X: Any, y: Any, agents: Any) -> Self:
        if agents is not None:
            raise ValueError('agents does not go with engine="dask", whose partitions are the agents: leave it out')
        shards = lazy_shards(X, y, checked_count(self.n_agents))
        with lazy_engine(shards, where.client, where.policy) as engine:
            return self.fit_over(lambda settings: engine, [str(name) for name in X.columns], str(y.name or "y"))

    def fit_over(
        self,
        make_engine: Callable[[Settings], Engine],
        feature_names: Sequence[str],
        target_name: str = "y",
    ) -> Self:
        """Train over an engine whose agents hold their rows already: files, or processes on other machines.

        Parameters
        ----------
        make_engine : callable
            Makes the engine, given the settings of the training.
        feature_names : sequence of str
            Names of the features.
        target_name : str, default="y"
            Name of the target.
        """
        self._random_state, self._owners_given = drawn_state(self.random_state), True
        settings = self._settings(training_seed(self._random_state))
        self._take_names(feature_names, target_name)
        engine = make_engine(settings)
        return self._train_over(engine, settings, list(engine.agents), Stopwatch())

    def _train_over(self, engine: Engine, settings: Settings, agents: list[str], watch: Stopwatch) -> Self:
        policy = self.component("engine").policy
        if policy is not None:
            policy.check_columns(self._feature_names())
        try:
            training = self._train(engine, settings)
        except ScarceValuesError as error:
            raise ScarceValuesError(error.columns, error.counts, self._feature_names()) from None
        self.fit_report_ = watch.report(training.n_samples + training.n_duplicates)
        self.ledger_ = engine.ledger
        self.agents_ = agents
        self.present_ = list(engine.present)
        self._keep(training, settings)
        missing = [name for name in self.agents_ if name not in self.present_]
        for category, message in training_warnings(training, settings, engine.n_agents, missing):
            warnings.warn(message, category, stacklevel=3)
        return self

    def _train(self, engine: Engine, settings: Settings) -> Training:
        return train(engine, settings, self.on_round)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on the labelled rows; rows with a NaN target do not count."""
        y = column_or_1d(as_targets(y))
        check_consistent_length(X, y, sample_weight)
        labeled = ~np.isnan(y)
        if not labeled.any():
            raise ValueError("score needs labelled rows: every target in y is NaN")
        weight = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        predictions = np.asarray(self.predict(X))[labeled]
        unit = unit_of(y[labeled])
        return float(r2_score(y[labeled] / unit, in_units(predictions, unit), sample_weight=weight))

    def explain(self, X: Any = None, *, all_models: bool = False) -> Explanation | Card:
        """The rules of the model in words and in the data's units; see `Model.explain`."""
        check_is_fitted(self, "model_")
        return self.model_.explain(X, all_models=all_models)

    def explain_prediction(self, row: Any) -> PredictionExplanation:
        """One prediction taken apart by rules and features; see `Model.explain_prediction`."""
        check_is_fitted(self, "model_")
        return self.model_.explain_prediction(row)

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _settings(self, seed: int) -> Settings:
        raise NotImplementedError

    def _checked(self, X: Any, y: Any, agents: Any) -> tuple[Settings, dict[str, Shard]]:
        """Settings and shards from arrays."""
        X, y = self._check_training_data(X, y)
        seed, self._owners_given = training_seed(self._random_state), agents is not None
        settings = self._settings(seed)
        owners = self._owners(agents, len(y), seed)
        return settings, make_shards(with_dtype(X, dtype_of(self.precision)), y, owners)

    def _scanned(self, rows: Any, y: Any, agents: Any) -> tuple[Settings, dict[str, Shard]]:
        """Settings and shards from files."""
        if y is not None or agents is not None:
            raise ValueError("a scan has its targets and owners in its columns: leave out y and agents")
        settings = self._settings(training_seed(self._random_state))
        n_agents = checked_count(self.n_agents)
        if rows.agent_column is not None and n_agents > 1:
            raise ValueError(f"n_agents={n_agents} but the scan has an agent column: leave out one or the other")
        self._take_names(rows.feature_names, rows.target_name)
        self._owners_given = rows.agent_column is not None
        return settings, rows.shards(n_agents, settings.seed, dtype_of(self.precision))

    def _take_names(self, feature_names: Sequence[str], target_name: str) -> None:
        """Names of the columns where there is no table to take them from."""
        self.n_features_in_, self._target_name = len(feature_names), target_name
        self.feature_names_in_ = np.asarray(feature_names, dtype=object)

    def _check_training_data(self, X: Any, y: Any) -> tuple[Array, Array]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "unlabelled rows have NaN there"
            )
        self._target_name = str(getattr(y, "name", None) or "y")
        check_numbers(X)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1)
        y = column_or_1d(as_targets(y), warn=True)
        check_consistent_length(X, y)
        check_finite(X, self._feature_names())
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity: targets must be finite, or NaN where a row is unlabelled")
        return X, y

    def _feature_names(self) -> tuple[str, ...]:
        default = [f"x{j}" for j in range(self.n_features_in_)]
        return tuple(map(str, getattr(self, "feature_names_in_", default)))

    def _owners(self, agents: Any, n_rows: int, seed: int) -> npt.NDArray[Any]:
        if agents is None:
            return split_rows(n_rows, checked_count(self.n_agents), seed)
        owners: npt.NDArray[Any] = np.asarray(agents)
        if owners.ndim != 1:
            raise ValueError(f"agents has {owners.ndim} dimensions; it must be a 1d array, one owner per row")
        if len(owners) != n_rows:
            raise ValueError(f"agents has {len(owners)} entries for {n_rows} rows: give the owner of every row")
        if any(map(is_missing, owners.tolist())):
            raise ValueError("agents contains missing values: every row must have an owner")
        n_owners = len(np.unique(owners.astype(str)))
        if self.n_agents not in (1, n_owners):
            raise ValueError(
                f"n_agents={self.n_agents} but agents names {n_owners} owners: leave n_agents out when agents is given"
            )
        return owners

    def _keep(self, training: Training, settings: Settings) -> None:
        self.history_ = training.history
        self.termination_ = training.termination
        self.n_duplicates_ = training.n_duplicates
        self.n_rounds_ = self.ledger_.rounds
        self.model_ = self._model(training.mixture, training, settings)
        for name in ("agent_models_", "tuned_", "models_"):
            self.__dict__.pop(name, None)
        if training.models:
            self.models_ = [dict(model) for model in training.models]
        if settings.tune is not None:
            self.tuned_ = _tuned(training, settings)
        if training.copies:
            copies = training.copies.items()
            density = training.mixture.density
            mixtures = {name: replace(Mixture.of(copy), density=density) for name, copy in copies}
            self.agent_models_ = {name: self._model(own, training, settings) for name, own in mixtures.items()}

    def _model(self, mixture: Mixture, training: Training, settings: Settings) -> Model:
        tuned = {"tuned": _tuned(training, settings)} if settings.tune else {}
        models = {"models": [dict(model) for model in training.models]} if training.models else {}
        return Model(
            mixture=mixture,
            feature_names=self._feature_names(),
            target_name=self._target_name,
            settings=self.stored_parameters(self._random_state),
            training={
                "n_samples": training.n_samples,
                "n_labeled": training.n_labeled,
                "n_agents": len(self.agents_),
                "owners_given": self._owners_given,
                "rounds": self.ledger_.rounds,
                "bytes": self.ledger_.bytes,
                "termination": training.termination,
                **tuned,
                **({"cluster_scales": list(training.cluster_scales)} if training.cluster_scales else {}),
                **models,
                **record(training.history, self.ledger_),
            },
        )


def _tuned(training: Training, settings: Settings) -> dict[str, float]:
    """What tuning has chosen: the ridge, and the weight of the penalty on unlabelled rows if there is one."""
    tuned, has_penalty = training.tuned, settings.unlabeled is not None
    if tuned is None:
        weight, ridge = settings.penalty.strength, settings.ridge_value
    else:
        weight, ridge = tuned.unlabeled_weight, tuned.ridge
    chosen = {"ridge": ridge} | ({"unlabeled_weight": weight} if has_penalty else {})
    if tuned is None:
        return chosen
    return chosen | {"noise": tuned.noise * training.predictor.target_scale, "log_evidence": tuned.log_evidence}
