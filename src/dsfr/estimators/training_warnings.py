"""Warnings after a training that did not go as asked, or on rows that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sklearn.exceptions import ConvergenceWarning

from dsfr.training import Settings, Training

WORTH_A_WARNING = 0.01
"""Share of duplicates among all rows above which they are worth a warning: large tables often have a few."""


def training_warnings(
    training: Training, settings: Settings, n_agents: int, missing: Sequence[str]
) -> Iterator[tuple[type[Warning], str]]:
    """What a person should know of a training that went otherwise than asked, and the kind of warning it is."""
    for stage in training.unconverged:
        bounds = [info.error_bound for info in training.history if info.stage == stage]
        yield ConvergenceWarning, _not_converged(stage, bounds[-1], settings)
    if missing:
        yield (
            UserWarning,
            f"{len(missing)} of {n_agents} agents were missing in the last round: {', '.join(missing)}. "
            "The model is that of the others; ledger_.agents has the rounds each took part in.",
        )
    if training.odd_target is not None:
        value, limit = training.odd_target
        yield (
            UserWarning,
            f"a target of {value:g} is far off all others and counted as {limit:g}. Make it NaN if it stands for a "
            "missing value, or correct it.",
        )
    n_rows = training.n_samples + training.n_duplicates
    if training.n_duplicates > WORTH_A_WARNING * n_rows:
        yield (
            UserWarning,
            f"{training.n_duplicates} of {n_rows} rows are duplicates of others and were left out, so that every row "
            "counts once. Remove them (a join may have repeated rows) to silence this.",
        )
    if settings.refresh_pairs and n_agents == 1:
        yield (
            UserWarning,
            "refresh_pairs=True had no effect: a single agent solves for the weights once, so pairs are drawn once. "
            "Use several agents, or leave it out.",
        )


def _not_converged(stage: str, bound: float, settings: Settings) -> str:
    verdict = "The model is usable" if bound < 0.01 else "The model may be far from the solution"
    remedy = "raise max_rounds" if settings.sums_only else 'raise max_rounds or take solver="exact"'
    return (
        f"the {stage} did not reach tol={settings.tol:g} within max_rounds={settings.max_rounds} "
        f"(error bound {bound:.1e}). {verdict}; for a better one {remedy}."
    )
