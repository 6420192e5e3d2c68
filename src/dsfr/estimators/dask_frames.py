"""Training and predicting on dask data frames, which are never in one place as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.engines.dask.cluster import cluster_client, import_dask
from dsfr.engines.dask.engine import DaskEngine
from dsfr.engines.dask.worker import Recipe
from dsfr.io.dask_partitions import compute_shard, make_shard, with_target
from dsfr.training import TASKS


def is_lazy(X: Any) -> bool:
    """Whether this is a dask data frame or series; found out without loading dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "to_delayed")


def lazy_shards(X: Any, y: Any, n_agents: int) -> dict[str, Any]:
    """Recipes of the agents' rows: one agent per partition, or neighbouring partitions grouped into ``n_agents``.

    Raises
    ------
    ValueError
        If X is no dask data frame, y no dask series, or they are not partitioned alike.
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
    if n_agents > X.npartitions:
        raise ValueError(
            f"n_agents={n_agents} but there are {X.npartitions} partitions: an agent needs at least one of its own"
        )
    parts = _partitions(X, y)
    groups = np.array_split(np.arange(len(parts)), len(parts) if n_agents == 1 else n_agents)
    names = [str(name) for name in X.columns]
    recipe = _recipes(parts)
    return {str(number): recipe(str(number), [parts[i] for i in group], names) for number, group in enumerate(groups)}


def _partitions(X: Any, y: Any) -> list[Any]:
    """The partitions of X, each with that of y as its last column.

    They must be one expression: optimised by themselves, X and y may be read in different partitions, because dask puts
    those together that have become small. It is only simplified, so that just the columns needed are read.
    """
    rows = X.map_partitions(with_target, y, meta=with_target(X._meta, y._meta), align_dataframes=False)
    return list(rows.simplify().to_delayed(optimize_graph=False))


def _recipes(parts: Sequence[Any]) -> Callable[[str, Sequence[Any], Sequence[str]], Any]:
    """How to make rows of partitions: in one task, unless they are in the cluster's memory or made together."""
    dask, distributed = import_dask()
    from dask.optimization import cull

    graph = dict(parts[0].__dask_graph__())
    needed = {part.key: cull(graph, [part.key])[0] for part in parts}  # type: ignore[no-untyped-call]
    shared = sum(map(len, needed.values())) > len(set().union(*needed.values()))
    if shared or distributed.futures_of(parts):
        made = dask.delayed(make_shard)
        return lambda name, own, names: made(name, list(own), names)

    def recipe(name: str, own: Sequence[Any], names: Sequence[str]) -> Recipe:
        tasks = {key: task for part in own for key, task in needed[part.key].items()}
        return Recipe(compute_shard, name, tasks, [part.key for part in own], names)

    return recipe


@contextmanager
def lazy_engine(shards: dict[str, Any]) -> Iterator[DaskEngine]:
    """An engine over recipes, on the cluster of the present client, or on one of this machine for the time being."""
    _, distributed = import_dask()
    try:
        present = distributed.default_client()
    except ValueError:  # there is none
        with cluster_client() as client:
            yield DaskEngine(client, shards, TASKS)
    else:
        yield DaskEngine(present, shards, TASKS)


def predict_lazily(model: Any, X: Any) -> Any:
    """A dask series of predictions, computed when it is asked for."""
    return X.map_partitions(_predict_frame, model, meta=("prediction", "f8"))


def _predict_frame(frame: Any, model: Any) -> Any:
    import pandas as pd

    values: Array = model.predict(frame) if len(frame) else np.empty(0)
    return pd.Series(values, index=frame.index, name="prediction")
