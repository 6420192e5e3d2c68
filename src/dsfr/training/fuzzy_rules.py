"""How fuzzy rules are made of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfr.core.features.membership import MEMBERSHIPS, Gaussian
from dsfr.training.component import Component, Rule, number, one_of, parameter


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
