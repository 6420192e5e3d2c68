"""Tables in several files with the same columns: one agent for each, wherever it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dsfr.core.compiled import worthwhile
from dsfr.io.batches import ENDINGS, column_names, find_files
from dsfr.io.columns import TableError, listed
from dsfr.io.scanning import Block, Scan
from dsfr.training import Shard
from dsfr.training.rows import ArrayRows, Batch
from dsfr.training.shard import agent_key

MEMORY_BYTES = 2**28
"""Rows of larger files stay in a temporary file and are read batch by batch."""
RANK = "{rank}"
NO_ROWS = "has a header and no rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What is read of every file."""

    features: tuple[str, ...]
    target: str
    exact: bool
    """Whether files may have no other columns besides those to ignore."""
    ignored: tuple[str, ...] = ()
    labeled_only: bool = False
    """Whether unlabelled rows are left out, for methods that cannot learn from them."""
    delimiter: str = ","


def find_sites(pattern: str, *, rank: int = 0, n_ranks: int = 1) -> dict[str, Path]:
    """Files of one process by the name of their agent, which is that of the file without its ending.

    With ``{rank}`` in the pattern every rank has one file; a folder or a pattern with ``*`` is shared out.

    Raises
    ------
    TableError
        If there is no such file, there are fewer files than ranks, or two have the same name.
    """
    if RANK in pattern:
        path = Path(pattern.replace(RANK, str(rank)))
        if not path.is_file():
            raise TableError(f"there is no file {path}")
        return {_name(path): path}
    paths = find_files(pattern)
    if len(paths) < n_ranks:
        raise TableError(
            f"{pattern} is {len(paths)} file(s) for {n_ranks} ranks: start at most as many ranks as there are files, "
            f"or put {RANK} into the name where every rank has a file of its own"
        )
    names = [_name(path) for path in paths]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"several files are named {listed(repeated)}: agents go by these names, so rename them")
    return dict(zip(names[rank::n_ranks], paths[rank::n_ranks], strict=True))


def read_shards(sites: Mapping[str, Path], columns: Columns) -> dict[str, Shard]:
    """The rows of every file."""
    return {name: read_shard(name, path, columns) for name, path in sites.items()}


def read_shard(name: str, path: str | Path, columns: Columns) -> Shard:
    """The rows of one file.

    Raises
    ------
    TableError
        Naming the file, and what is wrong with it.
    """
    path = Path(path)
    with _naming(path):
        rows = _scan(path, columns)
        if path.stat().st_size > MEMORY_BYTES:
            (shard,) = rows.shards(1, 0).values()
            return replace(shard, key=agent_key(name))
        return _in_memory(name, rows)


def read_light(name: str, path: str, most_bytes: float, *, columns: Columns) -> Shard:
    """The rows of one file, in memory if they take up at most so many bytes there; else read anew in every pass.

    Nothing is put into other files, so what is returned can be sent to another process that sees the same one.
    """
    file = Path(path)
    with _naming(file):
        rows = _scan(file, columns)
        n_rows = rows.count_rows()
        if n_rows * (len(columns.features) + 1) * 8 <= most_bytes:
            return _in_memory(name, rows)
        n_labeled = rows.count_labels()
        passed = FileRows(rows, n_labeled if columns.labeled_only else n_rows, n_labeled)
        if not passed.n_samples:
            raise TableError(NO_ROWS)
        return Shard(passed, agent_key(name), worthwhile(passed.n_samples))


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows that are read from their file in every pass; only a batch of them is ever in memory."""

    scan: Scan
    n_samples: int
    n_labeled: int

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.scan.feature_names)

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        for block in self.scan.blocks():
            yield block.X, block.y


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let an error tell of which file it is."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{path}: {str(error).removeprefix(f'{path} ').removeprefix(f'{path}: ')}") from None


def _scan(path: Path, columns: Columns) -> Scan:
    names = column_names(path, columns.delimiter)
    _check_columns(names, columns)
    told = (columns.features, columns.target, None, columns.delimiter, None, columns.labeled_only)
    return Scan((path,), tuple(names), *told)


def _in_memory(name: str, rows: Scan) -> Shard:
    blocks = list(rows.blocks())
    if not blocks:
        raise TableError(NO_ROWS)
    n_rows = sum(len(block.y) for block in blocks)
    X, y, start = np.empty((n_rows, blocks[0].X.shape[1])), np.empty(n_rows), 0
    for block in _given_up(blocks):  # so that there are never two copies of all rows
        X[start : start + len(block.y)], y[start : start + len(block.y)] = block.X, block.y
        start += len(block.y)
    return Shard(ArrayRows(X, y), agent_key(name), worthwhile(n_rows))


def _given_up(blocks: list[Block]) -> Iterator[Block]:
    blocks.reverse()
    while blocks:
        yield blocks.pop()


def _name(path: Path) -> str:
    name = path.name
    for ending in sorted(ENDINGS, key=len, reverse=True):
        if name.lower().endswith(ending):
            return name[: -len(ending)] or name
    return name


def _check_columns(names: Sequence[str], columns: Columns) -> None:
    needed = {*columns.features, columns.target}
    missing, others = sorted(needed - set(names)), sorted(set(names) - needed - set(columns.ignored))
    if missing:
        raise TableError(f"lacks the column(s) {listed(missing)} that the first file has; it has {listed(list(names))}")
    if others and columns.exact:
        raise TableError(
            f"has the column(s) {listed(others)} that the first file lacks: leave them out (--ignore), or name the "
            "columns to learn from (--features)"
        )
