"""The paper's own method and its variants."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from dsfr.core.explain.card import Card
from dsfr.estimators.base import DistributedRegressor
from dsfr.estimators.engines import EngineChoice
from dsfr.estimators.paper_preset import with_paper_parameters
from dsfr.model.explanation import Explanation
from dsfr.training import FuzzyRules, Settings
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.scaling.scalings import Scaling
from dsfr.training.solvers import Solver


class SFRRegressor(DistributedRegressor):
    """Semi-supervised fuzzy regression, centralised or distributed.

    Rows are clustered by fuzzy c-means, every cluster becomes an if-then rule with a linear consequent, and the
    consequents minimise

    ``1/2 |y - Hw|^2 + c/2 w'Pw + ridge/2 |w|^2``

    over labelled rows, where ``P`` penalises what the model does on unlabelled rows: bending between two of them
    (``unlabeled="icr"``) or changing between neighbours (``"graph"``); ``c`` is the weight of that penalty.

    Parameters
    ----------
    n_rules : int, default=5
        Number of clusters and rules. More than ten of them, with at most two rows each, are a warning.
    rules : FuzzyRules or "gaussian", default="gaussian"
        How rules are made of clusters: fuzzifier, widths, firing; see `FuzzyRules`.
    unlabeled : ICR, Graph, {"icr", "graph"} or None, default="icr"
        Penalty on unlabelled rows: interpolation consistency (the paper's SFR-ICR, see `ICR`), graph Laplacian (SFR-G,
        see `Graph`), or none (s-SFR; with all rows labelled: FR).
    ridge : float, default=None
        Weight of the squared norm of the weights (mu), for targets of deviation 1. None: 0.1, or what ``tune`` chooses.
    tune : {"evidence", "loo", None}, default=None
        "evidence" chooses ``ridge`` and the weight of the penalty by the marginal likelihood of the labels, from the
        summed statistics alone: no label is held out. "loo" chooses them by leave-one-out errors, in two more rounds. A
        ridge or weight that is given as a number is then refused. Duplicate rows count once, see ``n_duplicates_``.
        ``tuned_`` has what was chosen.
    scaling : RangeScaling, RobustScaling or {"range", "robust"}, default="range"
        Features from their lowest to their highest value become -1 to 1 (`RangeScaling`, which also takes declared
        ranges), or limits from quantiles and standard deviations for tables with odd rows (`RobustScaling`).
    uncertainty : bool, default=False
        Keep what `predict` needs for ``return_std`` and `predict_interval`: the posterior of the weights, and counts of
        leave-one-out errors (three more rounds, or up to ten where one error is far larger than others).
    n_agents : int, default=1
        Number of agents to split the rows over when ``fit`` is not given the owners; 1 is the centralised method.
    solver : Sums, Conjugate, ADMM, FewRounds, PrivateSums, Decentralized or a shorthand, default="auto"
        How several agents agree on clusters and weights. "sums": exact sums, see `Sums`. "conjugate": gradients and
        conjugate residuals, see `Conjugate`. "admm": the paper's DFCM and DICR, see `ADMM`. "few-rounds": six rounds
        in all, see `FewRounds`. "decentralized": messages between neighbors only, see `Decentralized`. "auto":
        "conjugate", or "sums" where ``tune`` or ``uncertainty`` need summed statistics. A single agent always uses
        sums. Tolerance and number of rounds are arguments of the solver.
    engine : InProcess, Dask or {"in-process", "dask"}, default="in-process"
        Where agents are: in this process, perhaps linked by a graph (`InProcess`), or on a dask cluster (`Dask`).
    precision : {"double", "single"}, default="double"
        Precision in which features are kept. Single halves the memory and is faster from 100,000 rows on; centers then
        are off by about 1e-6 of a feature's range, plus 6e-8 of the size of its values.
    on_round : callable, default=None
        Called with a `RoundInfo` after every round.
    random_state : int, RandomState instance or None, default=None
        Seed of start centers, pairs and random splits.

    Attributes
    ----------
    model_ : Model
        The trained model: `predict`, `explain`, `save`.
    rules_ : Explanation
        The rules in words and in the data's units, a tuple of `Rule`; printing shows sentences, ``to_frame()`` gives a
        table.
    n_rounds_ : int
        Rounds of communication, of all tasks.
    history_ : list of RoundInfo
        Objective, residuals and error bound of every round.
    ledger_ : Ledger
        Rounds, messages and bytes per task.
    termination_ : {"converged", "max_rounds", "fixed_rounds", "paper_tests"}
        Whether both stages reached ``tol``; the last two are of solvers that do not measure it, `FewRounds` and
        ``ADMM(stopping="paper")``.
    tuned_ : dict of str to float
        With ``tune``: the chosen ``ridge``, ``unlabeled_weight``, ``noise`` (standard deviation, in the target's units)
        and ``log_evidence``; the usual values if the labels do not vary. Of several models, those of the strongest.
    agents_ : list of str
        Names of the agents.
    present_ : list of str
        Names of the agents that took part in the last round; ``ledger_.agents`` has the rounds of each.
    sums_ : LabelSums or None
        Sums over the labels, to which `update` adds more; None if the solver does not collect them. With fewer labels
        than weights they nearly give the labelled rows away.
    agent_models_ : dict of str to Model
        Every agent's own copy of the model, if ``solver="decentralized"``; all are equal to ``model_``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if ``X`` had any.

    Examples
    --------
    >>> import numpy as np
    >>> from dsfr import ICR, SFRRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (300, 1))
    >>> y = np.sin(X[:, 0])
    >>> y[40:] = np.nan  # 40 labelled rows, 260 unlabelled
    >>> model = SFRRegressor(n_agents=3, unlabeled=ICR(weight=1e-3), ridge=1e-2, random_state=0).fit(X, y)
    >>> model.termination_
    'converged'
    >>> round(model.score(X, np.sin(X[:, 0])), 1)
    1.0
    """

    def __init__(
        self,
        n_rules: int = 5,
        *,
        rules: str | FuzzyRules = "gaussian",
        unlabeled: str | UnlabeledPenalty | None = "icr",
        ridge: float | None = None,
        tune: str | None = None,
        scaling: str | Scaling = "range",
        uncertainty: bool = False,
        n_agents: int = 1,
        solver: str | Solver = "auto",
        engine: str | EngineChoice = "in-process",
        precision: str = "double",
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_rules = n_rules
        self.rules = rules
        self.unlabeled = unlabeled
        self.ridge = ridge
        self.tune = tune
        self.scaling = scaling
        self.uncertainty = uncertainty
        self.n_agents = n_agents
        self.solver = solver
        self.engine = engine
        self.precision = precision
        self.on_round = on_round
        self.random_state = random_state

    @classmethod
    def paper(cls, **arguments: Any) -> Self:
        """The paper's method to the letter; see docs/theory.md for what sets it apart from the default.

        Parameters
        ----------
        **arguments
            Parameters, which win over the paper's; those of components by names such as ``solver__max_rounds``. A
            component that is given as a whole replaces the paper's.

        Examples
        --------
        >>> SFRRegressor.paper(n_agents=5, solver__max_rounds=100).solver
        ADMM(max_rounds=100, penalty=0.1, cluster_penalty=0.1, acceleration=None, refresh_pairs=True, stopping='paper')
        """
        made: Self = with_paper_parameters(cls, "icr", True, arguments)
        return made

    def _settings(self, seed: int) -> Settings:
        return self.settings(seed)

    @property
    def rules_(self) -> Explanation | Card:
        """The rules in the data's units, put into words when asked for."""
        check_is_fitted(self, "model_")
        return self.model_.explain()
