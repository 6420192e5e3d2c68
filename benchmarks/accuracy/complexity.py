"""How much there is to read in a fitted model: conditions and terms.

A condition is one comparison of a feature with a number, a term one number that enters a sum or is an answer. A tree
has its splits and its leaves; a rule list the conditions and the coefficients (with the constant) of every rule; a
linear model its coefficients and the constant; a curve that is a table of steps has its thresholds and its values, and
so has a surface (values of all cells). Adjacent steps with the same value count once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

Counts = tuple[int, int]


def of_tree(model: Any) -> Counts:
    tree = model.tree_
    return int(tree.node_count - tree.n_leaves), int(tree.n_leaves)


def of_figs(model: Any) -> Counts:
    """Sum of trees: every tree has one leaf more than splits."""
    return int(model.complexity_), int(model.complexity_) + len(model.trees_)


def of_rule_fit(model: Any) -> Counts:
    kept = model._get_rules(exclude_zero_coef=True)
    rules = kept[kept.type == "rule"].rule
    return int(sum(len(rule.split(" and ")) for rule in rules)), len(kept) + 1


def of_cubist(model: Any) -> Counts:
    coefficients = model.coeffs_.drop(columns=["committee", "rule"])
    return len(model.splits_), int(coefficients.notna().sum().sum())


def of_lasso(model: Any) -> Counts:
    return 0, int(np.count_nonzero(model[-1].coef_)) + 1


def of_steps(values: np.ndarray) -> Counts:
    """Thresholds and values of a table of steps over one feature or two."""
    changes = [
        int(np.any(np.diff(values, axis=axis), axis=tuple(a for a in range(values.ndim) if a != axis)).sum())
        for axis in range(values.ndim)
    ]
    return sum(changes), int(np.prod([n + 1 for n in changes]))


def sum_of_steps(tables: list[np.ndarray]) -> Counts:
    """Counts of a sum of curves and surfaces that are not zero, and its constant."""
    counts = [of_steps(values) for values in tables if np.any(values)]
    return sum(c for c, _ in counts), sum(t for _, t in counts) + 1


def of_ebm(model: Any) -> Counts:
    """The first and the last bin of every axis are for missing and unseen values."""
    return sum_of_steps([scores[(slice(1, -1),) * scores.ndim] for scores in model.term_scores_])


def of_gp_gam(model: Any) -> Counts:
    curves = [np.asarray(model.shape_function(j)[1]) for j in range(model.n_features_in_)]
    return sum_of_steps([*curves, *(np.asarray(values) for values in model.pair_values_)])


def of_rules(model: Any) -> Counts:
    """Ours: conditions of all rules, and terms of all lines, whose constants `complexity_` does not count.

    Terms that are the same in all rules are printed, and counted, once.
    """
    found = model.complexity_
    return int(found["conditions"]), int(found["terms"] + found["rules"])


COUNTS: dict[str, Callable[[Any], Counts]] = {
    "rules": of_rules,
    "tree of 8 leaves": of_tree,
    "HSTree": lambda model: of_tree(model.estimator_),
    "FIGS": of_figs,
    "RuleFit": of_rule_fit,
    "Cubist": of_cubist,
    "lasso": of_lasso,
    "EBM": of_ebm,
    "GPGam": of_gp_gam,
}


def measure_complexity(method: str, model: Any) -> dict[str, int]:
    """Conditions and terms of a model that people can read; nothing for other methods."""
    if method not in COUNTS:
        return {}
    conditions, terms = COUNTS[method](model)
    return {"conditions": conditions, "terms": terms}
