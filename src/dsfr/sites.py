"""Tables in several files with the same columns: one agent for each, wherever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dsfr.columns import TableError, listed
from dsfr.core.compiled import worthwhile
from dsfr.protocol import Shard
from dsfr.protocol.rows import ArrayRows
from dsfr.protocol.shard import agent_key
from dsfr.streaming.scanning import Scan
from dsfr.streaming.sources import ENDINGS, column_names, find_files

MEMORY_BYTES = 2**28
"""Rows of larger files stay in a temporary file and are read batch by batch."""
RANK = "{rank}"


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
    try:
        names = column_names(path, columns.delimiter)
        _check_columns(names, columns)
        told = (columns.features, columns.target, None, columns.delimiter, None, columns.labeled_only)
        rows = Scan((path,), tuple(names), *told)
        if path.stat().st_size > MEMORY_BYTES:
            (shard,) = rows.shards(1, 0).values()
            return replace(shard, key=agent_key(name))
        blocks = list(rows.blocks())
    except TableError as error:
        raise TableError(f"{path}: {str(error).removeprefix(f'{path} ')}") from None
    if not blocks:
        raise TableError(f"{path} has a header and no rows")
    X, y = np.concatenate([block.X for block in blocks]), np.concatenate([block.y for block in blocks])
    return Shard(ArrayRows(X, y), agent_key(name), worthwhile(len(y)))


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
