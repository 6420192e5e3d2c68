"""Tables in several files with the same columns: one agent for each, wherever it is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

import numpy as np

from dsfr.protocol import Shard, make_shards
from dsfr.tables import TableError, listed, matrix, numbers, read_table

ENDINGS = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".txt")
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
    paths = _files(pattern)
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
    table = read_table(path, delimiter=columns.delimiter)
    try:
        _check_columns(table.column_names, columns)
        X = matrix(table, columns.features)
        y = numbers(table, columns.target, allow_missing=True)
    except TableError as error:
        raise TableError(f"{path}: {error}") from None
    if columns.labeled_only:
        X, y = X[~np.isnan(y)], y[~np.isnan(y)]
    return make_shards(X, y, np.full(len(y), name))[name]


def _files(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        found = [file for file in path.iterdir() if file.name.lower().endswith(ENDINGS)]
    elif path.is_file() or not has_magic(pattern):
        found = [path] if path.is_file() else []
    else:
        found = [Path(name) for name in glob(pattern, recursive=True) if Path(name).is_file()]
    if not found:
        raise TableError(
            f"there is no file {pattern}: give a table, a folder of tables, or a pattern such as 'data/*.csv'"
        )
    return sorted(found)


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
