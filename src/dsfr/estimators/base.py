"""What all estimators share: rows go to agents, a protocol trains, a model predicts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from dsfr.core.arrays import Array, with_dtype
from dsfr.core.prediction.errors import in_units, unit_of
from dsfr.core.prediction.mixture import Mixture
from dsfr.engines import Engine
from dsfr.estimators.checks import TEXT_REMEDY, as_targets, check_finite, check_text, checked_count, dtype_of, is_scan
from dsfr.estimators.engines import Dask
from dsfr.estimators.label_weights import relative_weights, weighted_labels
from dsfr.estimators.model_reading import ModelReading
from dsfr.estimators.notebook import NotebookMixin
from dsfr.estimators.owners import checked_owners
from dsfr.estimators.parameters import drawn_state, training_seed
from dsfr.estimators.predictions import Predictions
from dsfr.estimators.training_warnings import training_warnings
from dsfr.estimators.tuning_record import tuning_record
from dsfr.estimators.updates import LabelUpdates
from dsfr.io.dask_frames import is_lazy, lazy_engine, lazy_shards, mean_weight
from dsfr.model.frames import as_frame, encode_frame, frame_schema, has_numbers_only, is_frame
from dsfr.model.model import Model
from dsfr.model.record import record
from dsfr.model.schema import Schema
from dsfr.training import TASKS, Settings, Training, make_shards, train
from dsfr.training.completion import ScarceValuesError
from dsfr.training.fit_report import FitReport, Stopwatch
from dsfr.training.shard import Shard


class DistributedRegressor(NotebookMixin, RegressorMixin, Predictions, ModelReading, LabelUpdates):
    """A regressor whose rows may belong to several agents."""

    fit_report_: FitReport

    def fit(self, X: Any, y: Any = None, agents: Any = None, sample_weight: Any = None) -> Self:
        """Train on labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d), or Scan
            Features of all rows; NaN marks a missing value. Column names of a data frame are kept, and its columns of
            text, categories and booleans become one 0/1 feature for each level. A `dsfr.scan` of files has its targets
            and owners in it, and is never in memory as a whole.
        y : array-like of shape (n,)
            Targets; NaN marks an unlabelled row. With ``engine="dask"``, X is a dask data frame and y a dask series.
        agents : array-like of shape (n,), default=None
            Who owns each row. Left out, rows are split at random over ``n_agents``.
        sample_weight : array-like of shape (n,), default=None
            How often the label of each row counts; a label of weight 0 is none. Rows without a label need a number
            that is not used: clusters and penalties count every row once. Where labels choose (``tune``,
            ``uncertainty``), weights are relative: they are divided by their mean. With ``engine="dask"``, a dask
            series.
        """
        where = self.component("engine")
        self._random_state = drawn_state(self.random_state)
        if where.takes_dask_frames:
            return self._fit_frames(where, X, y, agents, sample_weight)
        if is_lazy(X):
            raise ValueError(f'X is a dask data frame: train with {type(self).__name__}(engine="dask")')
        watch = Stopwatch()
        with watch.stage("reading"):
            read = self._scanned if is_scan(X) else self._checked
            settings, shards = read(X, y, agents, sample_weight)
        engine = where.engine(shards, watch.around(TASKS), settings.seed, gossip=settings.solver.gossips)
        return self._train_over(engine, settings, list(shards), watch)

    def _fit_frames(self, where: Dask, X: Any, y: Any, agents: Any, sample_weight: Any) -> Self:
        if agents is not None:
            raise ValueError('agents does not go with engine="dask", whose partitions are the agents: leave it out')
        unit = 1.0
        if sample_weight is not None and self._settings(0).takes_relative_weights:
            unit = mean_weight(y, sample_weight, where.client)
            sample_weight = sample_weight / unit
        schema, shards = lazy_shards(X, y, checked_count(self.n_agents), sample_weight)
        with lazy_engine(shards, where.client, where.policy, masked=where.masks) as engine:
            self.fit_over(lambda settings: engine, schema, str(y.name or "y"))
        self._weight_unit = unit
        return self

    def fit_over(
        self,
        make_engine: Callable[[Settings], Engine],
        feature_names: Sequence[str] | Schema,
        target_name: str = "y",
    ) -> Self:
        """Train over an engine whose agents hold their rows already: files, or processes on other machines.

        Parameters
        ----------
        make_engine : callable
            Makes the engine, given the settings of the training.
        feature_names : sequence of str, or Schema
            Names of the features; or the columns, with the levels of categories that all agents have agreed on.
        target_name : str, default="y"
            Name of the target.
        """
        self._random_state, self._owners_given, self._weight_unit = drawn_state(self.random_state), True, 1.0
        settings = self._settings(training_seed(self._random_state))
        self._take_schema(feature_names, target_name)
        engine = make_engine(settings)
        return self._train_over(engine, settings, list(engine.agents), Stopwatch())

    def _train_over(self, engine: Engine, settings: Settings, agents: list[str], watch: Stopwatch) -> Self:
        policy = self.component("engine").policy
        if policy is not None:
            policy.check_columns(self._schema.names)
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
        """R^2 on the labelled rows; rows with a NaN target or a weight of 0 do not count."""
        check_consistent_length(X, y, sample_weight)
        y, weights = weighted_labels(column_or_1d(as_targets(y)), sample_weight)
        labeled = ~np.isnan(y)
        if labeled.sum() < 2:
            raise ValueError(
                f"score needs at least two labelled rows, got {labeled.sum()} of {len(y)}: in cross-validation take "
                "cv=dsfr.LabeledKFold(), which has labelled rows in every test fold"
            )
        weight = None if weights is None else weights[labeled]
        predictions = np.asarray(self.predict(X))[labeled]
        unit = unit_of(y[labeled])
        return float(r2_score(y[labeled] / unit, in_units(predictions, unit), sample_weight=weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _settings(self, seed: int) -> Settings:
        raise NotImplementedError

    def _checked(self, X: Any, y: Any, agents: Any, sample_weight: Any) -> tuple[Settings, dict[str, Shard]]:
        """Settings and shards from arrays."""
        X, y = self._check_training_data(X, y)
        y, weights = weighted_labels(y, sample_weight)
        seed, self._owners_given = training_seed(self._random_state), agents is not None
        settings = self._settings(seed)
        relative = relative_weights(y, weights) if settings.takes_relative_weights else (weights, 1.0)
        weights, self._weight_unit = relative
        owners = checked_owners(agents, len(y), self.n_agents, seed)
        return settings, make_shards(with_dtype(X, dtype_of(self.precision)), y, owners, weights)

    def _scanned(self, rows: Any, y: Any, agents: Any, sample_weight: Any) -> tuple[Settings, dict[str, Shard]]:
        """Settings and shards from files."""
        if sample_weight is not None:
            raise ValueError("sample_weight does not go with a scan, whose rows are in files: give X and y as arrays")
        if y is not None or agents is not None:
            raise ValueError("a scan has its targets and owners in its columns: leave out y and agents")
        settings = self._settings(training_seed(self._random_state))
        n_agents = checked_count(self.n_agents)
        if rows.agent_column is not None and n_agents > 1:
            raise ValueError(f"n_agents={n_agents} but the scan has an agent column: leave out one or the other")
        self._take_schema(rows.schema, rows.target_name)
        self._owners_given, self._weight_unit = rows.agent_column is not None, 1.0
        return settings, rows.shards(n_agents, settings.seed, dtype_of(self.precision))

    def _take_schema(self, columns: Sequence[str] | Schema, target_name: str) -> None:
        """The columns where there is no table to take them from."""
        self._schema = columns if isinstance(columns, Schema) else Schema.of(columns)
        self.n_features_in_, self._target_name = len(self._schema.names), target_name
        self.feature_names_in_ = np.asarray(self._schema.names, dtype=object)

    def _check_training_data(self, X: Any, y: Any) -> tuple[Array, Array]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "unlabelled rows have NaN there"
            )
        self._target_name = str(getattr(y, "name", None) or "y")
        X = self._check_features(X)
        y = column_or_1d(as_targets(y), warn=True)
        check_consistent_length(X, y)
        check_finite(X, self._feature_names())
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity: targets must be finite, or NaN where a row is unlabelled")
        return X, y

    def _check_features(self, X: Any) -> Array:
        """Rows as numbers, and the columns they come from."""
        X = as_frame(X)
        schema = frame_schema(X) if is_frame(X) and len(X) else None
        if schema is not None and not (len(schema.columns) == X.shape[1] and has_numbers_only(X)):
            validate_data(self, X, skip_check_array=True)
            self._schema = schema
            return encode_frame(X, schema)
        check_text(X, "X", TEXT_REMEDY)
        rows: Array = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1)
        default = [f"x{j}" for j in range(self.n_features_in_)]
        self._schema = Schema.of(map(str, getattr(self, "feature_names_in_", default)))
        return rows

    def _feature_names(self) -> tuple[str, ...]:
        return self._schema.feature_names

    def _keep(self, training: Training, settings: Settings) -> None:
        self.history_ = training.history
        self.termination_ = training.termination
        self.n_duplicates_ = training.n_duplicates
        self.sums_ = training.sums
        self.n_rounds_ = self.ledger_.rounds
        self.model_ = self._model(training.mixture, training, settings)
        for name in ("agent_models_", "tuned_", "models_"):
            self.__dict__.pop(name, None)
        if training.models:
            self.models_ = [dict(model) for model in training.models]
        if settings.tune is not None:
            self.tuned_ = tuning_record(training, settings)
        if training.copies:
            copies = training.copies.items()
            link, density = training.mixture.link, training.mixture.density
            self.agent_models_ = {
                name: self._model(replace(Mixture.of(copy), link=link, density=density), training, settings)
                for name, copy in copies
            }

    def _model(self, mixture: Mixture, training: Training, settings: Settings) -> Model:
        tuned = {"tuned": tuning_record(training, settings)} if settings.tune else {}
        models = {"models": [dict(model) for model in training.models]} if training.models else {}
        return Model(
            mixture=mixture,
            feature_names=self._feature_names(),
            target_name=self._target_name,
            schema=self._schema if self._schema.has_categories else None,
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
                **({} if training.n_target_values is None else {"n_target_values": training.n_target_values}),
                **({"cluster_scales": list(training.cluster_scales)} if training.cluster_scales else {}),
                **models,
                **record(training.history, self.ledger_),
            },
        )
