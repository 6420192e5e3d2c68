"""Dask data frames: partitions as the rows of agents, engines over them, and lazy predictions.

A data frame is never in one place as a whole: shards are computed on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.compiled import worthwhile
from dsfr.disclosure import Policy, protect, protected_tasks
from dsfr.engines import BaseEngine
from dsfr.engines.dask.cluster import cluster_client, import_dask
from dsfr.engines.dask.engine import DaskEngine
from dsfr.engines.dask.worker import LazyShard
from dsfr.model.frames import REMEDY, encode_frame, frame_columns, kind_of, levels_of
from dsfr.model.kinds import ColumnSurvey, Verdict, number_verdict, settle
from dsfr.model.schema import Schema, level_text
from dsfr.training import TASKS
from dsfr.training.rows import ArrayRows
from dsfr.training.shard import Shard, agent_key

_TARGET, _WEIGHT = "dsfr target", "dsfr weight"
FIRST_ROWS = 2**16
"""Rows of the first partition by which identifiers are found."""


def is_lazy(X: Any) -> bool:
    """Whether this is a dask data frame or series, decided without importing dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


def lazy_shards(X: Any, y: Any, n_agents: int, weights: Any = None) -> tuple[Schema, dict[str, Any]]:
    """Columns, and lazy shards of the agents: one per partition, or partitions grouped into ``n_agents``.

    ``weights`` of the labels are a dask series, or None.

    Raises
    ------
    ValueError
        If X is no dask data frame, y or the weights no dask series, or they are not partitioned alike.
    """
    import_dask()
    if not is_lazy(X) or not hasattr(X, "columns") or not is_lazy(y):
        raise ValueError(
            'engine="dask" trains on a dask data frame X and a dask series y, such as fit(ddf[features], ddf[target]); '
            f"got {type(X).__name__} and {type(y).__name__}. dask.dataframe.from_pandas makes them from data frames."
        )
    if X.npartitions != y.npartitions:
        raise ValueError(
            f"X has {X.npartitions} partitions and y {y.npartitions}: take both from one data frame, or repartition"
        )
    if weights is not None and (not is_lazy(weights) or weights.npartitions != X.npartitions):
        raise ValueError("sample_weight must be a dask series with the partitions of X: take both from one data frame")
    if n_agents > X.npartitions:
        raise ValueError(
            f"n_agents={n_agents} but there are {X.npartitions} partitions: an agent needs at least one of its own"
        )
    schema = lazy_schema(X)
    parts = _partitions(X, y, weights)
    groups = np.array_split(np.arange(len(parts)), len(parts) if n_agents == 1 else n_agents)
    recipe = _recipes(parts)
    agents = enumerate(groups)
    return schema, {str(number): recipe(str(number), [parts[i] for i in group], schema) for number, group in agents}


def lazy_schema(X: Any) -> Schema:
    """The columns that can be learnt from; values of columns that are no numbers are counted on the workers.

    Raises
    ------
    ValueError
        Naming all columns that cannot be used, each with what to do about it.
    """
    verdicts = {
        name: _verdict(name, X[original]) for name, original in zip(frame_columns(X._meta), X.columns, strict=True)
    }
    schema = Schema(settle(verdicts, REMEDY))
    schema.check()
    return schema


def _verdict(name: str, column: Any) -> Verdict:
    kind = kind_of(column.dtype)
    if kind == "numbers":
        return number_verdict(
            name, column.partitions[0].compute().head(FIRST_ROWS).to_numpy(np.float64, na_value=np.nan)
        )
    if kind == "dates":
        return ColumnSurvey(name, holds="holds dates").verdict()
    is_category = str(column.dtype) == "category"
    survey = ColumnSurvey(name, levels_of(column._meta) if is_category else (), is_category)
    survey.add({level_text(value): int(count) for value, count in column.value_counts(split_out=1).compute().items()})
    return survey.verdict()


def mean_weight(y: Any, weights: Any, client: Any = None) -> float:
    """Mean weight of the labels of all partitions; 1 if there are none."""
    mean = weights.where(~y.isna() & (weights > 0.0)).mean()
    found = float(mean.compute() if client is None else client.compute(mean).result())
    return found if np.isfinite(found) else 1.0


def _partitions(X: Any, y: Any, weights: Any) -> list[Any]:
    """The partitions of X, each with that of y, and that of the weights if there are any, as its last columns.

    They must be one expression: dask merges small partitions when it optimises, and would do so differently for X
    and y. The expression is only simplified, so that no unused column is read.
    """
    beside = [y] if weights is None else [y, weights]
    meta = with_target(X._meta, *(series._meta for series in beside))
    rows = X.map_partitions(with_target, *beside, meta=meta, align_dataframes=False)
    return list(rows.simplify().to_delayed(optimize_graph=False))


def _recipes(parts: Sequence[Any]) -> Callable[[str, Sequence[Any], Schema], Any]:
    """A function that makes the recipe of a shard: one task, unless partitions are in memory or share tasks."""
    dask, distributed = import_dask()
    from dask.optimization import cull

    graph = dict(parts[0].__dask_graph__())
    needed = {part.key: cull(graph, [part.key])[0] for part in parts}  # type: ignore[no-untyped-call]
    shared = sum(map(len, needed.values())) > len(set().union(*needed.values()))
    if shared or distributed.futures_of(parts):
        made = dask.delayed(make_shard)
        return lambda name, own, schema: made(name, list(own), schema)

    def recipe(name: str, own: Sequence[Any], schema: Schema) -> LazyShard:
        tasks = {key: task for part in own for key, task in needed[part.key].items()}
        return LazyShard(compute_shard, name, tasks, [part.key for part in own], schema)

    return recipe


@contextmanager
def lazy_engine(
    shards: dict[str, Any], client: Any = None, policy: Policy | None = None, *, masked: bool = False
) -> Iterator[BaseEngine]:
    """An engine over recipes, on the cluster of this or the default client, or on a temporary one of this machine."""
    _, distributed = import_dask()

    def engine(client: Any) -> BaseEngine:
        is_protected = policy is not None or masked
        tasks = protected_tasks(TASKS, policy=policy, masked=masked) if is_protected else TASKS
        return protect(DaskEngine(client, shards, tasks), policy=policy is not None, masked=masked)

    if client is not None:
        yield engine(client)
        return
    try:
        present = distributed.default_client()
    except ValueError:  # there is none
        with cluster_client() as client:
            yield engine(client)
    else:
        yield engine(present)


def predict_lazily(model: Any, X: Any, X_std: Any = None) -> Any:
    """A dask series of predictions, computed lazily; ``X_std`` has one number, or one for each feature."""
    return X.map_partitions(_predict_frame, model, X_std, meta=("prediction", "f8"))


def _predict_frame(frame: Any, model: Any, X_std: Any = None) -> Any:
    import pandas as pd

    values: Array = model.predict(frame, X_std) if len(frame) else np.empty(0)
    return pd.Series(values, index=frame.index, name="prediction")


def compute_shard(name: str, graph: Mapping[Any, Any], keys: Sequence[Any], schema: Schema) -> Shard:
    """The rows of an agent, from the tasks of its partitions, all run within one task of dask.

    Separate tasks would leave intermediate results in the memory of workers that dask may have paused.
    """
    from dask.local import get_sync

    return make_shard(name, get_sync(dict(graph), list(keys)), schema)


def with_target(X: Any, y: Any, weights: Any = None) -> Any:
    """A partition with its targets, and the weights of its labels if there are any, as last columns."""
    X = X.copy(deep=False)
    for name, series in ((_TARGET, y), (_WEIGHT, weights)):
        if series is None:
            continue
        if len(X) != len(series):
            raise ValueError(
                f"a partition of X has {len(X)} rows and that of y or sample_weight {len(series)}: take them from one "
                "data frame"
            )
        X.insert(X.shape[1], name, series.to_numpy(dtype=np.float64, na_value=np.nan), allow_duplicates=True)
    return X


def make_shard(name: str, parts: Sequence[Any], schema: Schema) -> Shard:
    """The rows of an agent, checked."""
    names, n_rows = schema.feature_names, [len(part) for part in parts]
    X, y = np.empty((sum(n_rows), len(names))), np.empty(sum(n_rows))
    for part, end in zip(parts, np.cumsum(n_rows), strict=True):
        place = 0
        # Column by column: converting the whole frame would make another copy.
        for column in schema.columns:
            next_place = place + len(column.features)
            X[end - len(part) : end, place:next_place] = encode_frame(part, Schema((column,)))
            place = next_place
        y[end - len(part) : end] = part[_TARGET]
    counts = [int(np.count_nonzero(np.isinf(X[:, j]))) for j in range(len(names))]
    if any(counts):
        bad = [f"{feature} ({count} rows)" for feature, count in zip(names, counts, strict=True) if count]
        raise ValueError(
            f"agent {name!r}: X is infinite in {', '.join(bad)}: make it NaN where it means a missing value"
        )
    if np.isinf(y).any():
        raise ValueError(f"agent {name!r}: y contains infinity: targets must be finite, or NaN where unlabelled")
    y, weights = _weighted(name, y, [part.loc[:, part.columns == _WEIGHT].to_numpy(dtype=np.float64) for part in parts])
    return Shard(ArrayRows(X, y, weights), agent_key(name), worthwhile(len(y)))


def _weighted(name: str, y: Array, columns: Sequence[Array]) -> tuple[Array, Array | None]:
    """Targets, NaN where the weight is 0, and the weights of an agent's labels, if there are any."""
    weights = np.concatenate(columns)
    if weights.shape[1] == 0:
        return y, None
    weights = weights[:, 0]
    if not (np.isfinite(weights) & (weights >= 0.0)).all():
        raise ValueError(f"agent {name!r}: sample_weight must be a number >= 0 in every row")
    return np.where(weights > 0.0, y, np.nan), np.where(weights > 0.0, weights, 1.0)
