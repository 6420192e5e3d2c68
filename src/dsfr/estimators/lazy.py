"""Training and predicting on dask data frames, which are never in one place as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.compiled import worthwhile
from dsfr.engines.dask import DaskEngine, cluster_client, import_dask
from dsfr.protocol import TASKS, Shard
from dsfr.protocol.rows import ArrayRows
from dsfr.protocol.shard import agent_key


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
    dask, _ = import_dask()
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
    pairs = list(zip(X.to_delayed(), y.to_delayed(), strict=True))
    groups = np.array_split(np.arange(len(pairs)), len(pairs) if n_agents == 1 else n_agents)
    make, names = dask.delayed(_make_shard), [str(name) for name in X.columns]
    return {
        str(number): make(str(number), [pairs[i][0] for i in group], [pairs[i][1] for i in group], names)
        for number, group in enumerate(groups)
    }


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


def _make_shard(name: str, frames: Sequence[Any], targets: Sequence[Any], names: Sequence[str]) -> Shard:
    """On a worker: the rows of an agent, checked."""
    X = np.concatenate([frame.to_numpy(dtype=np.float64, na_value=np.nan) for frame in frames])
    y = np.concatenate([target.to_numpy(dtype=np.float64, na_value=np.nan) for target in targets])
    if len(X) != len(y):
        raise ValueError(f"agent {name!r}: X has {len(X)} rows and y {len(y)}: take both from one data frame")
    broken = ~np.isfinite(X)
    if broken.any():
        bad = [f"{names[j]} ({broken[:, j].sum()} rows)" for j in np.flatnonzero(broken.any(axis=0)).tolist()]
        raise ValueError(f"agent {name!r}: X is missing or infinite in {', '.join(bad)}: fill or drop these rows")
    if np.isinf(y).any():
        raise ValueError(f"agent {name!r}: y contains infinity: targets must be finite, or NaN where unlabelled")
    return Shard(ArrayRows(X, y), agent_key(name), worthwhile(len(y)))
