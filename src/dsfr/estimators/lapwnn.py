"""The paper's baseline."""

from __future__ import annotations

from typing import Any

from dsfr.engines import Faults
from dsfr.estimators.base import DistributedRegressor
from dsfr.estimators.parameters import settings_of
from dsfr.training import Settings


class LapWNNRegressor(DistributedRegressor):
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
    tune : {"evidence", None}, default=None
        "evidence" chooses ridge and smoothness by the marginal likelihood of the labels.
    graph : {"neighbors", "full"}, default="neighbors"
        Sparse nearest neighbours, or the full kernel.
    n_neighbors : int, default=10
        Neighbours of a row in the sparse graph; rows as near as the last of them are neighbours too.
    n_agents, solver, rounds, acceleration, relaxation, penalty, tol, max_rounds, feature_ranges, engine, topology, \
    faults, min_agents, on_round, random_state
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
        tune: str | None = None,
        graph: str = "neighbors",
        n_neighbors: int = 10,
        n_agents: int = 1,
        solver: str = "admm",
        rounds: str = "many",
        acceleration: str | None = "conjugate",
        relaxation: float = 1.0,
        penalty: float | str | None = None,
        tol: float = 1e-4,
        max_rounds: int = 10_000,
        feature_ranges: Any = None,
        engine: str = "inprocess",
        topology: Any = None,
        faults: Faults | None = None,
        min_agents: int = 1,
        precision: str = "double",
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_nodes = n_nodes
        self.smoothness = smoothness
        self.ridge = ridge
        self.tune = tune
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
        self.engine = engine
        self.topology = topology
        self.faults = faults
        self.min_agents = min_agents
        self.precision = precision
        self.on_round = on_round
        self.random_state = random_state

    def _settings(self, seed: int) -> Settings:
        return settings_of(self, "wavelets", seed, unlabeled="graph")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Products of random wavelets vanish on most of the cube as features grow in number.
        tags.regressor_tags.poor_score = True
        return tags
