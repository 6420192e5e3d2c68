"""The automatic mode: everything is chosen from the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dsfr.estimators.engines import EngineChoice
from dsfr.estimators.sfr import SFRRegressor
from dsfr.training import ICR, Ensemble, FuzzyRules, Sums
from dsfr.training.component import Component
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.scaling.scalings import Scaling
from dsfr.training.solvers import Solver


class AutoSFRRegressor(SFRRegressor):
    """Semi-supervised fuzzy regression that chooses everything from the training data, and knows how sure it is.

    Rule bases of several numbers of rules are trained one after the other, on features stretched by their relevance,
    and averaged. Every choice is the default of a parameter: one that is given takes its place.

    Parameters
    ----------
    n_rules : int, default=5
        Smallest number of rules that is tried.
    ensemble : Ensemble or "auto", default="auto"
        Which models are averaged: number of rule bases, relevance of features, effects of features and products,
        most weights for each label; see `Ensemble`. ``Ensemble(n_models=1)`` gives a single rule base.
    rules : FuzzyRules or {"auto", "gaussian"}, default="auto"
        "auto": ``FuzzyRules(width_scale=1.5, firing="mean")``.
    unlabeled : ICR, Graph, {"auto", "icr", "graph"} or None, default="auto"
        "auto": ``ICR(pairs="local", most_pairs=1500)``.
    ridge : float, default=None
        As in `SFRRegressor`; a number needs ``tune=None``.
    tune : {"evidence", "loo", None}, default="evidence"
        As in `SFRRegressor`; several models need it.
    target : {"auto", "log", None}, default="auto"
        "auto": a positive target is learnt as its logarithm where that has clearly more evidence, with the Jacobian of
        the transformation, and a smaller squared leave-one-out error on the target's own scale (members of effects
        decide; without them targets are learnt as they are). Predictions are held at most one standard deviation
        beyond the labels, at 0 where labels start near it, and within 0 and 1 where these are shares. "log": always
        the logarithm. None: targets as they are, and predictions without limits. Predictions are means on the
        target's own scale in any case.
    scaling : RangeScaling, RobustScaling or {"range", "robust"}, default="robust"
        As in `SFRRegressor`.
    uncertainty : bool, default=True
        As in `SFRRegressor`.
    solver : Sums, Conjugate, ADMM, FewRounds, Decentralized or a shorthand, default="auto"
        "auto": ``Sums(tol=1e-2)``. Tuning and uncertainty need a solver that sums statistics.
    n_agents, engine, precision, on_round, random_state
        As in `SFRRegressor`.

    Attributes
    ----------
    model_, rules_, n_rounds_, history_, ledger_, termination_, tuned_, agents_, present_, n_features_in_, \
    feature_names_in_
        As in `SFRRegressor`.
    models_ : list of dict
        With several models: share in the average, agreement with it (R^2 over all rows), number of rules,
        ``width_scale``, whether pairs are near ones, ridge, weight of the penalty, and score (log evidence, or its
        like) of each.

    Examples
    --------
    >>> import numpy as np
    >>> from dsfr import AutoSFRRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, (300, 2))
    >>> y = np.sin(X[:, 0])
    >>> y[40:] = np.nan  # 40 labelled rows, 260 unlabelled; the second feature does not matter
    >>> model = AutoSFRRegressor(random_state=0).fit(X, y)
    >>> round(model.score(X, np.sin(X[:, 0])), 1)
    1.0
    """

    presets: ClassVar[Mapping[str, Mapping[str, Component]]] = {
        "rules": {"auto": FuzzyRules(width_scale=1.5, firing="mean")},
        "unlabeled": {"auto": ICR(pairs="local", most_pairs=1500)},
        "solver": {"auto": Sums(tol=1e-2)},
    }

    def __init__(
        self,
        n_rules: int = 5,
        *,
        ensemble: str | Ensemble = "auto",
        rules: str | FuzzyRules = "auto",
        unlabeled: str | UnlabeledPenalty | None = "auto",
        ridge: float | None = None,
        tune: str | None = "evidence",
        target: str | None = "auto",
        scaling: str | Scaling = "robust",
        uncertainty: bool = True,
        n_agents: int = 1,
        solver: str | Solver = "auto",
        engine: str | EngineChoice = "in-process",
        precision: str = "double",
        on_round: Any = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_rules,
            rules=rules,
            unlabeled=unlabeled,
            ridge=ridge,
            tune=tune,
            scaling=scaling,
            uncertainty=uncertainty,
            n_agents=n_agents,
            solver=solver,
            engine=engine,
            precision=precision,
            on_round=on_round,
            random_state=random_state,
        )
        self.ensemble = ensemble
        self.target = target
