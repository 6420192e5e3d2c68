"""Statements of others about the paper's experiments, checked against its printed table and against our runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsfr.paper.reproduction.claims import Claim, Evidence, cell_name, list_datasets
from dsfr.paper.reproduction.convergence import last_rounds, share_within
from dsfr.paper.reproduction.published import (
    ADMM_PENALTY,
    AUTHORS_RULES,
    METHODS,
    PAPER,
    SETTINGS,
    STATED_RIDGE,
    STATED_UNCONVERGED,
    TITLES,
    WEIGHT_ROUNDS,
)
from dsfr.paper.reproduction.summary import REFERENCE

WITHOUT_LAPWNN = tuple(method for method in METHODS if method != "LapWNN")


def statements(evidence: Evidence) -> list[Claim]:
    """Statements that can be checked from the printed table or from our runs."""
    return [
        _swapped(evidence),
        _repeated_cells(),
        _round_limit(evidence),
        _tiny_ridge(evidence),
        _artificial(evidence),
    ]


UNTESTED = (
    f"The authors' program used different numbers of rules: {list_datasets(AUTHORS_RULES)}.",
    "It used raw targets, so that a ridge means something else on every data set.",
    "It labelled the same row positions on every agent.",
    "It estimated the widths of the centralised method anew on the test rows.",
    "Its published artificial file is not the data the paper describes.",
)
"""Statements about the authors' program, which is not part of this repository; our runs cannot check them."""


def _swapped(evidence: Evidence) -> Claim:
    """Supported if the means of both data sets are nearer to the other one's row in most cells."""
    other, texts, crossed = {"kch": "ch", "ch": "kch"}, [], 0
    for ours, row in other.items():
        counts = [_nearer(evidence, ours, row, methods) for methods in (METHODS, WITHOUT_LAPWNN)]
        crossed += counts[0] > len(METHODS)
        texts.append(
            f"our {TITLES[ours]} is nearer to the row of {TITLES[row]} in {counts[0]} of "
            f"{len(SETTINGS) * len(METHODS)} cells ({counts[1]} of {len(SETTINGS) * len(WITHOUT_LAPWNN)})"
        )
    same = {name: name for name in other}
    printed, swapped = ([_distance(evidence, rows, m) for m in (METHODS, WITHOUT_LAPWNN)] for rows in (same, other))
    verdict = ("Not supported", "Partly supported", "Supported")[crossed]
    return Claim(
        "The KCH and CH rows of Table II look swapped.",
        "The table alone does not show it.",
        f"**{verdict}**: {'; '.join(texts)}. Mean absolute difference {printed[0]:.3f} ({printed[1]:.3f}) as printed, "
        f"{swapped[0]:.3f} ({swapped[1]:.3f}) swapped. In brackets: without LapWNN.",
    )


def _nearer(evidence: Evidence, ours: str, row: str, methods: Sequence[str]) -> int:
    """Number of cells in which our mean is nearer to the row of the other data set than to its own."""
    count = 0
    for setting in SETTINGS:
        for method in methods:
            mean = evidence.cells[ours, setting, method].best_on_test.mean
            distance = {name: abs(mean - PAPER[name, setting, method].mean) for name in (ours, row)}
            count += distance[row] < distance[ours]
    return count


def _distance(evidence: Evidence, row_of: dict[str, str], methods: Sequence[str]) -> float:
    """Mean absolute difference between our means and the given rows of the paper."""
    differences = [
        evidence.cells[ours, setting, method].best_on_test.mean - PAPER[row, setting, method].mean
        for ours, row in row_of.items()
        for setting in SETTINGS
        for method in methods
    ]
    return float(np.abs(differences).mean())


def _repeated_cells() -> Claim:
    """Cells of different data sets with the same mean, deviation and time cannot both be measurements."""
    seen: dict[tuple[str, float, float, float], list[str]] = {}
    for (dataset, setting, method), cell in PAPER.items():
        key = (method, cell.mean, cell.deviation, cell.seconds)
        seen.setdefault(key, []).append(cell_name(dataset, setting))
    repeated = [f"{key[0]} on {' and '.join(names)}" for key, names in seen.items() if len(names) > 1]
    return Claim(
        "Some cells of Table II were copied from others.",
        f"**Yes**: mean, deviation and seconds are identical for {'; '.join(repeated)}." if repeated else "**No**.",
        "No run needed.",
    )


def _round_limit(evidence: Evidence) -> Claim:
    rows, spec = last_rounds(evidence, "paper", "weights"), evidence.results.spec("convergence")
    unconverged = {name: 1 - share for name, share in share_within(rows, WEIGHT_ROUNDS, "stopped").items()}
    difference = float(np.max([abs(row["nrmse"] - row["nrmse_pooled"]) for row in rows]))
    return Claim(
        f"{WEIGHT_ROUNDS} rounds is the limit at which DICR is stopped; share of the folds: "
        f"{list_datasets(STATED_UNCONVERGED, '.0%')}.",
        "The table alone does not show it.",
        f"Share of the runs of the paper's ADMM (rho_p = {ADMM_PENALTY:g}, ridge {spec['ridge']:g}, consistency "
        f"{spec['consistency']:g}) that have not passed its tests after {WEIGHT_ROUNDS} rounds: "
        f"{list_datasets(unconverged, '.0%')}. "
        f"The NRMSE then differs by up to {difference:.3f} from that of the solution.",
    )


def _tiny_ridge(evidence: Evidence) -> Claim:
    cell, texts = PAPER["airfoil", "centralised", "s-SFR"], []
    for ridge in evidence.results.spec("grid")["grid"]:
        rows = evidence.results.where("grid", dataset="airfoil", setting="centralised", method="s-SFR", ridge=ridge)
        errors = [row["nrmse"] for row in rows]
        texts.append(f"{np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f} at {ridge:g}")
    return Claim(
        f"s-SFR has a huge standard deviation on Airfoil ({cell.mean:.2f} ± {cell.deviation:.2f}) because its ridge "
        f"was {STATED_RIDGE:g}.",
        "The table alone does not show it.",
        f"Our centralised s-SFR over the grid of ridges (targets standardised): {', '.join(texts)}.",
    )


def _artificial(evidence: Evidence) -> Claim:
    cells = {setting: evidence.cells["artificial", setting, "FR"].best_on_test for setting in SETTINGS}
    icr = evidence.cells["artificial", "centralised", REFERENCE].best_on_test.mean
    found = ", ".join(f"{errors.mean:.3f} {setting}" for setting, errors in cells.items())
    return Claim(
        "The artificial set has no learnable signal: FR with every label is no better than predicting the mean.",
        f"**Yes**: FR has NRMSE {PAPER['artificial', 'centralised', 'FR'].mean:.4f} (predicting the mean has 1).",
        f"The set generated as the paper describes it has some signal: FR {found}, SFR-ICR {icr:.3f} centralised. The "
        "added noise is most of the variance of the targets.",
    )
