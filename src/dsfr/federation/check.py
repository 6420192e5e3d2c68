"""What an owner checks on its own table before it joins a fit: answers are yes or no, and nothing leaves."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dsfr.disclosure import Policy
from dsfr.io.agent_files import Columns, read_shard
from dsfr.training import RangeScaling


def check_table(path: Path, columns: Columns, ranges: RangeScaling, policy: Policy) -> dict[str, bool]:
    """Whether a table has the columns, and keeps declared ranges and the rules on rows and labels.

    Raises
    ------
    ValueError
        If columns are missing or not numbers; the message names them.
    """
    policy.check_columns(columns.features)
    shard = read_shard(path.stem, path, columns)
    within, declared = np.ones(shard.n_features, dtype=bool), ranges.declared
    low, high = ranges.target_range
    target_within = True
    for X, y in shard.batches():
        assert declared is not None
        within &= ((declared.low <= X) & (declared.high >= X)).all(axis=0)
        known = y[~np.isnan(y)]
        target_within &= bool(((known >= low) & (known <= high)).all())
    answers = {"all columns are there, and are numbers or known levels": True}
    answers |= {
        f"{name} is within its range": bool(fits)
        for name, fits in zip(columns.schema.feature_names, within, strict=True)
    }
    answers[f"{columns.target} is within its range"] = target_within
    answers[f"at least {policy.min_rows} rows"] = shard.n_samples >= policy.min_rows
    answers[f"no labels, or at least {policy.min_labels}"] = not 0 < shard.n_labeled < policy.min_labels
    return answers
