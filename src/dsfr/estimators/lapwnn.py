"""The paper's baseline."""

from __future__ import annotations

from typing import Any, Self

from dsfr.estimators.base import DistributedRegressor
from dsfr.estimators.engines import EngineChoice
from dsfr.estimators.paper_preset import with_paper_parameters
from dsfr.training import Settings
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.scaling.scalings import Scaling
from dsfr.training.solvers import Solver


class LapWNNRegressor(DistributedRegressor):
    """Laplacian wavelet neural network (Xie et al. 2019), the paper's baseline, centralised or distributed.

    Random wavelet nodes, output weights by ridge regression with a graph Laplacian penalty on all rows; the same
    solvers as `SFRRegressor`.

    Parameters
    ----------
    n_nodes : int, default=100
        Number of hidden wavelets.
    unlabeled : Graph, ICR, {"graph", "icr"} or None, default="graph"
        Penalty on unlabelled rows.
    ridge : float, default=None
        Weight of the squared norm of the weights (mu), for targets of deviation 1. None: 0.1, or what ``tune`` chooses.
    tune : {"evidence", "loo", None}, default=None
        How to choose ridge and weight of the penalty from the labels.
    scaling, n_agents, solver, engine, precision, on_round, random_state
        As in `SFRRegressor`; ``scaling`` cannot be "robust".

    Attributes
    ----------
    model_, n_rounds_, history_, ledger_, termination_, agents_, n_features_in_, feature_names_in_
        As in `SFRRegressor`.
    """

    def __init__(
        self,
        n_nodes: int = 100,
        *,
        unlabeled: str | UnlabeledPenalty | None = "graph",
        ridge: float | None = None,
        tune: str | None = None,
        scaling: str | Scaling = "range",
        n_agents: int = 1,
        solver: str | Solver = "auto",
        engine: str | EngineChoice = "in-process",
        precision: str = "double",
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_nodes = n_nodes
        self.unlabeled = unlabeled
        self.ridge = ridge
        self.tune = tune
        self.scaling = scaling
        self.n_agents = n_agents
        self.solver = solver
        self.engine = engine
        self.precision = precision
        self.on_round = on_round
        self.random_state = random_state

    @classmethod
    def paper(cls, **arguments: Any) -> Self:
        """The paper's baseline to the letter; arguments win, as in `SFRRegressor.paper`."""
        made: Self = with_paper_parameters(cls, "graph", False, arguments)
        return made

    def _settings(self, seed: int) -> Settings:
        return self.settings(seed, basis="wavelets")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Products of random wavelets vanish on most of the cube as features grow in number.
        tags.regressor_tags.poor_score = True
        return tags
