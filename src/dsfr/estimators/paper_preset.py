"""The paper's method to the letter, as parameters of the estimators."""

from __future__ import annotations

from typing import Any

from dsfr.training import ADMM, FuzzyRules, Graph, RangeScaling
from dsfr.training.penalties import UnlabeledPenalty

PAPER_PENALTY = 0.1
"""rho_s and rho_p of the paper's experiments."""
PAPER_ROUNDS = 300
"""The paper says that DICR takes at most so many iterations; new pairs in every round never settle by themselves."""


def paper_parameters(unlabeled: Any, *, has_rules: bool) -> dict[str, Any]:
    """Parameters of the paper's method with this penalty on unlabelled rows, a component or its shorthand.

    Plain ADMM with the paper's penalties, stopping tests and new pairs in every round; random start centers, sums over
    the rows nearest to a center and average widths; targets in their own units; a graph of all pairs of rows. Where the
    paper contradicts itself (eq. (5) and (37)) its derivation is followed, as everywhere.
    """
    printed = {Graph.shorthand: Graph(kernel="full")}
    penalty = None if unlabeled is None else UnlabeledPenalty.resolve(unlabeled, printed)
    rules = {"rules": FuzzyRules(init="random", cluster_rows="nearest", width_pooling="paper")} if has_rules else {}
    solver = ADMM(
        acceleration=None,
        penalty=PAPER_PENALTY,
        cluster_penalty=PAPER_PENALTY,
        refresh_pairs=penalty is not None and penalty.is_drawn,
        stopping="paper",
        max_rounds=PAPER_ROUNDS,
    )
    return {**rules, "unlabeled": penalty, "scaling": RangeScaling(target="raw"), "solver": solver}


def with_paper_parameters(estimator: type, usual: Any, has_rules: bool, arguments: dict[str, Any]) -> Any:
    """An estimator with the paper's parameters; arguments win, those of components by names such as ``solver__tol``."""
    nested = {name: value for name, value in arguments.items() if "__" in name}
    given = {name: value for name, value in arguments.items() if name not in nested}
    paper = paper_parameters(given.get("unlabeled", usual), has_rules=has_rules)
    kept = {name: value for name, value in given.items() if name != "unlabeled"}
    return estimator(**paper | kept).set_params(**nested)
