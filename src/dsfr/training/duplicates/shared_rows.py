"""Labelled rows that several agents hold: found by keyed hashes, and kept by one of them.

Every agent has a ticket, and puts it at places of some tables that hashes of its labelled rows choose. The maximum over
agents tells an agent that its row has the places of a row of an agent with a higher ticket, and so is this row.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import numpy as np

from dsfr.core.arrays import IntArray
from dsfr.core.duplicates import Coincidences
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.duplicates.distinct_rows import (
    NOTE_FIELDS,
    NOTES,
    is_labeled,
    labeled_rows,
    notes_of,
    rows_of_groups,
)
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import array, whole, within
from dsfr.training.tasks.fields import COUNT, SEED
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.symbols import MOST

MOST_MATCHED = 5_000
"""Labels of all agents up to which rows that two agents hold are sought."""
TABLES, PLACES_PER_LABEL = 4, 16
"""Tables of hashes for finding rows that two agents hold, and their least length for each label: a row is mistaken for
one of another agent with probability 16^-4 at most."""


HASHED = {"tables": array(TABLES, "l", rules=(within(0.0, 1.0),))}


@task(
    verb="max",
    stage="survey",
    reveals="The agent's ticket at places of four tables that keyed hashes (BLAKE2b) of its labelled rows choose; see "
    "below. Where labels choose, with several agents and up to 5,000 labels.",
    broadcast={"seed": SEED, "n_places": whole(1, MOST["l"])},
    contributes=HASHED,
    limited=False,
)
def mark_labels(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): the agent's ticket at the places that keyed hashes of its labelled rows have in several tables."""
    tables = np.zeros((TABLES, int(broadcast["n_places"])))
    places = _places(shard, broadcast)
    for table, taken in zip(tables, places, strict=True):
        table[taken] = _ticket(shard, int(broadcast["seed"]))
    return memory, {"tables": tables}


@task(
    verb="sum",
    stage="survey",
    reveals="How many of the agent's labelled rows another agent holds as well. As `mark_labels`.",
    broadcast={"seed": SEED, **HASHED},
    contributes={"dropped": COUNT},
    recalls={**NOTE_FIELDS, "label_groups": replace(NOTE_FIELDS["label_groups"], shape=("g_before",))},
    remembers=NOTES,
    limited=False,
    distinct=False,
)
def drop_matched(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): leave out labelled rows that an agent with a higher ticket holds as well; count them."""
    tables = broadcast["tables"]
    places = _places(shard.without_duplicates(memory), {**broadcast, "n_places": np.asarray(tables.shape[1])})
    there = np.stack([table[taken] for table, taken in zip(tables, places, strict=True)])
    matched = (there > _ticket(shard, int(broadcast["seed"]))).all(axis=0)
    if not matched.any():
        return memory, {"dropped": scalar(0.0)}
    labeled = is_labeled(shard)
    kept = np.ones(len(labeled), dtype=bool)
    if "kept_rows" in memory:
        kept = np.unpackbits(memory["kept_rows"], count=len(labeled)).view(bool)
    kept[np.flatnonzero(kept & labeled)[matched]] = False
    notes = notes_of(kept, labeled)
    if "label_groups" in memory:
        notes["label_groups"] = rows_of_groups(memory["label_groups"], 0, matched.size)[~matched]
    return {**memory, **notes}, {"dropped": scalar(int(np.count_nonzero(matched)))}


def match_labels(engine: Engine, seed: Bundle, n_labeled: float) -> float:
    """Let one agent keep a labelled row that several hold; how many the others leave out."""
    marked = engine.max("mark_labels", {**seed, "n_places": np.asarray(n_places(n_labeled), dtype=np.int64)})
    return float(engine.sum("drop_matched", {**seed, **marked})["dropped"])


def n_places(n_labeled: float) -> int:
    """Length of a table for so many labels, a power of 2."""
    exponent = int(np.ceil(np.log2(PLACES_PER_LABEL * max(n_labeled, 1.0))))
    return 1 << exponent


def are_distinctive(found: Coincidences, n_rows: float) -> bool:
    """Whether not one pair of equal labelled rows is expected by chance in the whole table of ``n_rows``.

    Judged by the pairs within agents: if these have equal rows that are not duplicates, agents have them in common too.
    """
    expected = found.expected / max(found.pairs, 1.0) * n_rows * (n_rows - 1.0) / 2.0
    return expected < 1.0 and (found.equal == 0.0 or found.are_duplicates)


def _places(shard: Shard, broadcast: Bundle) -> IntArray:
    """Places of the labelled rows in the tables, by keyed cryptographic hashes; shape (TABLES, n)."""
    X, y = labeled_rows(shard)
    rows = np.column_stack([X, y]) + 0.0
    key = int(broadcast["seed"]).to_bytes(32, "little")
    digests = [blake2b(row.tobytes(), key=key, digest_size=8 * TABLES).digest() for row in rows]
    numbers = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, TABLES)
    places: IntArray = (numbers % np.uint64(broadcast["n_places"])).astype(np.int64).T
    return places


def _ticket(shard: Shard, seed: int) -> float:
    """A positive number of the agent's own: of rows that two agents hold, the higher keeps its one."""
    return 1.0 - shard.rng(seed, Purpose.DUPLICATES, repeat=1).random()
