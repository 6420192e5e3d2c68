"""Claims about the figures: parameters, pairs, rules, agents."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import NOT_IN_TABLE, POST_HOC, Claim, Evidence, list_datasets, yes_or_no
from dsfr.paper.reproduction.complexity import complexity_claims
from dsfr.paper.reproduction.convergence import clusters_converge, weights_converge
from dsfr.paper.reproduction.published import (
    BEST_PAIRS,
    LARGE_PENALTY,
    TITLES,
    training_rows,
)
from dsfr.paper.reproduction.summary import mean_curve, median_curve

EQUAL_WITHIN = 0.01
"""Means that differ by less count as equal."""
FIXED_VALUE = 0.1
"""Value of ridge and consistency where one of them is not varied, as in the paper."""
NEAR_FACTOR = 3.0
"""Numbers within this factor of each other count as near."""
STRONG_RANK_CORRELATION = -0.7
"""Rank correlation of rules and error below which more rules count as better."""


def figure_claims(evidence: Evidence) -> dict[str, list[Claim]]:
    """Claims by the figure that shows them."""
    return {
        "convergence": [clusters_converge(evidence), weights_converge(evidence)],
        "complexity": complexity_claims(evidence),
        "parameters": [_consistency(evidence), _ridge(evidence), _rho_s(evidence), _rho_p(evidence)],
        "pairs": [_pairs_shape(evidence), _pairs_best(evidence)],
        "rules": [_more_rules(evidence)],
        "agents": [_stable_agents(evidence)],
    }


def grid_rows(evidence: Evidence, dataset: str, varied: str) -> list[Row]:
    """Runs of distributed SFR-ICR over ridge or weight, the other one fixed at `FIXED_VALUE`."""
    fixed = {"ridge": "weight", "weight": "ridge"}[varied]
    wanted = {"dataset": dataset, "setting": "distributed", "method": "SFR-ICR", fixed: FIXED_VALUE}
    return evidence.results.where("grid", **wanted)


def _best_values(evidence: Evidence, varied: str) -> dict[str, float]:
    best = {}
    for dataset in evidence.results.spec("penalties")["datasets"]:
        values, means, _ = mean_curve(grid_rows(evidence, dataset, varied), varied)
        best[dataset] = values[int(means.argmin())]
    return best


def _consistency(evidence: Evidence) -> Claim:
    best = _best_values(evidence, "weight")
    return Claim(
        "The NRMSE drops as gamma (consistency) increases, with its lowest value at 1 on all data sets. (The paper "
        "prints mu = 1. We read gamma = 1: its next sentences speak of ICR, and say that the best mu differs.)",
        NOT_IN_TABLE,
        f"{yes_or_no(all(value == 1.0 for value in best.values()))}: lowest at {list_datasets(best, 'g')}.",
    )


def _ridge(evidence: Evidence) -> Claim:
    best = _best_values(evidence, "ridge")
    low, *_, high = sorted(evidence.results.spec("grid")["grid"])
    inside = all(low < best[name] < high for name in ("airfoil", "ch", "kch"))
    return Claim(
        "On Airfoil, CH and KCH the NRMSE falls with mu (ridge), reaches its bottom and climbs again.",
        NOT_IN_TABLE,
        f"{yes_or_no(inside)}: lowest at {list_datasets(best, 'g')} ({high:g} is the end of the grid).",
    )


def _penalty_means(evidence: Evidence, dataset: str, parameter: str) -> dict[float, float]:
    values, means, _ = mean_curve(evidence.results.where("penalties", dataset=dataset, parameter=parameter), "value")
    return dict(zip(values, means.tolist(), strict=True))


def _rho_s(evidence: Evidence) -> Claim:
    ranges = {
        dataset: float(np.ptp(list(_penalty_means(evidence, dataset, "rho_s").values())))
        for dataset in evidence.results.spec("penalties")["datasets"]
    }
    return Claim(
        "The error varies little with rho_s.",
        NOT_IN_TABLE,
        f"{yes_or_no(max(ranges.values()) < EQUAL_WITHIN)}: largest difference of the means "
        f"{list_datasets(ranges, '.4f')}.",
    )


def _rho_p(evidence: Evidence) -> Claim:
    holds, texts, spec = True, [], evidence.results.spec("penalties")
    for dataset in spec["datasets"]:
        means = _penalty_means(evidence, dataset, "rho_p")
        small = min(mean for value, mean in means.items() if value <= LARGE_PENALTY)
        large = max(mean for value, mean in means.items() if value > LARGE_PENALTY)
        holds &= large < small
        texts.append(f"{TITLES[dataset]} {large:.3f} (worst above) against {small:.3f} (best up to {LARGE_PENALTY:g})")
    return Claim(
        f"rho_p performs better with values greater than {LARGE_PENALTY:g}.",
        NOT_IN_TABLE,
        f"{yes_or_no(holds)}: {'; '.join(texts)}, after {spec['max_rounds']} rounds. The figure shows the speed of "
        "ADMM, not a property of the solution.",
    )


def _pair_means(evidence: Evidence, dataset: str) -> tuple[list[float], list[float]]:
    values, means, _ = mean_curve(evidence.results.where("pairs", dataset=dataset), "pairs")
    return values, means.tolist()


def _pairs_shape(evidence: Evidence) -> Claim:
    curves = {dataset: _pair_means(evidence, dataset)[1] for dataset in BEST_PAIRS}
    climbs = {dataset: means[-1] - min(means) for dataset, means in curves.items()}
    return Claim(
        "With more interpolated pairs the NRMSE declines first, then climbs after a minimum.",
        NOT_IN_TABLE,
        f"{yes_or_no(min(climbs.values()) > EQUAL_WITHIN)}: from the minimum to the largest number of pairs it changes "
        f"by {list_datasets(climbs, '+.4f')}.",
    )


def _pairs_best(evidence: Evidence) -> Claim:
    texts, holds = [], True
    for dataset, claimed in BEST_PAIRS.items():
        values, means = _pair_means(evidence, dataset)
        best = values[int(np.argmin(means))]
        enough = next(value for value, mean in zip(values, means, strict=True) if mean < min(means) + EQUAL_WITHIN)
        holds &= _near(best, claimed)
        texts.append(
            f"{TITLES[dataset]} {best:,.0f} (paper {claimed:,}; within {EQUAL_WITHIN} of the lowest from {enough:,.0f} "
            "on)"
        )
    return Claim(
        f"The best number of pairs is near the number of training rows: {list_datasets(BEST_PAIRS, ',')}.",
        _near_training_rows(),
        f"{yes_or_no(holds)}: lowest at {'; '.join(texts)} pairs per agent. The penalty is a sum over pairs, so more "
        "pairs act as a larger consistency weight, and the best number depends on that weight.",
    )


def _near(one: float, other: float) -> bool:
    return 1 / NEAR_FACTOR <= one / other <= NEAR_FACTOR


def _near_training_rows() -> str:
    """Whether the paper's best numbers of pairs are near the training rows of its Table I."""
    rows = {name: training_rows(name) for name in BEST_PAIRS}
    near = all(_near(BEST_PAIRS[name], rows[name]) for name in rows)
    return (
        f"{yes_or_no(near)}: training rows by Table I are {list_datasets(rows, ',')} (near: within a factor of "
        f"{NEAR_FACTOR:g})."
    )


def _more_rules(evidence: Evidence) -> Claim:
    texts, holds = [], True
    for count in evidence.results.spec("rules")["label_counts"]:
        for dataset in evidence.results.spec("rules")["datasets"]:
            values, means, _ = mean_curve(evidence.results.where("rules", dataset=dataset, labels=count), "rules")
            rank = float(spearmanr(values, means).statistic)
            holds &= rank < STRONG_RANK_CORRELATION
            texts.append(
                f"{TITLES[dataset]}, {count} labels: {means[0]:.3f} with {values[0]}, {means[-1]:.3f} with "
                f"{values[-1]}, rank correlation {rank:+.2f}"
            )
    return Claim("The more rules, the better.", NOT_IN_TABLE, f"{yes_or_no(holds)}: {'; '.join(texts)}.")


def _stable_agents(evidence: Evidence) -> Claim:
    """The error is stable if the means differ by less than `EQUAL_WITHIN`, as for the other curves."""
    ranges, post_hoc = {}, []
    for dataset in evidence.results.spec("agents")["datasets"]:
        rows = evidence.results.where("agents", dataset=dataset)
        values, means, _ = mean_curve(rows, "agents")
        ranges[dataset] = float(np.ptp(means))
        post_hoc.append(f"{TITLES[dataset]} {_range_of_medians(rows)}")
    return Claim(
        "DSFR is stable over the number of agents.",
        NOT_IN_TABLE,
        f"{yes_or_no(max(ranges.values()) < EQUAL_WITHIN)}: largest difference of the means over {values[0]} to "
        f"{values[-1]} agents: {list_datasets(ranges, '.4f')}. {POST_HOC} largest difference of the medians, against "
        f"the interquartile range of the runs: {', '.join(post_hoc)}.",
    )


def _range_of_medians(rows: list[Row]) -> str:
    values, middles = median_curve(rows, "agents")
    errors = [[row["nrmse"] for row in rows if row["agents"] == value] for value in values]
    quartile_range = float(np.median(np.subtract(*np.percentile(errors, [75, 25], axis=1))))
    return f"{np.ptp(middles):.4f} against {quartile_range:.4f}"
