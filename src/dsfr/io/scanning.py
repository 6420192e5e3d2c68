"""A table in files, read in batches: for training and predicting on rows that do not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray
from dsfr.core.compiled import worthwhile
from dsfr.io.agent_rows import AgentRows
from dsfr.io.columns import Origin, Table, TableError, labels, listed, matrix, numbers
from dsfr.io.files import Paths, column_names, count_rows, dialect_of, find_files, read_batches
from dsfr.io.survey import Categories, Source, find_schema
from dsfr.model.inputs import as_noise
from dsfr.model.model import Model
from dsfr.model.schema import Schema
from dsfr.training.labels import kept_labels
from dsfr.training.shard import Shard, agent_key, distinct_names
from dsfr.training.split import SPLIT_ROWS, check_split, split_block


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive rows of a scan."""

    X: Array
    y: Array
    hidden: Array
    """Targets hidden from the training; NaN elsewhere."""
    owners: npt.NDArray[Any] | None


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows in files and the roles of their columns; made by `scan`."""

    files: tuple[Path, ...]
    column_names: tuple[str, ...]
    schema: Schema
    """Columns to learn from."""
    target: str | None
    agent_column: str | None
    delimiter: str = ","
    decimal: str = "."
    kept_labels: IntArray | None = None
    """Numbers of the labels to use, sorted, counted over labelled rows from 0; None uses all."""
    labeled_only: bool = False
    """Whether unlabelled rows are left out."""
    on_rows: Callable[[int], None] | None = None
    """Called after every batch with its number of rows."""
    memory_bytes: int | None = None
    """Rows of all agents stay in memory up to this size, beyond it in a temporary file; None means 64 MB."""

    def tables(self, names: Sequence[str]) -> Iterator[tuple[Origin, Table]]:
        """The named columns, batch by batch, with the origin of each batch."""
        for file in self.files:
            n_before, shown = 0, file.name if len(self.files) > 1 else ""
            for table in read_batches(file, names, self.delimiter):
                yield Origin(shown, n_before, self.decimal), table
                n_before += table.num_rows
                if self.on_rows is not None:
                    self.on_rows(table.num_rows)

    def blocks(self) -> Iterator[Block]:
        """Features, targets and owners, checked, in blocks of `SPLIT_ROWS`; the last may be shorter.

        Raises
        ------
        TableError
            If a value is no number, or missing where it must not be, naming file and row.
        """
        return _regrouped(self._pieces(), SPLIT_ROWS)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.schema.feature_names

    def features(self, schema: Schema) -> Iterator[Array]:
        """The features of columns, found by name, batch by batch."""
        for origin, table in self.tables(_checked(self, schema.names)):
            yield matrix(table, schema, origin)

    def predictions(self, model: Model, X_std: Any = None) -> Iterator[Array]:
        """A model's predictions, batch by batch; features are found by name. ``X_std`` is as in `Model.predict`."""
        n_rows = self.count_rows()
        for X in self.features(model.columns):
            noise = as_noise(X_std, X, model.feature_names)
            yield model.predict_rows(X, noise, fast=worthwhile(n_rows))

    def count_rows(self) -> int:
        """Number of rows, from the metadata of files that have it."""
        return sum(count_rows(file, self.delimiter) for file in self.files)

    def count_labels(self) -> int:
        """Number of rows with a target, in one pass over that column."""
        return sum(
            int(np.count_nonzero(~np.isnan(numbers(table, self.target_name, origin))))
            for origin, table in self.tables([self.target_name])
        )

    @property
    def target_name(self) -> str:
        """Name of the target.

        Raises
        ------
        TableError
            If none was given.
        """
        if self.target is None:
            raise TableError("this scan has no target: name its column, scan(..., target=...)")
        return self.target

    def shards(self, n_agents: int, seed: int, dtype: npt.DTypeLike = np.float64) -> dict[str, Shard]:
        """The rows of every agent, by the agent column or split at random over ``n_agents``.

        Raises
        ------
        TableError
            If there is no row.
        """
        collected = AgentRows(len(self.feature_names), dtype, self.memory_bytes)
        for number, block in enumerate(self.blocks()):
            owners = split_block(number, len(block.y), n_agents, seed) if block.owners is None else block.owners
            names, position = distinct_names(owners)
            for code, name in enumerate(names):
                part = block if len(names) == 1 else _taken(block, position == code)
                collected.append(name, part.X, part.y)
        rows = collected.rows()
        n_rows = sum(own.n_samples for own in rows.values())
        if n_rows == 0:
            raise TableError(f"{listed([str(file) for file in self.files], 3)} has a header and no rows")
        if self.agent_column is None:
            check_split(n_rows, n_agents)
        return {name: Shard(own, agent_key(name), worthwhile(n_rows)) for name, own in rows.items()}

    def _pieces(self) -> Iterator[Block]:
        names = [*self.schema.names, self.target_name, *([self.agent_column] if self.agent_column else [])]
        n_labels = 0
        for origin, table in self.tables(names):
            X = matrix(table, self.schema, origin)
            y = numbers(table, self.target_name, origin).copy()
            owners = None if self.agent_column is None else labels(table, self.agent_column, origin)
            known, hidden = np.flatnonzero(~np.isnan(y)), np.full_like(y, np.nan)
            if self.kept_labels is not None:
                hide = known[np.isin(np.arange(n_labels, n_labels + len(known)), self.kept_labels, invert=True)]
                hidden[hide], y[hide] = y[hide], np.nan
            n_labels += len(known)
            block = Block(X, y, hidden, owners)
            yield _taken(block, ~np.isnan(y)) if self.labeled_only else block


def scan(
    paths: Paths,
    *,
    target: str | None = None,
    features: Sequence[str] | None = None,
    agent_column: str | None = None,
    ignore: Sequence[str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    categories: Categories | None = None,
) -> Scan:
    """Rows in files that `SFRRegressor.fit` and ``predict`` read batch by batch, so that they need not fit into memory.

    Parameters
    ----------
    paths : path or sequence of paths
        A Parquet, CSV, gzipped CSV or ``.npy`` file, a folder of such files, or a pattern such as ``"rows/*.parquet"``.
        Columns of an array are called ``x0``, ``x1`` and so on.
    target : str, default=None
        Column with the target; missing values mark unlabelled rows. Not needed to predict.
    features : sequence of str, default=None
        Columns to use; by default all that are not named otherwise.
    agent_column : str, default=None
        Column with the owner of every row.
    ignore : sequence of str, default=()
        Columns to leave out.
    delimiter : str, default=None
        Separator of CSV files; None: guessed from the first lines of the first file, see the attribute ``delimiter``.
    decimal : {".", ","}, default=None
        Decimal mark of CSV files; None: guessed likewise.
    categories : mapping, default=None
        Levels of columns that are categories, ``{"region": ["north", "south"]}``; a level "other" stands for all that
        is not named. None in the place of the levels: those that are found. Columns of text that are not declared are
        categories of the levels that are found, if there are at most 20; levels of fewer than 5 rows are "other".

    Raises
    ------
    TableError
        If there is no file, or a file lacks a column.
    """
    files = find_files(paths)
    delimiter, decimal = dialect_of(files[0], delimiter, decimal)
    every = column_names(files[0], delimiter)
    reserved = {target, agent_column, *ignore} - {None}
    unknown = [name for name in (*sorted(map(str, reserved)), *(features or ())) if name not in every]
    if unknown:
        raise TableError(f"{files[0]} has no column {listed(unknown)}; it has {listed(every)}")
    used = [name for name in every if name not in reserved] if features is None else list(features)
    if reserved & set(used) or len(set(used)) < len(used):
        raise TableError("features repeats a column, or names one that is the target, the agents or ignored")
    if not used:
        raise TableError("no feature column is left: the table needs at least one besides target and agent column")
    unknown = [name for name in categories or () if name not in used]
    if unknown:
        raise TableError(
            f"categories has {listed(unknown)}, which is no column to learn from; these are {listed(used)}"
        )
    needed = [*used, *(name for name in (target, agent_column) if name)]
    for file in files[1:]:
        _check_columns(file, needed, None if features else every, delimiter)
    schema = Schema.of(used)
    if target is not None:  # without one, rows are predicted, and the model knows its columns
        source = Source(tuple(files), tuple(used), delimiter, decimal)
        schema = find_schema(source, categories or {}, explicit=features is not None)
    return Scan(tuple(files), tuple(every), schema, target, agent_column, delimiter, decimal)


def with_labels(rows: Scan, n_labels: int, rng: np.random.Generator) -> Scan:
    """The scan with all but ``n_labels`` labels hidden, the same ones as `dsfr.training.labels.hide_labels` chooses."""
    return replace(rows, kept_labels=np.sort(kept_labels(rows.count_labels(), n_labels, rng)))


def _checked(rows: Scan, names: Sequence[str]) -> list[str]:
    missing = [name for name in names if name not in rows.column_names]
    if missing:
        raise TableError(f"{rows.files[0]} lacks the column(s) {listed(missing)}; it has {listed(rows.column_names)}")
    return list(names)


def _check_columns(file: Path, needed: Sequence[str], same: Sequence[str] | None, delimiter: str) -> None:
    names = column_names(file, delimiter)
    missing = [name for name in needed if name not in names]
    if missing:
        raise TableError(f"{file} lacks the column(s) {listed(missing)} of the first file; it has {listed(names)}")
    more = [] if same is None else [name for name in names if name not in same]
    if more:
        raise TableError(f"{file} has the column(s) {listed(more)} that the first file lacks: name the features to use")


def _taken(block: Block, which: Any) -> Block:
    owners = None if block.owners is None else block.owners[which]
    return Block(block.X[which], block.y[which], block.hidden[which], owners)


def _regrouped(pieces: Iterator[Block], n_rows: int) -> Iterator[Block]:
    """The same rows in blocks of ``n_rows``; the last may be shorter."""
    waiting, held = list[Block](), 0
    for piece in pieces:
        waiting.append(piece)
        held += len(piece.y)
        while held >= n_rows:
            block = _joined(waiting)
            yield _taken(block, slice(None, n_rows))
            waiting, held = [_taken(block, slice(n_rows, None))], held - n_rows
    if held:
        yield _joined(waiting)


def _joined(pieces: Sequence[Block]) -> Block:
    owners = [piece.owners for piece in pieces if piece.owners is not None]
    X, y, hidden = (np.concatenate([getattr(piece, name) for piece in pieces]) for name in ("X", "y", "hidden"))
    return Block(X, y, hidden, np.concatenate(owners) if owners else None)
