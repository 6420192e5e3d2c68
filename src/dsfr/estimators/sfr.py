"""The paper's own method and its variants."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from dsfr.engines import Faults
from dsfr.estimators.base import DistributedRegressor
from dsfr.estimators.parameters import settings_of
from dsfr.model.explanation import Explanation
from dsfr.training import Settings


class SFRRegressor(DistributedRegressor):
    """Semi-supervised fuzzy regression, centralised or distributed.

    Rows are clustered by fuzzy c-means, every cluster becomes an if-then rule with a linear consequent, and the
    consequents minimise

    ``1/2 |y - Hw|^2 + c/2 w'Pw + ridge/2 |w|^2``

    over labelled rows, where ``P`` penalises what the model does on unlabelled rows: bending between two of them
    (``unlabeled="icr"``, with ``c = consistency``) or changing between neighbours (``"graph"``, ``c = smoothness``).

    Parameters
    ----------
    n_rules : int, default=5
        Number of clusters and rules. More than ten of them, with at most two rows each, are a warning.
    unlabeled : {"icr", "graph", None}, default="icr"
        Penalty on unlabelled rows: interpolation consistency (the paper's SFR-ICR), graph Laplacian (SFR-G), or none
        (s-SFR; with all rows labelled: FR).
    consistency : float, default=0.1
        Weight of the interpolation consistency (gamma in the paper).
    smoothness : float, default=1e-4
        Weight of the graph Laplacian (eta).
    ridge : float, default=0.1
        Weight of the squared norm of the weights (mu), for targets of deviation 1.
    auto : bool, default=False
        Choose everything from the training data: ``scaling="robust"``, ``firing="mean"``, ``relevance="evidence"``,
        ``pairs="local"``, ``width_scale=1.5``, ``tune="evidence"``, ``n_models="auto"``, ``uncertainty=True``,
        ``solver="exact"`` and ``tol=1e-2`` (of the clusters), for each of these that is not given another value than
        its default. ``n_rules`` then is the smallest number of rules that is tried.
    tune : {"evidence", "loo", None}, default=None
        "evidence" chooses ``ridge`` and the weight of the penalty (``consistency`` or ``smoothness``) by the marginal
        likelihood of the labels, from the summed statistics alone: no label is held out, and the values given for these
        are not used. "loo" chooses them by leave-one-out errors, in two more rounds. The weights then come from sums,
        whatever the solver. Duplicate rows count once, see ``n_duplicates_``. ``tuned_`` has what was chosen.
    n_models : int, "auto" or None, default=None
        Number of rule bases whose predictions are averaged: of ``n_rules``, twice as many and so on, two of each, with
        different widths, kinds of pairs and seeds. Their shares follow the evidence (``tune="evidence"``, in units of
        its chance variation) or are stacked on leave-one-out predictions (``tune="loo"``). "auto" takes three numbers
        of rules, and more while they help; None is 1, or "auto" with ``auto=True``. `explain` shows the strongest.
    scaling : {"range", "robust"}, default="range"
        Features from their lowest to their highest value become -1 to 1; or "robust", for a few odd rows among many:
        units are standard deviations, features are cut off as far beyond the quantiles 1/n and 1 - 1/n (n labels:
        there, less than one label is expected) as these are apart, and targets at ``sqrt(n/2)`` interquartile ranges
        from the quartiles. Quantiles are found by counting, in five to thirteen more rounds (up to 26 if a value is
        1e12 times as far off as others).
    relevance : {"evidence", "slopes", None}, default=None
        "slopes" stretches features, before clustering, by how steep earlier models are along them; a single model is
        trained three times for that. "evidence" does so by how much labels speak for bends along each feature, in one
        more round (up to 149 features), and by slopes as well. With ``tune="evidence"`` lines of different rules then
        differ the less along a feature the less relevant it is. Every rule base is an ordinary one.
    firing : {"sum", "mean"}, default="sum"
        A rule fires by the sum of squared distances over features, or by their mean ("HTSK"), which keeps many features
        from leaving a single rule in charge.
    uncertainty : bool, default=False
        Keep what `predict` needs for ``return_std`` and `predict_interval`: the posterior of the weights, and counts of
        leave-one-out errors (three more rounds, or up to ten where one error is far larger than others).
    fuzzifier : float, default=1.1
        Fuzziness of the clusters (alpha), > 1.
    width_scale : float, default=1.0
        Factor on the widths of the fuzzy sets; sqrt(2) gives sets ``exp(-(x-m)^2 / (2 s^2))``.
    pairs : {"random", "local"}, default="random"
        Pairs of any two rows; or of near ones, which penalises local bends only. The penalty is rescaled, so that a
        model of constant curvature pays about the same for both.
    n_pairs : int, default=None
        Interpolated pairs per agent, used raw as in the paper. None: as many as the agent has unlabelled rows, at most
        10,000 and rescaled beyond.
    mix_concentration : float, default=0.75
        Mixing shares are drawn from Beta(mix_concentration, mix_concentration).
    n_agents : int, default=1
        Number of agents to split the rows over when ``fit`` is not told the owners; 1 is the centralised method.
    solver : {"admm", "exact", "decentralized"}, default="admm"
        How agents agree: round by round, none of them sending statistics, as the paper's consensus ADMM does (see
        ``acceleration``); by sums, which give the pooled solution exactly and in few rounds; or without a coordinator,
        by exact sums through messages between neighbors in a ``topology``: every agent knows all of them. A
        single agent always uses sums.
    rounds : {"many", "few"}, default="many"
        "few" trains in six rounds, for links where a round costs seconds: every agent clusters its own rows, the local
        centers (which the coordinator sees one by one) are merged and refined twice, and everything else is sums. The
        centers are then not fully converged; of ``solver`` only "decentralized" matters.
    width_pooling : {"exact", "paper"}, default="exact"
        Widths over agents: those of the pooled rows, or the paper's average of local variances (about the agreed
        centers where agents have none of their own, that is unless centers are agreed by ADMM).
    refresh_pairs : bool, default=False
        Draw new pairs in every ADMM round, as the paper's Algorithm 2 prints it. The target then moves, and the solve
        runs until ``max_rounds``. Sums have no such rounds: with ``solver="exact"`` or ``rounds="few"`` it is refused,
        with a single agent ``fit`` warns that it had no effect.
    graph : {"neighbors", "full"}, default="neighbors"
        Graph of SFR-G: sparse nearest neighbours, or the paper's full kernel (time grows with the square of the rows).
    n_neighbors : int, default=10
        Neighbours of a row in the sparse graph; rows as near as the last of them are neighbours too.
    acceleration : {"conjugate", "anderson", None}, default="conjugate"
        "conjugate": agents send gradients and the coordinator solves the pooled problem by preconditioned conjugate
        residuals, in as many rounds for many agents as for few. "anderson": consensus ADMM (DFCM and DICR), with
        Anderson's method from sums over agents. None: plain ADMM; plain steps where agents send sums. A ``penalty``,
        ``cluster_penalty`` or ``relaxation`` asks for ADMM.
    relaxation : float, default=1.0
        Over-relaxation of the weights' ADMM, between 0 and 2; 1 is none.
    cluster_penalty : float, default=None
        ADMM penalty of the clustering (rho_s). None: the mean membership mass of a cluster at an agent, doubled
        whenever the agents stop getting closer. The paper uses 0.1.
    penalty : float, "balanced" or None, default=None
        ADMM penalty of the weights (rho_p). None: from the curvatures of the agents' problems, preconditioned by the
        rules. "balanced": from there, doubled or halved when one residual is ten times the other. The paper uses 0.1.
    tol : float, default=1e-4
        Stop when centers have settled to ``tol``, and when the weights are provably within ``tol`` (relative) of the
        solution.
    max_rounds : int, default=10000
        Most rounds of clustering, and most rounds of solving.
    feature_ranges : array-like of shape (2, d), default=None
        Lowest and highest value of each feature, where these are known and should not be asked from agents.
    engine : {"inprocess", "dask"}, default="inprocess"
        Where agents are: in this process, or on a dask cluster (that of the present client, else one started here).
        With "dask", ``fit`` takes a dask data frame and series; every partition is an agent, or with ``n_agents`` > 1
        partitions are grouped into so many.
    topology : str, path, networkx.Graph or list of pairs, default=None
        Who is linked to whom, if messages can only go along links: "complete", "star", "line", "ring", "grid",
        "geometric", "erdos-renyi", "barabasi-albert", a file with two names per line, a graph, or its edges. Nodes are
        names of agents, or numbers in the order of ``agents_``. None: a coordinator reaches every agent.
    faults : Faults, default=None
        Agents that are away and messages that are lost, to try out what happens then; see `dsfr.Faults`.
    min_agents : int, default=1
        A round with fewer agents in reach waits for more, and after long waiting is an error; so is one in which the
        messages of too many fail.
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
    termination_ : {"converged", "max_rounds"}
        Whether both stages reached ``tol``.
    tuned_ : dict of str to float
        With ``tune``: the chosen ridge, weight of the penalty, noise (standard deviation, in the target's units) and
        log evidence; the values given if the labels do not vary. Of several models, those of the strongest.
    n_duplicates_ : int
        With ``tune``, ``uncertainty`` or ``relevance="evidence"``: rows left out as duplicates of others; else 0.
    models_ : list of dict
        With several models: share in the average, agreement with it (R^2 over all rows), number of rules,
        ``width_scale``, whether pairs are near ones, ridge, weight of the penalty, and score (log evidence, or its
        like) of each.
    agents_ : list of str
        Names of the agents.
    present_ : list of str
        Names of the agents that took part in the last round; ``ledger_.agents`` has the rounds of each.
    agent_models_ : dict of str to Model
        Every agent's own copy of the model, if ``solver="decentralized"``; all are equal to ``model_``.
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

    def __init__(
        self,
        n_rules: int = 5,
        *,
        auto: bool = False,
        unlabeled: str | None = "icr",
        consistency: float = 0.1,
        smoothness: float = 1e-4,
        ridge: float = 0.1,
        tune: str | None = None,
        n_models: int | str | None = None,
        scaling: str = "range",
        relevance: str | None = None,
        firing: str = "sum",
        uncertainty: bool = False,
        fuzzifier: float = 1.1,
        width_scale: float = 1.0,
        pairs: str = "random",
        n_pairs: int | None = None,
        mix_concentration: float = 0.75,
        n_agents: int = 1,
        solver: str = "admm",
        rounds: str = "many",
        width_pooling: str = "exact",
        refresh_pairs: bool = False,
        graph: str = "neighbors",
        n_neighbors: int = 10,
        acceleration: str | None = "conjugate",
        relaxation: float = 1.0,
        cluster_penalty: float | None = None,
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
        self.n_rules = n_rules
        self.auto = auto
        self.unlabeled = unlabeled
        self.consistency = consistency
        self.smoothness = smoothness
        self.ridge = ridge
        self.tune = tune
        self.n_models = n_models
        self.scaling = scaling
        self.relevance = relevance
        self.firing = firing
        self.uncertainty = uncertainty
        self.fuzzifier = fuzzifier
        self.width_scale = width_scale
        self.pairs = pairs
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
        self.engine = engine
        self.topology = topology
        self.faults = faults
        self.min_agents = min_agents
        self.precision = precision
        self.on_round = on_round
        self.random_state = random_state

    def _settings(self, seed: int) -> Settings:
        return settings_of(self, "rules", seed)

    @property
    def rules_(self) -> Explanation:
        """The rules in the data's units, put into words when asked for."""
        check_is_fitted(self, "model_")
        return self.model_.explain()
