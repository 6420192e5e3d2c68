"""The distributed half of Table II by the paper's ADMM, beside the default solver: errors, rounds, kilobytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import Evidence
from dsfr.paper.reproduction.document import table
from dsfr.paper.reproduction.published import ADMM_PENALTY, DATASETS, METHODS, TITLES
from dsfr.paper.reproduction.summary import REFERENCE

HEADER = (
    *("data, method", "NRMSE, paper's ADMM", "NRMSE, ours", "largest difference", "rounds, paper's ADMM"),
    *("rounds, ours", "kB, paper's ADMM", "kB, ours", "passed the paper's tests"),
)


@dataclass(frozen=True, slots=True)
class Contrast:
    """Fits of one method on one data set by both solvers."""

    admm: list[Row]
    ours: list[Row]

    def means(self, column: str) -> tuple[float, float]:
        """Mean by the paper's ADMM, and by ours."""
        first, second = (float(np.mean([row[column] for row in rows])) for rows in (self.admm, self.ours))
        return first, second

    @property
    def largest_difference(self) -> float:
        """Largest difference of the NRMSE of one run."""
        errors = [{(row["repetition"], row["fold"]): row["nrmse"] for row in rows} for rows in (self.admm, self.ours)]
        return max(abs(float(error) - float(errors[1][run])) for run, error in errors[0].items())

    @property
    def passed(self) -> float:
        """Share of the fits that passed the paper's stopping tests in both stages."""
        return float(np.mean([row["converged"] for row in self.admm]))


def contrast(evidence: Evidence, dataset: str, method: str) -> Contrast:
    """Stored fits by both solvers, on the runs that both have."""
    where = evidence.results.where
    admm = where("admm", dataset=dataset, method=method)
    runs = {(row["repetition"], row["fold"]) for row in admm}
    ours = where("fits", dataset=dataset, method=method, setting="distributed")
    return Contrast(admm, [row for row in ours if (row["repetition"], row["fold"]) in runs])


def admm_table(evidence: Evidence) -> str:
    """One line for each method on each data set."""
    rows = []
    for dataset in DATASETS:
        for method in METHODS:
            found = contrast(evidence, dataset, method)
            errors, rounds, sent = (found.means(column) for column in ("nrmse", "rounds", "kilobytes"))
            rows.append(
                [
                    f"{TITLES[dataset]}, {f'**{method}**' if method == REFERENCE else method}",
                    *(f"{error:.4f}" for error in errors),
                    f"{found.largest_difference:.4f}",
                    *(f"{number:.0f}" for number in (*rounds, *sent)),
                    f"{100 * found.passed:.0f}%",
                ]
            )
    return table(HEADER, rows)


def admm_notes(evidence: Evidence) -> str:
    """What was run for the table."""
    spec = evidence.results.spec("admm")
    runs, all_runs = (evidence.results.n_runs(name) for name in ("admm", "fits"))
    return (
        f"The same fits by the paper's ADMM (rho_s = rho_p = {ADMM_PENALTY:g}, stopping tests (30) and (31), at most "
        f"{spec['max_rounds']} rounds a stage) and by ours, which the tables above show: L-BFGS on exact sums for the "
        "clusters and preconditioned conjugate residuals for the weights. Both solve the same problem with the same "
        f"pairs, start and grid values, in the same {runs} runs{f' (of {all_runs})' if runs < all_runs else ''}. "
        "Rounds and kilobytes are those of a whole fit, all agents together."
    )


def admm_finding(evidence: Evidence) -> str:
    """Error, rounds and kilobytes of SFR-ICR by both solvers."""
    texts, ratios = [], []
    for dataset in DATASETS:
        found = contrast(evidence, dataset, REFERENCE)
        errors, rounds, sent = (found.means(column) for column in ("nrmse", "rounds", "kilobytes"))
        ratios.append((rounds[0] / rounds[1], sent[0] / sent[1]))
        texts.append(
            f"{TITLES[dataset]} NRMSE {errors[0]:.4f} in {rounds[0]:.0f} rounds and {sent[0]:,.0f} kB against "
            f"{errors[1]:.4f} in {rounds[1]:.0f} and {sent[1]:,.0f} kB"
        )
    fewer, less = np.median(np.array(ratios), axis=0)
    return (
        f"**The paper's ADMM against ours**, distributed SFR-ICR: {'; '.join(texts)}. Ours takes {fewer:.0f} times "
        f"fewer rounds and {less:.0f} times fewer bytes (medians)."
    )
