"""Findings: sentences whose numbers are computed from the stored results."""

from __future__ import annotations

from itertools import product

import numpy as np

from dsfr.paper.reproduction.claims import PRINTED, Evidence, Means, cell_name, list_datasets
from dsfr.paper.reproduction.paper_admm import admm_finding
from dsfr.paper.reproduction.published import DATASETS, METHODS, PAPER, SETTINGS, SIGNIFICANCE_LEVEL, TITLES
from dsfr.paper.reproduction.summary import REFERENCE, baseline_cells

MEDIAN_GAP = 0.01
"""A mean that exceeds its median by more than this is reported with the median."""
PLACES = tuple(product(DATASETS, SETTINGS))
"""Data set and setting of every cell of a method."""


def findings(evidence: Evidence) -> list[str]:
    """All findings."""
    return [
        admm_finding(evidence),
        _agreement(evidence),
        _sfr_icr(evidence),
        _medians(evidence),
        _other_methods(evidence),
        _selection_bias(evidence),
        _baselines(evidence),
        _distribution(evidence),
        _communication(evidence),
    ]


def _agreement(evidence: Evidence) -> str:
    best = evidence.best_on_test
    near = {
        method: sum(
            abs(best[d, s, method] - PAPER[d, s, method].mean) <= PAPER[d, s, method].deviation for d, s in PLACES
        )
        for method in METHODS
    }
    parts = ", ".join(f"{method} {count} of {len(PLACES)}" for method, count in near.items())
    return (
        f"**Agreement with the paper.** {sum(near.values())} of {len(PAPER)} means lie within one of the paper's "
        f"standard deviations of the paper's mean: {parts}."
    )


def _sfr_icr(evidence: Evidence) -> str:
    differences = _differences(evidence, REFERENCE)
    lower = sum(difference <= 0 for difference in differences)
    texts = [f"{cell_name(*place)} {change:+.3f}" for place, change in zip(PLACES, differences, strict=True)]
    return f"**SFR-ICR** is at or below the paper's mean in {lower} of {len(PLACES)} cells: {', '.join(texts)}."


def _differences(evidence: Evidence, method: str) -> list[float]:
    """Our mean minus the paper's, for every data set and setting."""
    return [evidence.best_on_test[d, s, method] - PRINTED[d, s, method] for d, s in PLACES]


def _medians(evidence: Evidence) -> str:
    """Mean and median where a few runs raise the mean."""
    texts = []
    for place in PLACES:
        errors = evidence.cells[*place, REFERENCE].best_on_test
        median = float(np.median(errors.values))
        if errors.mean - median > MEDIAN_GAP:
            texts.append(f"{cell_name(*place)} mean {errors.mean:.3f}, median {median:.3f}")
    return (
        f"**Medians.** A few runs raise the means of SFR-ICR: {'; '.join(texts) or 'nowhere'}. One row of WMSL is an "
        "outlier: it reports many times as many hours as any other row. As a test row it lies far outside the training "
        "range, and models with linear consequents extrapolate. Features are scaled by training rows; with test rows "
        "in the scaling, the row would not lie outside."
    )


def _other_methods(evidence: Evidence) -> str:
    texts = []
    for method in ("LapWNN", "s-SFR", "SFR-G"):
        changes = _differences(evidence, method)
        texts.append(f"{method} by {np.mean(changes):+.3f} on average ({min(changes):+.3f} to {max(changes):+.3f})")
    weaker = _mean_gain(evidence.best_on_test) < _mean_gain(PRINTED)
    return f"**The methods SFR-ICR is compared with** differ from the paper: {', '.join(texts)}." + (
        " With the best value of the same grid they are stronger than printed, and the lead of SFR-ICR over s-SFR and "
        "SFR-G is smaller than the paper says."
        if weaker
        else ""
    )


def _mean_gain(means: Means) -> float:
    """Share by which SFR-ICR lowers the error of s-SFR and SFR-G, on average."""
    ratios = [means[d, s, REFERENCE] / means[d, s, method] for method in ("s-SFR", "SFR-G") for d, s in PLACES]
    return 1 - float(np.mean(ratios))


def _selection_bias(evidence: Evidence) -> str:
    best, chosen = evidence.best_on_test, evidence.by_leave_one_out
    costs = {m: float(np.mean([chosen[d, s, m] / best[d, s, m] - 1 for d, s in PLACES])) for m in METHODS}
    parts = ", ".join(f"{method} {100 * cost:+.1f}%" for method, cost in costs.items())
    return (
        "**Selection bias.** With parameters chosen by leave-one-out on the training labels instead of on the test "
        f"folds, mean errors change by {parts} (average of the cells)."
    )


def _baselines(evidence: Evidence) -> str:
    cells, texts, ahead = baseline_cells(evidence.results), [], 0
    n_baselines = len({name for _, name in cells})
    for dataset in DATASETS:
        ours = evidence.by_leave_one_out[dataset, "centralised", REFERENCE]
        found = {name: cell.by_leave_one_out.mean for (where, name), cell in cells.items() if where == dataset}
        best = min(found, key=lambda name: found[name])
        ahead += found[best] < ours
        texts.append(f"{TITLES[dataset]} {best} {found[best]:.3f} against {ours:.3f}")
    return (
        f"**Baselines.** With parameters chosen on training labels alone, the best of {n_baselines} baselines has a "
        f"lower error than centralised SFR-ICR on {ahead} of {len(DATASETS)} data sets: {'; '.join(texts)}. (Taking "
        "the best of several baselines afterwards favours the baselines.)"
    )


def _distribution(evidence: Evidence) -> str:
    errors = {
        d: [evidence.cells[d, setting, REFERENCE].best_on_test for setting in ("distributed", "centralised")]
        for d in DATASETS
    }
    changes = {d: distributed.mean - centralised.mean for d, (distributed, centralised) in errors.items()}
    plain = {d: one.p_value(other) for d, (one, other) in errors.items()}
    corrected = {d: one.corrected_p_value(other, evidence.test_ratio) for d, (one, other) in errors.items()}
    significant = [
        ", ".join(TITLES[d] for d, p in p_values.items() if p < SIGNIFICANCE_LEVEL) or "none"
        for p_values in (plain, corrected)
    ]
    return (
        f"**Distributed against centralised SFR-ICR**: {list_datasets(changes, '+.4f')}; p < {SIGNIFICANCE_LEVEL:g} on "
        f"{significant[0]}, corrected on {significant[1]}. Both solve the same pooled problem except for the pairs, "
        "which never cross agents, and the start of the clustering. Neither can be expected to be better, and "
        "differences of this size are no advantage of distribution."
    )


def _communication(evidence: Evidence) -> str:
    cells = [evidence.cells[dataset, "distributed", REFERENCE] for dataset in DATASETS]
    rounds, sent = [cell.rounds for cell in cells], [cell.kilobytes for cell in cells]
    return (
        f"**Communication** of distributed SFR-ICR: {min(rounds):.0f} to {max(rounds):.0f} rounds and {min(sent):.0f} "
        f"to {max(sent):.0f} kB per fit, both stages and all agents together."
    )
