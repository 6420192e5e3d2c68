"""From a table and what the user asked for to a trained model: the work behind ``dsfr fit``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.prediction.errors import relative_error
from dsfr.engines import Ledger
from dsfr.estimators.methods import METHODS
from dsfr.estimators.metrics import RunningError
from dsfr.io import scan
from dsfr.io.batches import column_names, find_files
from dsfr.io.columns import Table, TableError, labels, listed, matrix, numbers
from dsfr.io.scanning import with_labels
from dsfr.model.model import Model
from dsfr.training.fit_report import FitReport
from dsfr.training.labels import hide_labels

STREAMED_BYTES = 2**26
"""Files larger than this are read batch by batch."""
NODES_PER_RULE = 20
"""Hidden wavelets for each rule asked for: five rules stand for LapWNN's usual hundred nodes."""

WITHOUT_EFFECT = {
    "sfr-icr": ("smoothness",),
    "sfr-g": ("consistency", "pairs"),
    "s-sfr": ("consistency", "pairs", "smoothness"),
    "fr": ("consistency", "pairs", "smoothness"),
    "lapwnn": ("auto", "consistency", "pairs", "fuzzifier", "width_scale"),
}
"""By method, the options that its training never looks at."""
TUNED = ("ridge", "consistency", "smoothness")
"""What ``--tune`` and ``--auto`` choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of ``dsfr fit``."""

    target: str
    agents: int | None
    agent_column: str | None
    labels: int | None
    features: tuple[str, ...]
    ignore: tuple[str, ...]
    method: str
    rules: int
    consistency: float
    smoothness: float
    ridge: float
    auto: bool
    tune: str | None
    fuzzifier: float
    width_scale: float
    pairs: int | None
    solver: str
    few_rounds: bool
    topology: str | None
    tol: float
    max_rounds: int
    seed: int
    delimiter: str


@dataclass(frozen=True, slots=True)
class FitOutcome:
    """A trained model and what there is to say about it."""

    model: Model
    ledger: Ledger
    errors: dict[str, float]
    """NRMSE by what it was measured on."""
    report: FitReport
    """Where the time went."""


def refuse_without_effect(method: str, given: Collection[str]) -> None:
    """Refuse options that a person has given and the method has no use for, or that tuning chooses.

    Raises
    ------
    ValueError
        Naming the options and the methods that use them.
    """
    for chooser in ("auto", "tune"):
        chosen = [name for name in TUNED if name in given and chooser in given]
        if chosen:
            names = ", ".join("--" + name for name in chosen)
            raise ValueError(f"--{chooser} chooses {names}: leave out one or the other")
    useless = [name for name in WITHOUT_EFFECT[method] if name in given]
    if useless:
        told = ", ".join("--" + name.replace("_", "-") for name in useless)
        users = [name for name, unused in WITHOUT_EFFECT.items() if not set(useless) & set(unused)]
        remedy = f", or take --method {' or '.join(users)}" if users else ""
        raise ValueError(f"--method {method} has no use for {told}: leave out what has no effect{remedy}")


def fit_table(table: Table, options: FitOptions, on_round: Callable[[RoundInfo], None]) -> FitOutcome:
    """Train the method that was asked for on the columns that were asked for.

    Raises
    ------
    TableError
        If columns are missing, repeated or not numbers.
    """
    _refuse_two_owners(options)
    names = feature_columns(table.column_names, options)
    X = matrix(table, names)
    y = numbers(table, options.target, allow_missing=True)
    owners = None if options.agent_column is None else labels(table, options.agent_column)
    known = y
    if options.labels is not None:
        known = hide_labels(y, options.labels, np.random.default_rng(options.seed))
    estimator = make_estimator(options, on_round)
    used = ~np.isnan(known) if METHODS[options.method].needs_all_labels else np.ones(len(y), dtype=bool)
    estimator.fit(X[used], known[used], agents=None if owners is None else owners[used])
    model = estimator.model_.renamed(names, options.target)
    errors = _errors(model.predict_rows(X), y, known)
    return FitOutcome(model, estimator.ledger_, errors, estimator.fit_report_)


def is_streamed(path: str | Path) -> bool:
    """Whether rows are read batch by batch: those of folders, arrays and large files."""
    path = Path(path)
    return path.is_dir() or path.suffix.lower() == ".npy" or path.stat().st_size > STREAMED_BYTES


def fit_files(
    path: str | Path,
    options: FitOptions,
    on_round: Callable[[RoundInfo], None],
    on_rows: Callable[[int], None] | None = None,
) -> FitOutcome:
    """As `fit_table`, on the rows of a file or folder that need not fit into memory; ``on_rows`` is told of batches.

    Raises
    ------
    TableError
        If there are no rows, or columns are missing, repeated or not numbers.
    """
    _refuse_two_owners(options)
    files = find_files(path)
    names = feature_columns(column_names(files[0], options.delimiter), options)
    rows = scan(
        files,
        target=options.target,
        features=names,
        agent_column=options.agent_column,
        delimiter=options.delimiter,
    )
    if options.labels is not None:
        rows = with_labels(rows, options.labels, np.random.default_rng(options.seed))
    estimator = make_estimator(options, on_round)
    estimator.fit(replace(rows, labeled_only=METHODS[options.method].needs_all_labels, on_rows=on_rows))
    errors = {"labels used": RunningError(), "hidden labels": RunningError()}
    for block in rows.blocks():
        predictions = estimator.model_.predict_rows(block.X)
        errors["labels used"].add(block.y, predictions)
        errors["hidden labels"].add(block.hidden, predictions)
    shown = {f"NRMSE on the {error.n} {what}": error.nrmse for what, error in errors.items() if error.is_known}
    return FitOutcome(estimator.model_, estimator.ledger_, shown, estimator.fit_report_)


def _refuse_two_owners(options: FitOptions) -> None:
    if options.agents is not None and options.agent_column is not None:
        raise TableError("--agents and --agent-column exclude each other: rows are split at random, or owned")


def feature_columns(columns: Sequence[str], options: FitOptions) -> list[str]:
    """Columns to learn from: those that were asked for, or all that are left."""
    reserved = {options.target, options.agent_column}
    for name in (options.target, options.agent_column, *options.ignore):
        if name is not None and name not in columns:
            raise TableError(f"the table has no column {name!r}; it has {listed(columns)}")
    if options.features:
        names = [name for told in options.features for name in _split(told, columns)]
        if (reserved | set(options.ignore)) & set(names) or len(set(names)) < len(names):
            raise TableError("--features repeats a column, or names one that is the target, the agents or ignored")
    else:
        names = [name for name in columns if name not in reserved and name not in options.ignore]
    if not names:
        raise TableError("no feature column is left: the table needs at least one besides target and agent column")
    return names


def _split(told: str, columns: Sequence[str]) -> list[str]:
    """Names between commas, unless all of it is the name of a column."""
    if told in columns:
        return [told]
    return [name.strip() for name in told.split(",") if name.strip()]


def make_estimator(options: FitOptions, on_round: Callable[[RoundInfo], None] | None) -> Any:
    """The estimator of the method that was asked for."""
    shared = {
        "smoothness": options.smoothness,
        "ridge": options.ridge,
        "tune": options.tune,
        "solver": options.solver,
        "rounds": "few" if options.few_rounds else "many",
        "topology": options.topology,
        "tol": options.tol,
        "max_rounds": options.max_rounds,
        "n_agents": options.agents or 1,
        "on_round": on_round,
        "random_state": options.seed,
    }
    method = METHODS[options.method]
    if method.name == "LapWNN":
        return method.make(n_nodes=NODES_PER_RULE * options.rules, **shared)
    return method.make(
        n_rules=options.rules,
        auto=options.auto,
        consistency=options.consistency,
        fuzzifier=options.fuzzifier,
        width_scale=options.width_scale,
        n_pairs=options.pairs,
        **shared,
    )


def _errors(predictions: Array, y: Array, known: Array) -> dict[str, float]:
    """Errors that can be told: on the labels used, which flatters, and on those that were hidden."""
    errors = {}
    hidden = np.where(np.isnan(known), y, np.nan)
    for what, targets in (("labels used", known), ("hidden labels", hidden)):
        error = relative_error(targets, predictions)
        if error is not None:
            errors[f"NRMSE on the {np.count_nonzero(~np.isnan(targets))} {what}"] = error
    return errors
