"""What stored scores say: peers' errors relative to ours, and coverage of our intervals.

Every comparison of two methods on a table is the ratio of their mean errors over the draws that both ran on, so a peer
with fewer draws is compared on these.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.accuracy.scores import LEVELS

CLOSE = 1.05
"""Within this factor of the best peer counts as level."""
BELOW, SHARE_CLOSE = 0.08, 0.8
WITH_TARGET = ("20", "50", "100", "200")
"""Targets on judged tables, and the numbers of labels that they are set for."""


def newest(rows: pd.DataFrame, method: str) -> pd.DataFrame:
    """Rows of a method of the same source as its last row: commits may differ in documents and stored results."""
    own = rows[rows.method == method]
    digests = own.version.str.split().str[-1]
    return own[digests == digests.iloc[-1]] if len(own) else own


def ratios(ours: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Mean error of every other method over ours, on common draws; one row per table, one column per method."""
    own = ours.set_index(["table", "draw"]).nrmse
    columns = {}
    for method, rows in others.groupby("method", sort=False):
        both = pd.concat([rows.set_index(["table", "draw"]).nrmse, own], axis=1, join="inner", keys=["peer", "ours"])
        mean = both.groupby("table").mean()
        columns[method] = mean.peer / mean.ours
    return pd.DataFrame(columns).sort_index()


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values.dropna()).mean()))


def best_peer(table: pd.DataFrame) -> pd.Series:
    """Our error over that of the best peer of each table."""
    return 1.0 / table.min(axis=1)


def mean_ranks(table: pd.DataFrame) -> pd.Series:
    """Mean rank of every method over tables where all methods ran; ours is called "ours"."""
    return table.assign(ours=1.0).dropna().rank(axis=1).mean()


def bars(table: pd.DataFrame) -> dict[str, float]:
    """The numbers that targets are about; only a peer that ran on every table can be the best single one."""
    means = table.dropna(axis=1).apply(geometric_mean)
    to_best = best_peer(table)
    return {
        "below the best single peer": 1.0 - 1.0 / means.min(),
        "to the best peer of each table": geometric_mean(to_best),
        "share within 5% of the best peer": float((to_best <= CLOSE).mean()),
        "worst table": float(to_best.max()),
    }


def comparison(table: pd.DataFrame, labels: str, method: str) -> Iterator[str]:
    """Peers in the order of their error, then the bars."""
    ranks = mean_ranks(table)
    n_ranked = len(table.dropna())
    yield f"{labels} labels: peers' NRMSE over that of {method}, geometric mean over {len(table)} tables"
    yield f"(mean ranks over the {n_ranked} tables on which every method ran)"
    yield f"{'':<18}{'ratio':>8}{'it wins':>10}{'mean rank':>11}"
    yield f"{method:<18}{'1':>8}{'':>10}{ranks['ours']:>11.2f}"
    for peer, ratio in table.apply(geometric_mean).sort_values().items():
        wins = f"{int((table[peer] < 1).sum())} of {table[peer].count()}"
        yield f"{peer:<18}{ratio:>8.3f}{wins:>10}{ranks[peer]:>11.2f}"
    found, to_best = bars(table), best_peer(table)
    below, close = (f" (target: at least {t:.0%})" if labels in WITH_TARGET else "" for t in (BELOW, SHARE_CLOSE))
    yield f"{found['below the best single peer']:.1%} below the best single peer{below}"
    share = found["share within 5% of the best peer"]
    yield f"{found['to the best peer of each table']:.3f} of the best peer of each table (geometric mean)"
    yield f"within 5% of the best peer on {share:.0%} of tables{close}"
    worst = ", ".join(f"{name} {to_best[name]:.2f} ({table.loc[name].idxmin()})" for name in to_best.nlargest(3).index)
    yield f"farthest from it: {worst}\n"


def progress(ours: pd.DataFrame, before: pd.DataFrame) -> Iterator[str]:
    """Comparison with an earlier version of the same method."""
    table = ratios(ours, before)
    if table.empty:
        return
    ratio = table.iloc[:, 0]
    worse = ratio[ratio < 1 / CLOSE].sort_values()
    named = ", ".join(f"{name} {1 / value:.2f}" for name, value in worse.items()) or "none"
    yield f"NRMSE of the version before ({before.version.iloc[-1]}) over this one: {geometric_mean(ratio):.3f}"
    yield f"tables on which the version before is more than 5% better: {named}\n"


def detail(table: pd.DataFrame, ours: pd.DataFrame) -> Iterator[str]:
    """Our mean error on every table, and the ratio of every peer."""
    own = ours.groupby("table").nrmse.mean()
    short = [name[:9] for name in table]
    yield f"{'table':<22}{'ours':>7}" + "".join(f"{name:>10}" for name in short)
    for name, row in table.iterrows():
        cells = (f"{value:.2f}" + ("*" if value == row.min() else " ") if value == value else "- " for value in row)
        yield f"{name:<22}{own[name]:>7.3f}" + "".join(f"{cell:>10}" for cell in cells)
    yield ""


def by_labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows in the order of their numbers of labels, "all" last."""
    return rows.sort_values("labels", key=lambda labels: labels.replace("all", "1e9").astype(float), kind="stable")


def intervals(rows: pd.DataFrame) -> Iterator[str]:
    """Coverage and width of intervals by method and number of labels: means over tables, and the lowest table."""
    yield f"{'intervals':<14}{'labels':>7}" + "".join(f"{f'{n}%: mean':>12}{'lowest':>8}{'width':>7}" for n in LEVELS)
    scored = by_labels(rows.dropna(subset="coverage90"))
    for (method, labels), every in scored.groupby(["method", "labels"], sort=False):
        part = newest(every, method)
        means = part.groupby("table")[[f"{m}{n}" for n in LEVELS for m in ("coverage", "width")]].mean()
        cells = (
            f"{means[f'coverage{n}'].mean():>12.3f}{means[f'coverage{n}'].min():>8.3f}{means[f'width{n}'].mean():>7.2f}"
            for n in LEVELS
        )
        yield f"{method:<14}{labels:>7}" + "".join(cells)
    for labels, part in scored.groupby("labels", sort=False):
        if labels != "all":
            shape = part.table.nunique(), part.draw.nunique()
            lowest = ", ".join(f"{lowest_by_chance(int(labels), n / 100, *shape):.3f} ({n}%)" for n in LEVELS)
            yield f"lowest table by chance alone, {labels} labels, {shape[0]} tables, {shape[1]} draws: {lowest}"
    yield ""


def lowest_by_chance(n_labels: int, level: float, n_tables: int, n_draws: int) -> float:
    """Median of the lowest mean coverage of so many tables, if errors on labels and on new rows are alike.

    Half the width is the ``r = ceil(level (n + 1))``-th smallest of ``n`` errors. The share of new errors below it then
    has a Beta distribution, with parameters ``r`` and ``n + 1 - r``, whatever the distribution of the errors is.
    """
    rank = min(int(np.ceil(level * (n_labels + 1) - 1e-9)), n_labels)
    drawn = np.random.default_rng(0).beta(rank, n_labels + 1 - rank, (4000, n_tables, n_draws))
    return float(np.median(drawn.mean(axis=2).min(axis=1)))
