"""scikit-learn estimators: thin shells around the training protocol."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from dsfr.core.arrays import Array
from dsfr.core.explain import Rule
from dsfr.datasets import split_evenly
from dsfr.engines import InProcessEngine
from dsfr.model import Model
from dsfr.protocol import TASKS, Settings, Training, make_shards, train
from dsfr.protocol.shard import Purpose


class _DistributedRegressor(RegressorMixin, BaseEstimator):
    """What all methods share: rows go to agents, a protocol trains, a model predicts."""

    def fit(self, X: Any, y: Any, agents: Any = None) -> Self:
        """Train on labelled and unlabelled rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features of all rows. Column names of a data frame are kept.
        y : array-like of shape (n,)
            Targets; NaN marks an unlabelled row.
        agents : array-like of shape (n,), default=None
            Who owns each row. Left out, rows are split at random over ``n_agents``.
        """
        X, y = self._check_training_data(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        settings = self._settings(seed)
        shards = make_shards(X, y, self._owners(agents, len(y), seed))
        engine = InProcessEngine(list(shards.values()), TASKS)
        training = train(engine, settings, self.on_round)
        self.ledger_ = engine.ledger
        self.agents_ = list(shards)
        self._keep(training, settings)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions in the target's units; shape (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        _check_finite(X, self.model_.feature_names)
        predictions: Array = self.model_.predictor.predict(X)
        return predictions

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 on the labelled rows; rows with a NaN target do not count."""
        y = column_or_1d(_as_targets(y))
        labeled = ~np.isnan(y)
        if not labeled.any():
            raise ValueError("score needs labelled rows: every target in y is NaN")
        weight = None if sample_weight is None else np.asarray(sample_weight)[labeled]
        predictions = np.asarray(self.predict(X))[labeled]
        return float(r2_score(y[labeled], predictions, sample_weight=weight))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the fitted model into one file that `dsfr.load` reads."""
        check_is_fitted(self)
        return self.model_.save(path)

    def _settings(self, seed: int) -> Settings:
        raise NotImplementedError

    def _check_training_data(self, X: Any, y: Any) -> tuple[Array, Array]:
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; "
                "unlabelled rows have NaN there"
            )
        self._target_name = str(getattr(y, "name", None) or "y")
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=1)
        y = column_or_1d(_as_targets(y), warn=True)
        check_consistent_length(X, y)
        _check_finite(X, self._feature_names())
        if np.isinf(y).any():
            raise ValueError("Input y contains infinity: targets must be finite, or NaN where a row is unlabelled")
        return X, y

    def _feature_names(self) -> tuple[str, ...]:
        default = [f"x{j}" for j in range(self.n_features_in_)]
        return tuple(map(str, getattr(self, "feature_names_in_", default)))

    def _owners(self, agents: Any, n_rows: int, seed: int) -> npt.NDArray[Any]:
        if agents is None:
            rng = np.random.default_rng([seed, 0, Purpose.SPLIT])
            return split_evenly(n_rows, _checked_count(self.n_agents), rng)
        owners: npt.NDArray[Any] = np.asarray(agents)
        if owners.ndim != 1:
            raise ValueError(f"agents has {owners.ndim} dimensions; it must be a 1d array, one owner per row")
        if len(owners) != n_rows:
            raise ValueError(f"agents has {len(owners)} entries for {n_rows} rows: give the owner of every row")
        if any(owner is None or owner != owner for owner in owners.tolist()):
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
        self.n_rounds_ = self.ledger_.rounds
        self.model_ = Model(
            predictor=training.predictor,
            feature_names=self._feature_names(),
            target_name=self._target_name,
            settings=asdict(settings),
            training={
                "n_samples": training.n_samples,
                "n_labeled": training.n_labeled,
                "n_agents": len(self.agents_),
                "rounds": self.ledger_.rounds,
                "bytes": self.ledger_.bytes,
                "termination": training.termination,
            },
        )
        for stage in training.unconverged:
            last = next(info for info in reversed(training.history) if info.stage == stage)
            warnings.warn(_not_converged(stage, last.error_bound, settings), ConvergenceWarning, stacklevel=3)


class SFRRegressor(_DistributedRegressor):
    """Semi-supervised fuzzy regression, centralised or distributed.

    Rows are clustered by fuzzy c-means, every cluster becomes an if-then rule with a linear consequent, and the
    consequents minimise

    ``1/2 |y - Hw|^2 + c/2 w'Pw + ridge/2 |w|^2``

    over labelled rows, where ``P`` penalises what the model does on unlabelled rows: bending between two of them
    (``unlabeled="icr"``, with ``c = consistency``) or changing between neighbours (``"graph"``, ``c = smoothness``).

    Parameters
    ----------
    n_rules : int, default=5
        Number of clusters and rules.
    unlabeled : {"icr", "graph", None}, default="icr"
        Penalty on unlabelled rows: interpolation consistency (the paper's SFR-ICR), graph Laplacian (SFR-G), or none
        (s-SFR; with all rows labelled: FR).
    consistency : float, default=0.1
        Weight of the interpolation consistency (gamma in the paper).
    smoothness : float, default=1e-4
        Weight of the graph Laplacian (eta).
    ridge : float, default=0.1
        Weight of the squared norm of the weights (mu), for targets of deviation 1.
    fuzzifier : float, default=1.1
        Fuzziness of the clusters (alpha), > 1.
    width_scale : float, default=1.0
        Factor on the widths of the fuzzy sets; sqrt(2) gives sets ``exp(-(x-m)^2 / (2 s^2))``.
    n_pairs : int, default=None
        Interpolated pairs per agent, used raw as in the paper. None: as many as the agent has unlabelled rows, at most
        10,000 and rescaled beyond.
    mix_concentration : float, default=0.75
        Mixing shares are drawn from Beta(mix_concentration, mix_concentration).
    n_agents : int, default=1
        Number of agents to split the rows over when ``fit`` is not told the owners; 1 is the centralised method.
    solver : {"admm", "exact"}, default="admm"
        How agents agree: by consensus ADMM as in the paper (DFCM and DICR), or by sums, which give the pooled solution
        exactly and in few rounds. A single agent always uses sums.
    rounds : {"many", "few"}, default="many"
        "few" trains in six rounds, for links where a round costs seconds: every agent clusters its own rows, the local
        centers (which the coordinator sees one by one) are merged and refined twice, and everything else is sums. The
        centers are then not fully converged; ``solver`` does not matter.
    width_pooling : {"exact", "paper"}, default="exact"
        Widths over agents: those of the pooled rows, or the paper's average of local variances.
    refresh_pairs : bool, default=False
        Draw new pairs in every ADMM round, as the paper's Algorithm 2 prints it. The target then moves, and the solve
        runs until ``max_rounds``.
    graph : {"neighbors", "full"}, default="neighbors"
        Graph of SFR-G: sparse nearest neighbours, or the paper's full kernel (time grows with the square of the rows).
    n_neighbors : int, default=10
        Neighbours of a row in the sparse graph.
    acceleration : {"anderson", None}, default="anderson"
        Anderson acceleration of both ADMM iterations, from sums over agents; None is the paper's plain iteration.
    relaxation : float, default=1.0
        Over-relaxation of the weights' ADMM, between 0 and 2; 1 is none.
    cluster_penalty : float, default=None
        ADMM penalty of the clustering (rho_s). None: the mean membership mass of a cluster at an agent, doubled
        whenever the agents stop getting closer. The paper uses 0.1.
    penalty : float, "balanced" or None, default=None
        ADMM penalty of the weights (rho_p). None: from the extreme curvatures of the agents' problems. "balanced": from
        there, doubled or halved when one residual is ten times the other. The paper uses 0.1.
    tol : float, default=1e-4
        Stop when centers have settled to ``tol``, and when the weights are provably within ``tol`` (relative) of the
        solution.
    max_rounds : int, default=10000
        Most rounds of clustering, and most rounds of solving.
    feature_ranges : array-like of shape (2, d), default=None
        Lowest and highest value of each feature, where these are known and should not be asked from agents.
    on_round : callable, default=None
        Called with a `RoundInfo` after every round.
    random_state : int, RandomState instance or None, default=None
        Seed of start centers, pairs and random splits.

    Attributes
    ----------
    model_ : Model
        The trained model: `predict`, `explain`, `save`.
    rules_ : tuple of Rule
        The rules in the data's units; printing one shows it as a sentence.
    n_rounds_ : int
        Rounds of communication, of all tasks.
    history_ : list of RoundInfo
        Objective, residuals and error bound of every round.
    ledger_ : Ledger
        Rounds, messages and bytes per task.
    termination_ : {"converged", "max_rounds"}
        Whether both stages reached ``tol``.
    agents_ : list of str
        Names of the agents.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if ``X`` had any.

    Examples
    --------
    >>> import numpy as np
    >>> from dsfr import SFRRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (300, 1))
    >>> y = np.sin(X[:, 0])
    >>> y[40:] = np.nan  # 40 labelled rows, 260 unlabelled
    >>> model = SFRRegressor(n_agents=3, consistency=1e-3, ridge=1e-2, random_state=0).fit(X, y)
    >>> model.termination_
    'converged'
    >>> round(model.score(X, np.sin(X[:, 0])), 1)
    1.0
    """

    rules_: tuple[Rule, ...]

    def __init__(
        self,
        n_rules: int = 5,
        *,
        unlabeled: str | None = "icr",
        consistency: float = 0.1,
        smoothness: float = 1e-4,
        ridge: float = 0.1,
        fuzzifier: float = 1.1,
        width_scale: float = 1.0,
        n_pairs: int | None = None,
        mix_concentration: float = 0.75,
        n_agents: int = 1,
        solver: str = "admm",
        rounds: str = "many",
        width_pooling: str = "exact",
        refresh_pairs: bool = False,
        graph: str = "neighbors",
        n_neighbors: int = 10,
        acceleration: str | None = "anderson",
        relaxation: float = 1.0,
        cluster_penalty: float | None = None,
        penalty: float | str | None = None,
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        feature_ranges: Any = None,
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_rules = n_rules
        self.unlabeled = unlabeled
        self.consistency = consistency
        self.smoothness = smoothness
        self.ridge = ridge
        self.fuzzifier = fuzzifier
        self.width_scale = width_scale
        self.n_pairs = n_pairs
        self.mix_concentration = mix_concentration
        self.n_agents = n_agents
        self.solver = solver
        self.rounds = rounds
        self.width_pooling = width_pooling
        self.refresh_pairs = refresh_pairs
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.acceleration = acceleration
        self.relaxation = relaxation
        self.cluster_penalty = cluster_penalty
        self.penalty = penalty
        self.tol = tol
        self.max_rounds = max_rounds
        self.feature_ranges = feature_ranges
        self.on_round = on_round
        self.random_state = random_state

    def _settings(self, seed: int) -> Settings:
        return _settings_of(self, "rules", seed)

    def _keep(self, training: Training, settings: Settings) -> None:
        super()._keep(training, settings)
        self.rules_ = self.model_.explain()


class LapWNNRegressor(_DistributedRegressor):
    """Laplacian wavelet neural network (Xie et al. 2019), the paper's baseline, centralised or distributed.

    Random wavelet nodes, output weights by ridge regression with a graph Laplacian penalty on all rows; the same
    solvers as `SFRRegressor`.

    Parameters
    ----------
    n_nodes : int, default=100
        Number of hidden wavelets.
    smoothness : float, default=1e-4
        Weight of the graph Laplacian (eta).
    ridge : float, default=0.1
        Weight of the squared norm of the weights (mu), for targets of deviation 1.
    graph : {"neighbors", "full"}, default="neighbors"
        Sparse nearest neighbours, or the full kernel.
    n_neighbors : int, default=10
        Neighbours of a row in the sparse graph.
    n_agents, solver, rounds, acceleration, relaxation, penalty, tol, max_rounds, feature_ranges, on_round, random_state
        As in `SFRRegressor`.

    Attributes
    ----------
    model_, n_rounds_, history_, ledger_, termination_, agents_, n_features_in_, feature_names_in_
        As in `SFRRegressor`.
    """

    def __init__(
        self,
        n_nodes: int = 100,
        *,
        smoothness: float = 1e-4,
        ridge: float = 0.1,
        graph: str = "neighbors",
        n_neighbors: int = 10,
        n_agents: int = 1,
        solver: str = "admm",
        rounds: str = "many",
        acceleration: str | None = "anderson",
        relaxation: float = 1.0,
        penalty: float | str | None = None,
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        feature_ranges: Any = None,
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_nodes = n_nodes
        self.smoothness = smoothness
        self.ridge = ridge
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.n_agents = n_agents
        self.solver = solver
        self.rounds = rounds
        self.acceleration = acceleration
        self.relaxation = relaxation
        self.penalty = penalty
        self.tol = tol
        self.max_rounds = max_rounds
        self.feature_ranges = feature_ranges
        self.on_round = on_round
        self.random_state = random_state

    def _settings(self, seed: int) -> Settings:
        return _settings_of(self, "wavelets", seed, unlabeled="graph")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Products of random wavelets vanish on most of the cube as features grow in number.
        tags.regressor_tags.poor_score = True
        return tags


_NOT_SETTINGS = frozenset({"n_agents", "on_round", "random_state", "feature_ranges"})


def _settings_of(estimator: _DistributedRegressor, basis: str, seed: int, **fixed: Any) -> Settings:
    told = {name: _plain(value) for name, value in estimator.get_params().items() if name not in _NOT_SETTINGS}
    ranges = estimator.feature_ranges
    if ranges is not None:
        bounds = check_array(ranges, dtype=np.float64, input_name="feature_ranges")
        if len(bounds) != 2:
            raise ValueError(f"feature_ranges has {len(bounds)} rows; it needs two: lowest and highest values")
        ranges = (tuple(bounds[0].tolist()), tuple(bounds[1].tolist()))
    return Settings(**told, **fixed, basis=basis, seed=seed, feature_ranges=ranges)


def _not_converged(stage: str, bound: float, settings: Settings) -> str:
    verdict = "The model is usable" if bound < 0.01 else "The model may be far from the solution"
    remedy = "raise max_rounds" if settings.sums_only else 'raise max_rounds or take solver="exact"'
    return (
        f"the {stage} did not reach tol={settings.tol:g} within max_rounds={settings.max_rounds} "
        f"(error bound {bound:.1e}). {verdict}; for a better one {remedy}."
    )


def _plain(value: Any) -> Any:
    """A number as Python has it: searches hand over numpy's, which JSON does not know."""
    return value.item() if isinstance(value, np.generic) else value


def _checked_count(n_agents: Any) -> int:
    if not isinstance(n_agents, (int, np.integer)) or isinstance(n_agents, bool) or n_agents < 1:
        raise ValueError(f"n_agents={n_agents!r} must be a whole number >= 1; 1 is the centralised method")
    return int(n_agents)


def _as_targets(y: Any) -> Array:
    targets: Array = check_array(
        y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y", ensure_min_samples=0
    )
    return targets


def _check_finite(X: Array, names: tuple[str, ...]) -> None:
    if np.isfinite(X).all():
        return
    kind = "NaN" if np.isnan(X).any() else "infinity"
    broken = ~np.isfinite(X)
    bad = [f"{names[j]} ({broken[:, j].sum()} of {len(X)} rows)" for j in np.flatnonzero(broken.any(axis=0))]
    raise ValueError(
        f"Input X contains {kind}, in {', '.join(bad)}. Drop these columns or rows, or fill the gaps first, "
        "for example with sklearn.impute.SimpleImputer in a Pipeline."
    )
