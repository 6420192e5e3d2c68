"""Claims about convergence, judged by the paper's own tests (30) and (31) and by the loss that it plots."""

from __future__ import annotations

import numpy as np

from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import NOT_IN_TABLE, POST_HOC, Claim, Evidence, list_datasets, yes_or_no
from dsfr.paper.reproduction.published import ADMM_PENALTY, CLUSTER_ROUNDS, WEIGHT_ROUNDS
from dsfr.paper.reproduction.summary import group_by


def last_rounds(evidence: Evidence, variant: str, stage: str) -> list[Row]:
    """Last round of every run of one stage."""
    return evidence.results.where("convergence", variant=variant, stage=stage, last=True)


def share_within(rows: list[Row], rounds: int, test: str) -> dict[str, float]:
    """Share of the runs, by data set, that passed a test within that many rounds."""
    return {
        name: float(np.mean([_is_within(row[test], rounds) for row in runs]))
        for (name,), runs in sorted(group_by(rows, "dataset").items())
    }


def _is_within(passed: int | None, rounds: int) -> bool:
    return passed is not None and passed <= rounds


def clusters_converge(evidence: Evidence) -> Claim:
    """DFCM, by its tests and by its loss."""
    tol = evidence.results.spec("convergence")["tol"]
    return Claim(
        f"DFCM converges within {CLUSTER_ROUNDS} iterations on all data sets.",
        NOT_IN_TABLE,
        f"{_verdicts(evidence, 'clusters', CLUSTER_ROUNDS, 'rho_s')} {POST_HOC} accelerated ADMM reaches {tol:g} for "
        f"centers and agreement in {_rounds(evidence, 'anderson', 'clusters')}; the default reaches it for centers in "
        f"{_rounds(evidence, 'conjugate', 'clusters')}.",
    )


def weights_converge(evidence: Evidence) -> Claim:
    """DICR, by the same tests on weights and by its loss."""
    rows, tol = last_rounds(evidence, "paper", "weights"), evidence.results.spec("convergence")["tol"]
    excess = max(row["objective"] / row["objective_pooled"] - 1 for row in rows)
    error = float(np.median([row["weights_error"] for row in rows]))
    return Claim(
        f"DICR converges within {WEIGHT_ROUNDS} iterations on all data sets.",
        NOT_IN_TABLE,
        f"{_verdicts(evidence, 'weights', WEIGHT_ROUNDS, 'rho_p')} The paper prints these tests for DFCM and gives the "
        f"same threshold for DICR. {POST_HOC} after {WEIGHT_ROUNDS} rounds the loss is at most {100 * excess:.2g}% "
        f"above its minimum and the relative error of the weights is {error:.1g} (median). Accelerated ADMM certifies "
        f"{tol:g} in {_rounds(evidence, 'anderson', 'weights')}, the default in "
        f"{_rounds(evidence, 'conjugate', 'weights')}.",
    )


def _verdicts(evidence: Evidence, stage: str, rounds: int, penalty: str) -> str:
    """By the paper's tests, and by the change of the loss from round to round, absolute and relative."""
    rows, tol = last_rounds(evidence, "paper", stage), evidence.results.spec("convergence")["tol"]
    passed = share_within(rows, rounds, "stopped")
    counts = [sum(_is_within(row[test], rounds) for row in rows) for test in ("loss_settled", "loss_settled_relative")]
    return (
        f"By the paper's tests (30) and (31), squared differences of iterates for each agent and cluster, threshold "
        f"{tol:g}: {yes_or_no(min(passed.values()) == 1)}; share of the runs of its ADMM ({penalty} = "
        f"{ADMM_PENALTY:g}) that pass them by then: {list_datasets(passed, '.0%')}. By the loss that it plots, which "
        f"is a sum over rows: {yes_or_no(counts[1] == len(rows))}; by then it changes in a round by at most {tol:g} of "
        f"its value in {counts[1]} of {len(rows)} runs (by at most {tol:g} itself in {counts[0]})."
    )


def _rounds(evidence: Evidence, variant: str, stage: str) -> str:
    rounds = [row["round"] for row in last_rounds(evidence, variant, stage)]
    limit = evidence.results.spec("convergence")["max_rounds"]
    n_stopped = rounds.count(limit)
    stopped = f"; stopped at {limit} in {n_stopped} of {len(rounds)} runs" if n_stopped else ""
    return f"{np.median(rounds):.0f} rounds (median; {min(rounds)} to {max(rounds)}{stopped})"
