"""Duplicate rows count once where labels choose: found by every agent among its own rows, and between agents by hashes.

Whether equal rows are duplicates is decided from sums over agents, see `dsfr.core.duplicates`. Every agent then notes
which of its rows are left, and all tasks that follow see these alone. Labelled rows with equal features and different
targets are all kept, but left out together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, fields, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray
from dsfr.core.duplicates import (
    Coincidences,
    Hashes,
    NearPairs,
    Neighborhood,
    column_hashes,
    equal_pairs,
    first_of_equal,
    near_groups,
    row_hashes,
    without_repetition,
)
from dsfr.core.sampling import effective_rows, sample_share
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.duplicates.distinct_rows import NOTES, is_labeled, labeled_rows, notes_of, of_kind
from dsfr.training.duplicates.shared_rows import MOST_MATCHED, are_distinctive, match_labels
from dsfr.training.settings import Settings
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import Fields, array, at_least, number, optional
from dsfr.training.tasks.fields import COUNT, SEED, TRUTH
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.symbols import MOST

Hashing: TypeAlias = Callable[[Array, Array], Hashes]
"""Hashes of rows, from features and targets."""

MOST_COMPARED = MOST["g"]
"""Labelled rows of an agent up to which near duplicates are sought, and rows with equal features left out together."""
MOST_HASHED = 2**24
"""Hashes of rows that are sorted at once; for more rows there are several passes."""
MOST_WEIGHED = 2**22
"""Rows of a kind from which chance is estimated; of more, a random sample of about so many."""
KINDS = {"labeled": (True, True), "features": (True, False), "unlabeled": (False, False)}
"""Kinds of rows that may be equal: whether they are labelled, and whether targets count as well."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is done about equal rows; numbers instead of truth values, to be sent."""

    labeled: float = 0.0
    """Equal labelled rows are duplicates."""
    near: float = 0.0
    """So are nearly equal ones."""
    unlabeled: float = 0.0
    """Equal unlabelled rows are duplicates."""
    groups: float = 0.0
    """Labelled rows with equal features are left out together."""
    near_groups: float = 0.0
    """So are those with nearly equal features."""


def _coincidence_fields(kind: str, n_columns: str) -> Fields:
    """Arrays of the coincidences of one kind of rows, all of them or none."""
    first, *others = (f"{kind}_{field.name}" for field in fields(Coincidences))
    columns = array(n_columns, rules=(at_least(0.0),))
    by_column = {f"{kind}_all_but", f"{kind}_alike"}
    return {first: optional(COUNT)} | {
        name: replace(columns if name in by_column else COUNT, beside=first) for name in others
    }


# Begins a training: notes of an earlier one are forgotten.
@task(
    verb="sum",
    stage="survey",
    reveals="How often rows repeat: numbers of pairs of equal rows and of nearly equal ones, and the numbers of rows "
    "and labels. Where labels choose.",
    broadcast={},
    contributes={
        "equal": array(len(KINDS), rules=(at_least(0.0),)),
        "near": array(2, len(fields(NearPairs)), rules=(at_least(0.0),)),
        "n_labeled": COUNT,
        "n_samples": COUNT,
    },
    limited=False,
    distinct=False,
    opening=True,
)
def count_duplicates(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): pairs of equal rows (labelled; labelled, by features alone; unlabelled) and of nearly equal ones."""
    equal = [_equal_pairs(shard, *kind) for kind in KINDS.values()]
    near = [NearPairs(0.0, 0.0, 0.0, 0.0)] * 2
    if shard.n_labeled <= MOST_COMPARED:
        X, y = labeled_rows(shard)
        near = [_near_pairs(np.column_stack([X, y])), _near_pairs(X)]
    return {}, {
        "equal": np.array(equal),
        "near": np.array([astuple(found) for found in near]),
        "n_labeled": scalar(shard.n_labeled),
        "n_samples": scalar(shard.n_samples),
    }


@task(
    verb="sum",
    stage="survey",
    reveals="How often rows and values of a column repeat: numbers of pairs of rows that agree in all columns, in one, "
    "or in all but one. Where labels choose.",
    broadcast={"seed": SEED, "asked": array(len(KINDS), rules=(TRUTH,))},
    contributes={
        **_coincidence_fields("labeled", "d+1"),
        **_coincidence_fields("features", "d"),
        **_coincidence_fields("unlabeled", "d"),
    },
    limited=False,
    distinct=False,
)
def weigh_duplicates(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): how often rows agree, in all columns and in some, for the kinds that are asked for."""
    contribution = Bundle()
    for name in itertools.compress(KINDS, broadcast["asked"]):
        found = _coincidences(shard, int(broadcast["seed"]), *KINDS[name])
        contribution |= {f"{name}_{field}": array for field, array in pack(found).items()}
    return memory, contribution


@task(
    verb="sum",
    stage="survey",
    reveals="How many of the agent's rows are duplicates of others of its own. Where labels choose.",
    broadcast={field.name: number(TRUTH) for field in fields(Verdict)},
    contributes={"dropped": COUNT},
    remembers=NOTES,
    limited=False,
    distinct=False,
)
def drop_duplicates(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): note which rows are left, and which labelled ones are left out together; count the others."""
    verdict = unpack(Verdict, broadcast)
    labeled = is_labeled(shard)
    kept = np.ones(len(labeled), dtype=bool)
    kept[labeled] = _kept(shard, labeled=True, as_duplicates=bool(verdict.labeled))
    kept[~labeled] = _kept(shard, labeled=False, as_duplicates=bool(verdict.unlabeled))
    if verdict.near:
        kept[labeled] &= _first_of_near(shard, kept[labeled])
    notes = notes_of(kept, labeled)
    groups = _groups(shard.without_duplicates(notes), verdict)
    if groups is not None:
        notes["label_groups"] = groups
    return {**memory, **notes}, {"dropped": scalar(int(np.count_nonzero(~kept)))}


@dataclass(frozen=True, slots=True)
class Repetition:
    """How often rows repeat."""

    n_duplicates: int = 0
    """Rows that were left out as duplicates of others."""
    sample: float | None = None
    """Share of the other rows in a sample that has enough different ones; None: not known."""


def agree_duplicates(engine: Engine, settings: Settings) -> Repetition:
    """Let every agent leave out its duplicates; how many rows these are.

    One round with one agent and no duplicates, up to two more with duplicates, and three more with several agents.
    """
    seed: Bundle = {"seed": np.asarray(settings.seed, dtype=np.int64)}
    counted = engine.sum("count_duplicates", {})
    n_labeled, any_equal = float(counted["n_labeled"]), counted["equal"] > 0.0
    is_matched = engine.n_agents > 1 and n_labeled <= MOST_MATCHED
    found = _weigh(engine, seed, any_equal | [is_matched, False, False])
    verdict = _verdict(found, counted["near"])
    dropped = 0.0
    if any_equal.any() or verdict != Verdict():
        dropped = float(engine.sum("drop_duplicates", pack(verdict))["dropped"])
    if is_matched and are_distinctive(found["labeled"], n_labeled):
        dropped += match_labels(engine, seed, n_labeled)
    left = float(counted["n_samples"]) - dropped
    repeated = 0.0 if verdict.unlabeled else float(counted["equal"][1:].sum())
    return Repetition(int(dropped), sample_share(effective_rows(left, repeated)))


def _weigh(engine: Engine, seed: Bundle, asked: npt.NDArray[np.bool_]) -> dict[str, Coincidences]:
    """Coincidences of the kinds of rows that are asked for."""
    if not asked.any():
        return {}
    summed = engine.sum("weigh_duplicates", {**seed, "asked": asked.astype(np.float64)})
    found = {}
    for kind in itertools.compress(KINDS, asked):
        own = {name.removeprefix(kind + "_"): array for name, array in summed.items() if name.startswith(kind + "_")}
        found[kind] = unpack(Coincidences, own)
    return found


def _verdict(found: dict[str, Coincidences], near: Array) -> Verdict:
    duplicates = {name: coincidences.are_duplicates for name, coincidences in found.items()}
    near_rows, near_features = (NearPairs(*pairs).are_duplicates for pairs in near.tolist())
    # Features that agree by chance in some rows nearly agree by chance in others.
    near_features = near_features and duplicates.get("features", True)
    return Verdict(
        labeled=float(duplicates.get("labeled", False)),
        near=float(near_rows),
        unlabeled=float(duplicates.get("unlabeled", False)),
        groups=float(duplicates.get("features", False)),
        near_groups=float(near_features),
    )


def _equal_pairs(shard: Shard, labeled: bool, with_target: bool) -> float:
    return sum(equal_pairs(hashes) for _, hashes in _hashed(shard, labeled=labeled, with_target=with_target))


def _hashed(shard: Shard, *, labeled: bool, with_target: bool) -> Iterator[tuple[IntArray, Hashes]]:
    """Numbers (counted among rows of the kind) and hashes of rows, in one pass or more; equal rows are in the same."""
    n_passes = max(1, -(-shard.n_samples // MOST_HASHED))
    for remainder in range(n_passes):
        places, found, passed = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.uint64)], 0
        for X, y in of_kind(shard, labeled=labeled):
            hashes = row_hashes(X, y if with_target else None)
            wanted = np.flatnonzero(hashes % np.uint64(n_passes) == remainder) if n_passes > 1 else np.arange(len(y))
            places.append(wanted + passed)
            found.append(hashes[wanted])
            passed += len(y)
        yield np.concatenate(places), np.concatenate(found)


def _near_pairs(Z: Array) -> NearPairs:
    """Of distinct rows: equal ones are counted elsewhere."""
    neighborhood = near_groups(Z[first_of_equal(row_hashes(Z))])
    return NearPairs(0.0, 0.0, 0.0, 0.0) if neighborhood is None else neighborhood.pairs()


def _coincidences(shard: Shard, seed: int, labeled: bool, with_target: bool) -> Coincidences:
    """Of all rows of a kind, or of a sample; one pass for every column, so that memory holds two columns at most."""

    def sampled(hash_of: Hashing) -> Hashes:
        n = shard.n_labeled if labeled else shard.n_samples - shard.n_labeled
        rng, share = shard.rng(seed, Purpose.DUPLICATES), min(1.0, MOST_WEIGHED / max(n, 1))
        parts = [hash_of(X, y)[rng.random(len(y)) < share] for X, y in of_kind(shard, labeled=labeled)]
        return np.concatenate([np.empty(0, dtype=np.uint64), *parts])

    def column(j: int) -> Hashes:
        return sampled(lambda X, y: column_hashes(X[:, j] if j < shard.n_features else y, j))

    total = sampled(lambda X, y: row_hashes(X, y if with_target else None))
    return Coincidences.of(total, map(column, range(shard.n_features + with_target)))


def _kept(shard: Shard, *, labeled: bool, as_duplicates: bool) -> npt.NDArray[np.bool_]:
    """Which rows of a kind are left: the first of equal ones; or, where these are not duplicates, all of them.

    If the agent's whole table was repeated, one repetition.
    """
    parts = [
        (places, first_of_equal(hashes) if as_duplicates else without_repetition(hashes))
        for places, hashes in _hashed(shard, labeled=labeled, with_target=labeled)
    ]
    kept = np.ones(sum(len(places) for places, _ in parts), dtype=bool)
    for places, left in parts:
        # With several passes, every one sees some rows only, and so no common divisor.
        kept[places] = left if as_duplicates or len(parts) == 1 else True
    return kept


def _first_of_near(shard: Shard, distinct: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which labelled rows are the first of those nearly equal to them, of distinct ones; the others do not matter."""
    first = np.ones(len(distinct), dtype=bool)
    if len(distinct) > MOST_COMPARED:
        return first
    X, y = labeled_rows(shard)
    neighborhood = near_groups(np.column_stack([X, y])[distinct])
    if neighborhood is not None:
        places = np.flatnonzero(distinct)
        first[places] = False
        first[places[np.unique(neighborhood.groups(), return_index=True)[1]]] = True
    return first


def _groups(shard: Shard, verdict: Verdict) -> IntArray | None:
    """A number for every labelled row that is left, the same for those to be left out together; None if none are."""
    if not (verdict.groups or verdict.near_groups) or shard.n_labeled > MOST_COMPARED:
        return None
    X, _ = labeled_rows(shard)
    groups = np.unique(row_hashes(X), return_inverse=True)[1]
    if verdict.near_groups and len(X):
        groups = Neighborhood(X).groups()
    return groups if len(np.unique(groups)) < len(groups) else None
