"""The owner's table of tasks: the rules that each must keep, or why it is refused; others are refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsfr.disclosure.combinations import combinations
from dsfr.disclosure.function_rules import (
    all_rows,
    bin_edges,
    bins,
    columns,
    effects,
    grid_cells,
    link,
    masses_alone,
    ramps,
    ranges,
    sample,
)
from dsfr.disclosure.history import cells, differences, knots, once
from dsfr.disclosure.label_rules import label_mass
from dsfr.disclosure.policy import Policy
from dsfr.disclosure.rules import (
    DisclosureRule,
    centers,
    cluster_mass,
    fuzzifier,
    not_below_mass,
    pairs,
    rule_mass,
    starts,
    terms,
    values,
    weights,
)
from dsfr.storage.bundles import Bundle
from dsfr.training.weights.clipped import moments_bound, statistics_bound

EVERY_TASK = (ranges,)
"""What is checked before any task runs."""


@dataclass(frozen=True, slots=True)
class Noise:
    """What noise is added to the products that a task contributes."""

    bound: Callable[[int], float]
    """Largest squared length of a row's vector, by the number of features."""
    budget: float
    """Share of the squared ratio of sensitivity to noise of a fit; those of all tasks add up to 1."""


@dataclass(frozen=True, slots=True)
class TaskRules:
    """What is checked before a task runs and before its contribution leaves; or why it is refused."""

    before: tuple[DisclosureRule, ...] = ()
    after: tuple[DisclosureRule, ...] = ()
    refused: str = ""
    noise: Noise | None = None
    """Noise of differential privacy: owners with an epsilon answer tasks that have it, and others answer the rest."""
    tightened: Callable[[Policy, Bundle], Bundle] | None = None
    """The question as the owner takes it, where its own rule is stricter than the coordinator's."""
    is_exact: bool = False
    """Whether it is about rows as they are, and not with their tails moved."""


def _refused(reason: str) -> TaskRules:
    return TaskRules(refused=reason)


_CLUSTERS = TaskRules((fuzzifier, centers, all_rows), (cluster_mass, differences))
_WEIGHTS = TaskRules((effects, centers, weights, pairs, rule_mass, knots, differences, combinations, label_mass))
_FUNCTIONS = TaskRules((effects, centers, rule_mass, sample, once, knots, differences, combinations))
_LEFT_OUT = _refused("it needs leave-one-out errors, for which the pooled system is handed to every owner")
_DUPLICATES = _refused("it counts single rows that repeat")
_EXTREMES = _refused("it sends extremes of single rows: declare the ranges of features and target")
_SINGLE = _refused("it sends centers of one owner's rows: start centers are drawn from the moments of all rows")
_ANYWHERE = _refused("its thresholds can be anywhere, and find single values round by round")
_FACTORS = _refused("it hands the pooled system of the weights to every owner")

TABLE: dict[str, TaskRules] = {
    "identify": TaskRules(is_exact=True),
    "row_moments": TaskRules(),
    "clipped_moments": TaskRules(noise=Noise(moments_bound, 0.1)),
    "clipped_statistics": TaskRules((centers, weights), noise=Noise(statistics_bound, 0.9)),
    "value_extremes": _EXTREMES,
    "value_sums": TaskRules((values,)),
    "expected_sums": TaskRules((values,)),
    "gap_statistics": _refused("it sums over labels which values are missing: values are completed without labels"),
    "agree": TaskRules(),
    "count_below": _ANYWHERE,
    "moments_within_limits": _ANYWHERE,
    "start_objectives": TaskRules((fuzzifier, centers, starts, differences), tightened=not_below_mass),
    "cluster_sums": _CLUSTERS,
    "cluster_variances": _CLUSTERS,
    "local_variances": _CLUSTERS,
    "cluster_consensus": _CLUSTERS,
    "statistics": _WEIGHTS,
    "first_gradient": _WEIGHTS,
    "weight_gradient": _WEIGHTS,
    "prepare_weights": _WEIGHTS,
    "weight_consensus": _WEIGHTS,
    "polynomial_statistics": TaskRules((terms,)),
    "square_slopes": _FUNCTIONS,
    "compare": _FUNCTIONS,
    "count_duplicates": _DUPLICATES,
    "weigh_duplicates": _DUPLICATES,
    "drop_duplicates": _DUPLICATES,
    "mark_labels": _DUPLICATES,
    "drop_matched": _DUPLICATES,
    "measure": _EXTREMES,
    "draw_ticket": _EXTREMES,
    "start_centers": _SINGLE,
    "local_clusters": _SINGLE,
    "count_and_sum": _SINGLE,
    "left_out_errors": _FACTORS,
    "stack": _FACTORS,
    "score": _FACTORS,
    "original_errors": _FACTORS,
    "dfcm_round": _SINGLE,
    "dicr_round": _refused("it sends the weights of one owner"),
    "feature_extremes": _EXTREMES,
    "grid_counts": TaskRules((), (grid_cells,)),
    "label_products": _WEIGHTS,
    "keep_teacher": TaskRules(
        (effects, centers, rule_mass, link, all_rows, once, knots, differences, combinations), (columns,)
    ),
    "feature_counts": _ANYWHERE,
    "bend_sums": TaskRules((bin_edges,), (bins, cells, differences)),
    "split_sums": TaskRules((ramps, bin_edges), (bins, cells, differences)),
    "piece_sums": _refused("it sums products of parts of two features, of which few rows may have both"),
    "rule_sums": TaskRules((ramps,), (columns, cells, differences)),
    "measure_student": TaskRules((ramps, masses_alone, cells, differences)),
    "teacher_errors": _LEFT_OUT,
    "stage_errors": _LEFT_OUT,
    "rule_errors": _LEFT_OUT,
    "score_student": _LEFT_OUT,
    "count_errors": _refused("its thresholds are more than a policy allows, and single out errors of single rows"),
}
NOT_LISTED = _refused("it is not in the table of tasks")


def rule_names(task: str) -> list[str]:
    """Names of the rules that an answer to a task has kept."""
    if task not in TABLE:
        return []
    return [rule.__name__ for rule in (*EVERY_TASK, *TABLE[task].before, *TABLE[task].after)]
