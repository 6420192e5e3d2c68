"""One file per agent: finding the files of a process and reading the rows of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from dsfr.core.compiled import worthwhile
from dsfr.io.columns import TableError, listed, repeated_names
from dsfr.io.files import column_names, find_files
from dsfr.io.formats import endings
from dsfr.io.scanning import Scan
from dsfr.io.stamp import Stamp, check_stamp, stamp_of
from dsfr.model.schema import Schema
from dsfr.training import Shard
from dsfr.training.rows import Batch
from dsfr.training.shard import agent_key

MEMORY_BYTES = 2**28
"""Rows of an agent that take up more are kept in a temporary file and read in batches."""
RANK = "{rank}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns that are read from every file."""

    features: tuple[str, ...]
    target: str
    exact: bool
    """Whether files may have no other columns besides those to ignore."""
    ignored: tuple[str, ...] = ()
    labeled_only: bool = False
    """Whether unlabelled rows are left out, for methods that cannot learn from them."""
    delimiter: str = ","
    decimal: str = "."
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Levels of the features that are categories, the same at all agents."""

    @property
    def schema(self) -> Schema:
        """The features as columns of numbers and categories."""
        return Schema.of(self.features, self.categories)

    def to_json(self) -> str:
        """The columns as text that another process can read."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The columns in a text of `to_json`."""
        fields = json.loads(text)
        return cls(**fields | {name: tuple(fields[name]) for name in ("features", "ignored")})


def find_agent_files(pattern: str, *, rank: int = 0, n_ranks: int = 1) -> dict[str, Path]:
    """Files of one process by the name of their agent, which is that of the file without its ending.

    With ``{rank}`` in the pattern every rank has one file. The files of a folder or of a pattern with ``*`` are
    distributed over the ranks.

    Raises
    ------
    TableError
        If there is no such file, there are fewer files than ranks, or two have the same name.
    """
    if RANK in pattern:
        path = Path(pattern.replace(RANK, str(rank)))
        if not path.is_file():
            raise TableError(f"there is no file {path}")
        return {_agent_name(path): path}
    paths = find_files(pattern)
    if len(paths) < n_ranks:
        raise TableError(
            f"{pattern} is {len(paths)} file(s) for {n_ranks} ranks: start at most as many ranks as there are files, "
            f"or put {RANK} into the name where every rank has a file of its own"
        )
    names = [_agent_name(path) for path in paths]
    repeated = repeated_names(names)
    if repeated:
        raise TableError(f"several files are named {listed(repeated)}: agents go by these names, so rename them")
    return dict(zip(names[rank::n_ranks], paths[rank::n_ranks], strict=True))


def read_shards(files: Mapping[str, Path], columns: Columns) -> dict[str, Shard]:
    """The rows of every agent."""
    return {name: read_shard(name, path, columns) for name, path in files.items()}


def read_shard(name: str, path: Path, columns: Columns, memory_bytes: int | None = None) -> Shard:
    """The rows of one agent; beyond ``memory_bytes`` (default: `MEMORY_BYTES`) in a temporary file.

    Raises
    ------
    TableError
        Naming the file and the error.
    """
    most = MEMORY_BYTES if memory_bytes is None else memory_bytes
    with _naming(path):
        (shard,) = replace(_scan(path, columns), memory_bytes=most).shards(1, 0).values()
        return replace(shard, key=agent_key(name))


def read_movable(name: str, path: str, most_bytes: float, *, columns: Columns) -> Shard:
    """The rows of one agent, in memory if they take up at most ``most_bytes``, otherwise read again in every pass.

    There is no temporary file, so the shard can be sent to another process that sees the same file.
    """
    file = Path(path)
    with _naming(file):
        stamp, rows = stamp_of(file), _scan(file, columns)
        n_rows = rows.count_rows()
        if not n_rows or n_rows * (len(columns.schema.features) + 1) * 8 <= most_bytes:
            return read_shard(name, file, columns, memory_bytes=sys.maxsize)
        n_labeled = rows.count_labels()
        passed = FileRows(rows, n_labeled if columns.labeled_only else n_rows, n_labeled, stamp)
        return Shard(passed, agent_key(name), worthwhile(passed.n_samples))


@dataclass(frozen=True, slots=True)
class FileRows:
    """Rows that are read from their file in every pass; only a batch of them is ever in memory."""

    scan: Scan
    n_samples: int
    n_labeled: int
    stamp: Stamp
    """Of the file when its rows were counted: every pass must find the same ones."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.scan.feature_names)

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        check_stamp(self.scan.files[0], self.stamp)
        for block in self.scan.blocks():
            yield block.X, block.y


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Put the name of the file before the text of an error, once."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{path}: {str(error).removeprefix(f'{path} ').removeprefix(f'{path}: ')}") from None


def _scan(path: Path, columns: Columns) -> Scan:
    names = column_names(path, columns.delimiter)
    _check_columns(names, columns)
    return Scan(
        files=(path,),
        column_names=tuple(names),
        schema=columns.schema,
        target=columns.target,
        agent_column=None,
        delimiter=columns.delimiter,
        decimal=columns.decimal,
        labeled_only=columns.labeled_only,
    )


def _agent_name(path: Path) -> str:
    name = path.name
    for ending in sorted(endings(), key=len, reverse=True):
        if name.lower().endswith(ending):
            return name[: -len(ending)] or name
    return name


def check_agent_file(path: Path, columns: Columns) -> None:
    """Refuse a file that lacks a column, or has others where it may not.

    Raises
    ------
    TableError
        Naming file and columns.
    """
    with _naming(path):
        _check_columns(column_names(path, columns.delimiter), columns)


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
