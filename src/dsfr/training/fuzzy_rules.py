"""How fuzzy rules are made of clusters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.membership import MEMBERSHIPS, Gaussian
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.storage.bundles import Bundle
from dsfr.training.component import Component, Rule, number, one_of, only, parameter
from dsfr.training.shard import Purpose
from dsfr.training.tasks.messages import scalar

LOCAL_START, RANDOM_START = "k-means++", "random"


@dataclass(frozen=True, kw_only=True, repr=False)
class FuzzyRules(Component):
    """Fuzzy rules, one for every cluster of fuzzy c-means.

    Parameters
    ----------
    fuzzifier : float, default=1.1
        Fuzziness of the clusters (alpha in the paper), > 1.
    width_scale : float, default=1.0
        Factor on the widths of the fuzzy sets; sqrt(2) gives sets ``exp(-(x-m)^2 / (2 s^2))``.
    firing : {"sum", "mean"}, default="sum"
        A rule fires by the sum of squared distances over features, or by their mean ("HTSK"), which keeps many features
        from leaving a single rule in charge.
    width_pooling : {"exact", "paper"}, default="exact"
        Widths over agents: those of the pooled rows, or the paper's average of local variances (about the agreed
        centers where agents have none of their own, that is with every solver but ADMM).
    membership : str, default="gaussian"
        Membership function of the sets, a name of `dsfr.core.features.membership.MEMBERSHIPS`.
    init : {"k-means++", "random"} or array-like of shape (n_rules, d), default="k-means++"
        Start centers of the clustering: k-means++ and fuzzy c-means on the rows of the agent with the most rows;
        uniformly random within the ranges of the features, which no agent's rows take part in; or the given ones, in
        the units of the features.
    cluster_rows : {"all", "nearest"}, default="all"
        Rows in the sums of a cluster: all by their memberships, or those nearest to its center alone, as the paper
        prints the sums over ``C_k``.
    membership_exponent : float, default=None
        Power of the memberships in centers and widths. None: the fuzzifier, which minimises the objective of fuzzy
        c-means. 1: the paper's eq. (5) as printed.
    """

    argument: ClassVar[str] = "rules"
    shorthand: ClassVar[str] = "gaussian"

    fuzzifier: float = parameter(1.1, number(1, "a number > 1 (1 is hard clustering); usual values are 1.1 to 3"))
    width_scale: float = parameter(1.0, number(0, "a number > 0; 1 is the paper's width"))
    firing: str = parameter("sum", one_of("sum", "mean"))
    width_pooling: str = parameter("exact", one_of("exact", "paper"))
    membership: str = parameter(
        Gaussian.name, Rule(lambda value: value in MEMBERSHIPS, "the name of a membership function, such as 'gaussian'")
    )
    init: Any = LOCAL_START
    cluster_rows: str = parameter("all", one_of("all", "nearest"))
    membership_exponent: float | None = parameter(
        None, number(0, "a number > 0, or None for the fuzzifier", or_none=True)
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.init, str):
            if self.init not in (LOCAL_START, RANDOM_START):
                raise ValueError(f"init={self.init!r} must be {LOCAL_START!r}, {RANDOM_START!r} or an array of centers")
            return
        centers = _matrix(self.init)
        if centers is None:
            raise ValueError(
                f"init={self.init!r} must be {LOCAL_START!r}, {RANDOM_START!r} or finite start centers, one row for "
                "every rule and one column for every feature"
            )
        object.__setattr__(self, "init", tuple(map(tuple, centers.tolist())))

    def accepts(self) -> Mapping[str, Rule]:
        """Given centers have one row for each rule; several rule bases each need a start of their own."""
        if self.init == LOCAL_START:
            return {}
        why = f"init={self.init if isinstance(self.init, str) else 'centers'} is the start of one rule base"
        one_base = {"n_models": only(1, because=why), "relevance": only(None, because=why)}
        merged = Rule(lambda solver: solver.takes_start, f"a solver other than 'few-rounds', because {why}")
        count = {} if isinstance(self.init, str) else {"n_rules": only(len(self.init), because="init has as many rows")}
        return {**one_base, "solver": merged, **count}

    def weighting(self) -> Bundle:
        """What agents must know of how rows count in the sums of a cluster, where it is not the textbook's way."""
        nearest = {"nearest_only": scalar(1.0)} if self.cluster_rows == "nearest" else {}
        if self.membership_exponent is None:
            return nearest
        return {**nearest, "membership_exponent": scalar(self.membership_exponent)}

    def start(self, n_rules: int, ranges: Ranges, seed: int) -> Array | None:
        """Start centers in scaled features, None if an agent is to propose them.

        Raises
        ------
        ValueError
            If the given centers have another number of features than the rows.
        """
        if self.init == LOCAL_START:
            return None
        n_features = len(ranges.low)
        if isinstance(self.init, str):
            rng = np.random.default_rng([seed, 0, Purpose.START])
            return rng.uniform(-1.0, 1.0, (n_rules, n_features))
        centers = np.array(self.init, dtype=np.float64)
        if centers.shape[1] != n_features:
            raise ValueError(
                f"init has centers of {centers.shape[1]} features, and there are {n_features}: give one column each"
            )
        return scale_features(centers, ranges)


def _matrix(centers: Any) -> Array | None:
    """A finite matrix of numbers, None if it is none."""
    try:
        matrix = np.asarray(centers, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return matrix if matrix.ndim == 2 and matrix.size and np.isfinite(matrix).all() else None
