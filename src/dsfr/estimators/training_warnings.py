"""Warnings after a training that did not go as asked, or on rows that are not as they should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sklearn.exceptions import ConvergenceWarning

from dsfr.training import Settings, Training

MAX_DUPLICATES = 0.01
"""Share of duplicates among all rows above which there is a warning: large tables often have a few."""


def training_warnings(
    training: Training, settings: Settings, n_agents: int, missing: Sequence[str]
) -> Iterator[tuple[type[Warning], str]]:
    """Category and text of every warning."""
    for stage in training.unconverged:
        bounds = [info.error_bound for info in training.history if info.stage == stage]
        yield ConvergenceWarning, settings.solver.unconverged(stage, bounds[-1] if bounds else float("inf"))
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
    if training.n_duplicates > MAX_DUPLICATES * n_rows:
        yield (
            UserWarning,
            f"{training.n_duplicates} of {n_rows} rows are duplicates of others and were left out, so that every row "
            "counts once. Remove them (a join may have repeated rows) to silence this.",
        )
    if n_agents == 1 and (unused := settings.solver.unused_by_one_agent()):
        yield UserWarning, unused
