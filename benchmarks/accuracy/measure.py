"""Fit a method on a draw of a table and score it on the test rows; what is stored already is not run again."""

import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import peers
from benchmarks.accuracy.complexity import measure_complexity
from benchmarks.accuracy.scores import append_score, nrmse, read_scores
from benchmarks.tables import Draw, draw_rows

Unit = tuple[str, str, int, str]
"""Table, number of labels or "all", number of the draw, method."""


def score_peer(method: str, draw: Draw) -> dict[str, Any]:
    """Error, seconds of a fit and complexity of a peer, which sees the labelled rows only."""
    X, y = draw.labeled
    if not peers.applies(method, len(y)):
        return {}
    model = peers.ALL[method][0](X.shape[1], draw.seed)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    error = nrmse(draw.y_test, np.asarray(model.predict(draw.X_test)))
    return {"nrmse": error, "seconds": seconds, **measure_complexity(method, model)}


def units_done(path: Path, version: Callable[[str], str]) -> set[Unit]:
    """Units with a row of the present version; the last word of a version tells one from another."""
    stored = read_scores(path)
    return {
        (row.table, row.labels, row.draw, row.method)
        for row in stored.itertuples()
        if row.version.split()[-1] == version(row.method).split()[-1]
    }


def run(
    units: Iterable[Unit], path: Path, score: Callable[[str, Draw], dict[str, Any]], version: Callable[[str], str]
) -> None:
    """Score the units that the file lacks, one row each; a method that fails is reported and gets no row."""
    warnings.simplefilter("ignore")
    done = units_done(path, version)
    for table, labels, number, method in units:
        if (table, labels, number, method) in done:
            continue
        draw = draw_rows(table, labels, number)
        if draw is None:
            continue
        try:
            found = score(method, draw)
        except Exception as error:
            print(f"{table}, {labels} labels, draw {number}, {method}: {type(error).__name__}: {error}", flush=True)
            continue
        if found:
            place = {"table": table, "labels": labels, "draw": number, "method": method}
            append_score(path, {**place, **found, "version": version(method)})
