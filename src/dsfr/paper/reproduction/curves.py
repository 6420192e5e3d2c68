"""Claims about the figures: convergence, parameters, pairs, rules, agents."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from dsfr.core.arrays import Array
from dsfr.paper.experiments.results import Row
from dsfr.paper.experiments.sweeps import PLAIN
from dsfr.paper.reproduction.claims import Claim, Evidence
from dsfr.paper.reproduction.paper import (
    BEST_PAIRS,
    CLUSTER_ROUNDS,
    LARGE_PENALTY,
    TITLES,
    WEIGHT_ROUNDS,
    training_rows,
)
from dsfr.paper.reproduction.summary import curve, medians

NOT_IN_TABLE = "The paper shows it in a figure, without numbers."
LATER = "Looked at later:"
"""Marks a criterion that was added after results had been seen; it never decides a verdict."""
FLAT = 0.01
"""Means that differ by less count as equal."""
SETTLED = 0.01
"""Share of its last value that an objective may still move by."""
HELD = 0.1
"""Value of ridge and consistency where one of them is not varied, as in the paper."""
NEAR = 3.0
"""Numbers within this factor of each other count as near."""


def figure_claims(evidence: Evidence) -> dict[str, list[Claim]]:
    """Claims by the figure that shows them."""
    return {
        "convergence": [_clusters_converge(evidence), _weights_converge(evidence)],
        "parameters": [_consistency(evidence), _ridge(evidence), _rho_s(evidence), _rho_p(evidence)],
        "pairs": [_pairs_shape(evidence), _pairs_best(evidence)],
        "rules": [_more_rules(evidence)],
        "agents": [_stable_agents(evidence)],
    }


def ends(evidence: Evidence, variant: str, stage: str) -> list[Row]:
    """How the runs of one stage ended."""
    return evidence.results.where("convergence", variant=variant, stage=stage, last=True)


def within(rows: list[Row], rounds: int) -> dict[str, float]:
    """Per data set the share of runs whose residuals were under the threshold within so many rounds."""
    datasets = sorted({row["dataset"] for row in rows})
    return {
        name: float(np.mean([bool(r["stopped"]) and r["stopped"] <= rounds for r in rows if r["dataset"] == name]))
        for name in datasets
    }


def settling(evidence: Evidence, variant: str, stage: str) -> Array:
    """For every run the round from which on the objective is within `SETTLED` of where it ends."""
    runs: dict[tuple[str, int, int], list[Row]] = {}
    for row in evidence.results.where("convergence", variant=variant, stage=stage):
        runs.setdefault((row["dataset"], row["repetition"], row["fold"]), []).append(row)
    rounds = []
    for run in runs.values():
        history = sorted(run, key=lambda row: row["round"])
        end = history[-1]["objective"]
        moving = [row["round"] for row in history if abs(row["objective"] - end) > SETTLED * abs(end)]
        rounds.append(max(moving, default=0) + 1)
    return np.array(rounds, dtype=np.float64)


def _shares(shares: dict[str, float]) -> str:
    return ", ".join(f"{TITLES[name]} {100 * share:.0f}%" for name, share in shares.items())


def _clusters_converge(evidence: Evidence) -> Claim:
    settled, tol = settling(evidence, "paper", "clusters"), evidence.results.spec("convergence")["tol"]
    plain = within(ends(evidence, "paper", "clusters"), CLUSTER_ROUNDS)
    return Claim(
        f"DFCM converges within {CLUSTER_ROUNDS} iterations on all data sets.",
        NOT_IN_TABLE,
        f"**{_yes(min(plain.values()) == 1)}**: runs of the plain iteration (rho_s = {PLAIN.cluster_penalty:g}) "
        f"with both residuals under {tol:g} by then: {_shares(plain)}. {LATER} its objective is within "
        f"{100 * SETTLED:g}% of where it ends after "
        f"{np.median(settled):.0f} rounds (median; at most {np.max(settled):.0f}). "
        f"Accelerated, it settles centers and agreement to {tol:g} in {_rounds(evidence, 'anderson', 'clusters')}; "
        f"the default settles centers in {_rounds(evidence, 'conjugate', 'clusters')}.",
    )


def _weights_converge(evidence: Evidence) -> Claim:
    rows, tol = ends(evidence, "paper", "weights"), evidence.results.spec("convergence")["tol"]
    plain = within(rows, WEIGHT_ROUNDS)
    above = max(row["objective"] / row["objective_pooled"] - 1 for row in rows)
    error = float(np.median([row["weights_error"] for row in rows]))
    return Claim(
        f"DICR converges within {WEIGHT_ROUNDS} iterations on all data sets.",
        NOT_IN_TABLE,
        f"**{_yes(min(plain.values()) == 1)}**: runs of the plain iteration (rho_p = {PLAIN.fixed_penalty:g}) with "
        f"both residuals under {tol:g} by then: {_shares(plain)}; the weights are still {error:.1g} (median, relative) "
        f"from the solution. {LATER} its objective is then at most {100 * above:.2g}% above its minimum. Accelerated, "
        f"it proves {tol:g} in {_rounds(evidence, 'anderson', 'weights')}, the default in "
        f"{_rounds(evidence, 'conjugate', 'weights')}.",
    )


def _yes(good: bool) -> str:
    return "Yes" if good else "No"


def _rounds(evidence: Evidence, variant: str, stage: str) -> str:
    rounds = [row["round"] for row in ends(evidence, variant, stage)]
    cap = evidence.results.spec("convergence")["max_rounds"]
    late = (
        f"; stopped at {cap} in {sum(count == cap for count in rounds)} of {len(rounds)} runs" if cap in rounds else ""
    )
    return f"{np.median(rounds):.0f} rounds (median; {min(rounds)} to {max(rounds)}{late})"


def grid_curve(evidence: Evidence, dataset: str, varied: str) -> tuple[list[float], Any, Any]:
    """NRMSE of distributed SFR-ICR over ridge or weight, the other held at `HELD`."""
    held = {"ridge": "weight", "weight": "ridge"}[varied]
    rows = evidence.results.where("grid", dataset=dataset, setting="distributed", method="SFR-ICR")
    return curve([row for row in rows if row[held] == HELD], varied)


def _best_values(evidence: Evidence, varied: str) -> dict[str, float]:
    best = {}
    for dataset in evidence.results.spec("penalties")["datasets"]:
        values, means, _ = grid_curve(evidence, dataset, varied)
        best[dataset] = values[int(means.argmin())]
    return best


def _consistency(evidence: Evidence) -> Claim:
    best = _best_values(evidence, "weight")
    good = all(value == 1.0 for value in best.values())
    found = ", ".join(f"{TITLES[name]} {value:g}" for name, value in best.items())
    return Claim(
        "The NRMSE drops as gamma (consistency) increases, with its lowest value at 1 on all data sets. (The paper "
        "prints mu = 1. We read gamma = 1: its next sentences speak of ICR, and say that the best mu differs.)",
        NOT_IN_TABLE,
        f"**{'Yes' if good else 'No'}**: lowest at {found}.",
    )


def _ridge(evidence: Evidence) -> Claim:
    best = _best_values(evidence, "ridge")
    low, *_, high = sorted(evidence.results.spec("grid")["grid"])
    inner = {name: low < best[name] < high for name in ("airfoil", "ch", "kch")}
    found = ", ".join(f"{TITLES[name]} {value:g}" for name, value in best.items())
    return Claim(
        "On Airfoil, CH and KCH the NRMSE falls with mu (ridge), reaches its bottom and climbs again.",
        NOT_IN_TABLE,
        f"**{'Yes' if all(inner.values()) else 'No'}**: lowest at {found} ({high:g} is the end of the grid).",
    )


def _penalty_means(evidence: Evidence, dataset: str, parameter: str) -> dict[float, float]:
    values, means, _ = curve(evidence.results.where("penalties", dataset=dataset, parameter=parameter), "value")
    return dict(zip(values, means.tolist(), strict=True))


def _rho_s(evidence: Evidence) -> Claim:
    spread = {}
    for dataset in evidence.results.spec("penalties")["datasets"]:
        means = _penalty_means(evidence, dataset, "rho_s").values()
        spread[dataset] = max(means) - min(means)
    found = ", ".join(f"{TITLES[name]} {value:.4f}" for name, value in spread.items())
    return Claim(
        "The error varies little with rho_s.",
        NOT_IN_TABLE,
        f"**{'Yes' if max(spread.values()) < FLAT else 'No'}**: largest difference of the means {found}.",
    )


def _rho_p(evidence: Evidence) -> Claim:
    good, texts, spec = True, [], evidence.results.spec("penalties")
    for dataset in spec["datasets"]:
        means = _penalty_means(evidence, dataset, "rho_p")
        small = min(mean for value, mean in means.items() if value <= LARGE_PENALTY)
        large = max(mean for value, mean in means.items() if value > LARGE_PENALTY)
        good &= large < small
        texts.append(f"{TITLES[dataset]} {large:.3f} (worst above) against {small:.3f} (best up to {LARGE_PENALTY:g})")
    return Claim(
        f"rho_p performs better with values greater than {LARGE_PENALTY:g}.",
        NOT_IN_TABLE,
        f"**{'Yes' if good else 'No'}**: {'; '.join(texts)}, after {spec['max_rounds']} rounds. It is the "
        "speed of ADMM that is seen, "
        "not a property of the solution.",
    )


def _pair_means(evidence: Evidence, dataset: str) -> tuple[list[float], list[float]]:
    values, means, _ = curve(evidence.results.where("pairs", dataset=dataset), "pairs")
    return values, means.tolist()


def _pairs_shape(evidence: Evidence) -> Claim:
    climbs = {}
    for dataset in BEST_PAIRS:
        _, means = _pair_means(evidence, dataset)
        climbs[dataset] = means[-1] - min(means)
    good = all(climb > FLAT for climb in climbs.values())
    found = ", ".join(f"{TITLES[name]} {climb:+.4f}" for name, climb in climbs.items())
    return Claim(
        "With more interpolated pairs the NRMSE declines first, then climbs after a minimum.",
        NOT_IN_TABLE,
        f"**{'Yes' if good else 'No'}**: from the minimum to the largest number of pairs it changes by {found}.",
    )


def _pairs_best(evidence: Evidence) -> Claim:
    texts, good = [], True
    for dataset, said in BEST_PAIRS.items():
        values, means = _pair_means(evidence, dataset)
        best = values[int(np.argmin(means))]
        enough = next(value for value, mean in zip(values, means, strict=True) if mean < min(means) + FLAT)
        good &= 1 / NEAR <= best / said <= NEAR
        texts.append(
            f"{TITLES[dataset]} {best:,.0f} (paper {said:,}; within {FLAT} of the lowest from {enough:,.0f} on)"
        )
    return Claim(
        f"The best number of pairs is near the number of training rows: {_listed(BEST_PAIRS)}.",
        _near_training_rows(),
        f"**{'Yes' if good else 'No'}**: lowest at {'; '.join(texts)} pairs per agent. The penalty is a sum over "
        "pairs, so more pairs act as a larger consistency weight: where the best number lies depends on that weight.",
    )


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{TITLES[name]} {count:,}" for name, count in counts.items())


def _near_training_rows() -> str:
    """Whether the paper's best numbers of pairs are near the training rows of its Table I."""
    rows = {name: training_rows(name) for name in BEST_PAIRS}
    near = all(1 / NEAR <= BEST_PAIRS[name] / rows[name] <= NEAR for name in rows)
    return f"**{_yes(near)}**: training rows by Table I are {_listed(rows)} (near: within a factor of {NEAR:g})."


def _more_rules(evidence: Evidence) -> Claim:
    texts, good = [], True
    for count in evidence.results.spec("rules")["label_counts"]:
        for dataset in evidence.results.spec("rules")["datasets"]:
            values, means, _ = curve(evidence.results.where("rules", dataset=dataset, labels=count), "rules")
            rank = float(spearmanr(values, means).statistic)
            good &= rank < -0.7
            texts.append(
                f"{TITLES[dataset]}, {count} labels: {means[0]:.3f} with {values[0]}, {means[-1]:.3f} with "
                f"{values[-1]}, rank correlation {rank:+.2f}"
            )
    return Claim("The more rules, the better.", NOT_IN_TABLE, f"**{'Yes' if good else 'No'}**: {'; '.join(texts)}.")


def _stable_agents(evidence: Evidence) -> Claim:
    """Stable: the means differ by less than `FLAT`, as for the other curves."""
    spreads, later = {}, []
    for dataset in evidence.results.spec("agents")["datasets"]:
        rows = evidence.results.where("agents", dataset=dataset)
        values, means, _ = curve(rows, "agents")
        spreads[dataset] = float(np.ptp(means))
        later.append(f"{TITLES[dataset]} {_spread_of_medians(rows)}")
    found = ", ".join(f"{TITLES[name]} {spread:.4f}" for name, spread in spreads.items())
    return Claim(
        "DSFR is stable over the number of agents.",
        NOT_IN_TABLE,
        f"**{_yes(max(spreads.values()) < FLAT)}**: largest difference of the means over {values[0]} to {values[-1]} "
        f"agents: {found}. {LATER} largest difference of the medians, against the quartile range of the runs: "
        f"{', '.join(later)}.",
    )


def _spread_of_medians(rows: list[Row]) -> str:
    values, middles = medians(rows, "agents")
    errors = [[row["nrmse"] for row in rows if row["agents"] == value] for value in values]
    usual = float(np.median(np.subtract(*np.percentile(errors, [75, 25], axis=1))))
    return f"{np.ptp(middles):.4f} against {usual:.4f}"
