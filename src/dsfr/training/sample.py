"""Rows of an agent that belong to a sample: found in one pass, and kept in memory for the passes that follow."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import row_blocks
from dsfr.core.duplicates import row_hashes
from dsfr.core.sampling import SAMPLE_ROWS, highest_hash, in_sample
from dsfr.training.changed_rows import LimitedRows, LogRows
from dsfr.training.rows import LIMITED_ROWS, ArrayRows, DistinctRows, Rows, chosen, joined, no_rows, weighted

MOST_SAMPLED = 8 * SAMPLE_ROWS
"""Rows of a sample that an agent keeps, whatever share it is asked for: those of the lowest hashes. Of a share that was
made for all agents' rows it has less."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of a sample, and what they are a sample of."""

    source: Rows
    share: float
    rows: ArrayRows

    def is_of(self, source: Rows, share: float) -> bool:
        """Whether it is this sample."""
        if isinstance(source, DistinctRows) and isinstance(self.source, DistinctRows):
            same = source.rows is self.source.rows and np.array_equal(source.packed, self.source.packed)
        else:
            same = source is self.source
        return same and share == self.share


def sampled_only(rows: Rows, share: float, known: Sample | None) -> tuple[Rows, Sample]:
    """A sample of rows, and what is to be kept of it; ``known`` is what was kept before.

    Rows are chosen by their values before these are moved to limits, which may make many of them equal.
    """
    if isinstance(rows, LimitedRows | LogRows):
        source, sample = sampled_only(rows.rows, share, known)
        return replace(rows, rows=source), sample
    sample = known if known is not None and known.is_of(rows, share) else Sample(rows, share, _collected(rows, share))
    return sample.rows, sample


def _collected(rows: Rows, share: float) -> ArrayRows:
    found, highest = no_rows(rows.n_features), highest_hash(share)
    for batch in weighted(rows):
        for part in row_blocks(len(batch[1]), LIMITED_ROWS):
            among = chosen(batch, part)
            found = joined([found, chosen(among, in_sample(among[0], highest))])
            if len(found[1]) > MOST_SAMPLED:
                highest = np.partition(row_hashes(found[0]), MOST_SAMPLED)[MOST_SAMPLED]
                found = chosen(found, in_sample(found[0], highest))
    return ArrayRows(*found)
