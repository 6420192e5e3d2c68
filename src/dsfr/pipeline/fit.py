"""From files and options to a trained model, over any engine: the work behind ``dsfr fit``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dsfr.core.consensus.admm import RoundInfo
from dsfr.disclosure import Policy
from dsfr.engines import Ledger
from dsfr.estimators.metrics import RunningError
from dsfr.io.agent_files import Columns, find_agent_files
from dsfr.io.columns import TableError, listed
from dsfr.io.files import column_names, dialect_of, find_files
from dsfr.io.scanning import Scan, scan, with_labels
from dsfr.model.model import Model
from dsfr.model.schema import Schema
from dsfr.pipeline.categories import agree_categories
from dsfr.pipeline.engines import EngineOptions, FileAgents, open_engine, read_policy
from dsfr.pipeline.left_out import LeftOut, without_unlabeled
from dsfr.pipeline.options import FitOptions, declare_ranges, keep_to_sums, make_estimator
from dsfr.pipeline.processes import Processes
from dsfr.pipeline.ranges import read_ranges
from dsfr.training.fit_report import FitReport

OnRound: TypeAlias = Callable[[RoundInfo], None]


@dataclass(frozen=True, slots=True)
class FitOutcome:
    """A trained model, and communication, errors and time of its training."""

    model: Model
    ledger: Ledger
    errors: dict[str, float]
    """NRMSE by the rows it was measured on."""
    left_out: LeftOut | None
    """Leave-one-out error, if the method has one."""
    alone: LeftOut | None
    """The same on the labelled rows alone, if both can be compared."""
    spread: float | None
    """Standard deviation of the labels; None where rows stay with their agents."""
    report: FitReport
    """Time of the training by stage."""


def fit_model(
    data: str | Path,
    options: FitOptions,
    engine: EngineOptions,
    processes: Processes,
    on_round: OnRound | None = None,
    on_rows: Callable[[int], None] | None = None,
) -> FitOutcome:
    """Train on files: one table with all agents' rows, or with an engine one file per agent.

    ``on_round`` is called after every round, ``on_rows`` with the number of rows of every batch read.

    Raises
    ------
    TableError
        If there are no rows, or columns are missing, repeated or not numbers.
    """
    estimator = make_estimator(options, on_round)
    if engine.engine is None:
        rows = describe_table(data, options)
        _declare_ranges(estimator, options, rows.schema)
        estimator.fit(replace(rows, labeled_only=options.needs_all_labels, on_rows=on_rows))
        errors, spread = _errors(rows, estimator.model_)
    else:
        agents = describe_agents(str(data), options, processes, may_count=engine.policy is None)
        _declare_ranges(estimator, options, agents.columns.schema)
        if engine.policy is not None or engine.masks:
            policy = Policy() if engine.policy is None else read_policy(engine.policy)
            keep_to_sums(estimator, policy.max_weights_per_label)
        with open_engine(agents, engine) as make_engine:
            estimator.fit_over(make_engine, agents.columns.schema, agents.columns.target)
        errors, spread = {}, None  # rows stay with their agents
    left_out, alone = LeftOut.of(estimator.model_.mixture), None
    if left_out is not None and engine.engine is None:
        alone = without_unlabeled(
            rows,
            options,
            estimator.model_.training,
            lambda other: _declare_ranges(other, options, rows.schema),
        )
    return FitOutcome(estimator.model_, estimator.ledger_, errors, left_out, alone, spread, estimator.fit_report_)


def _declare_ranges(estimator: Any, options: FitOptions, schema: Schema) -> None:
    """Give the estimator the ranges of a file, if the options name one."""
    if options.ranges is not None:
        declare_ranges(estimator, read_ranges(options.ranges, schema, options.target))


def describe_table(data: str | Path, options: FitOptions) -> Scan:
    """The rows of a file or folder and the roles of their columns, with labels hidden as asked."""
    if options.agents is not None and options.agent_column is not None:
        raise TableError("--agents and --agent-column exclude each other: rows are split at random, or owned")
    files = find_files(data)
    delimiter, decimal = dialect_of(files[0], options.delimiter, options.decimal)
    names = feature_columns(column_names(files[0], delimiter), options)
    rows = scan(
        files,
        target=options.target,
        features=names if options.features else None,
        agent_column=options.agent_column,
        ignore=options.ignore,
        delimiter=delimiter,
        decimal=decimal,
        categories=options.categories,
    )
    if options.labels is None:
        return rows
    return with_labels(rows, options.labels, np.random.default_rng(options.seed))


def describe_agents(pattern: str, options: FitOptions, processes: Processes, *, may_count: bool = True) -> FileAgents:
    """The agents of several files; columns are those of the first file of the first process.

    ``may_count``: levels of categories that are not declared may be found by counting the rows of all agents.
    """
    for name, value in {
        "--agents": options.agents,
        "--agent-column": options.agent_column,
        "--labels": options.labels,
    }.items():
        if value is not None:
            raise TableError(f"{name} is for a table in one file; here every file is an agent: leave it out")
    files = processes.run_on_all(lambda: find_agent_files(pattern, rank=processes.rank, n_ranks=processes.size))
    first = processes.run_on_all(
        lambda: _columns_of(next(iter(files.values())), options).to_json() if processes.rank == 0 else ""
    )
    columns = Columns.from_json(processes.broadcast(first, 0))
    columns = agree_categories(list(files.values()), columns, options, processes, may_count=may_count)
    return FileAgents(files, columns, options.topology, processes)


def _columns_of(path: Path, options: FitOptions) -> Columns:
    delimiter, decimal = dialect_of(path, options.delimiter, options.decimal)
    names = feature_columns(column_names(path, delimiter), options)
    return Columns(
        features=tuple(names),
        target=options.target,
        exact=not options.features,
        ignored=options.ignore,
        labeled_only=options.needs_all_labels,
        delimiter=delimiter,
        decimal=decimal,
    )


def feature_columns(columns: Sequence[str], options: FitOptions) -> list[str]:
    """Feature columns: those of ``--features``, or else all that have no other role."""
    reserved = {options.target, options.agent_column}
    for name in (options.target, options.agent_column, *options.ignore):
        if name is not None and name not in columns:
            raise TableError(f"the table has no column {name!r}; it has {listed(columns)}")
    if options.features:
        names = [name for given in options.features for name in _split(given, columns)]
        if (reserved | set(options.ignore)) & set(names) or len(set(names)) < len(names):
            raise TableError("--features repeats a column, or names one that is the target, the agents or ignored")
    else:
        names = [name for name in columns if name not in reserved and name not in options.ignore]
    if not names:
        raise TableError("no feature column is left: the table needs at least one besides target and agent column")
    return names


def _split(given: str, columns: Sequence[str]) -> list[str]:
    """Names separated by commas; names that have commas themselves are found too, the longest first."""
    parts, names = given.split(","), []
    while parts:
        sizes = [n for n in range(len(parts), 0, -1) if ",".join(parts[:n]).strip() in columns] or [1]
        names.append(",".join(parts[: sizes[0]]).strip())
        parts = parts[sizes[0] :]
    return [name for name in names if name]


def _errors(rows: Scan, model: Model) -> tuple[dict[str, float], float | None]:
    """NRMSE on the labels used (optimistic) and on hidden ones, where there are enough; deviation of the former."""
    errors = {"labels used": RunningError(), "hidden labels": RunningError()}
    for block in rows.blocks():
        predictions = model.predict_rows(block.X)
        errors["labels used"].add(block.y, predictions)
        errors["hidden labels"].add(block.hidden, predictions)
    spread = errors["labels used"].spread if errors["labels used"].is_known else None
    if errors["labels used"].n != model.training["n_labeled"]:
        errors = {"labels, duplicates included": errors.pop("labels used"), **errors}
    return {f"NRMSE on the {error.n} {what}": error.nrmse for what, error in errors.items() if error.is_known}, spread
