"""Text and picture of the stored scores of one set of tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from benchmarks.accuracy import scores, summary

WITH_PLOT = "50"
"""Labels of the picture of single tables."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Scores of one set of tables."""

    name: str
    ours: pd.DataFrame
    peers: pd.DataFrame
    before: pd.DataFrame

    @classmethod
    def read(cls, name: str, tables: Iterable[str]) -> "Stored":
        """Scores of ours, of peers and of the version before on these tables."""
        found = (scores.read_scores(path) for path in (scores.OURS[name], scores.PEERS, scores.BEFORE))
        return cls(name, *(rows[rows.table.isin(set(tables))] for rows in found))

    def at(self, labels: str, method: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        """Newest rows of our method, of peers, and of the version before, with so many labels."""
        ours = summary.newest(self.ours[self.ours.labels == labels], method)
        before = self.before[(self.before.labels == labels) & (self.before.method == method)]
        return ours, self.peers[self.peers.labels == labels], before


def lines(stored: Stored, methods: Iterable[str], labels: Iterable[str], detail: bool) -> Iterator[str]:
    """The comparison of each of our methods with all peers, at each number of labels, and our intervals."""
    for method in methods:
        for level in labels:
            ours, others, before = stored.at(level, method)
            table = summary.ratios(ours, others)
            if table.empty:
                continue
            yield f"{stored.name} tables, dsfr at {ours.version.iloc[-1]}"
            yield from summary.comparison(table, level, method)
            yield from summary.progress(ours, before)
            if detail:
                yield from summary.detail(table, ours)
    yield from summary.intervals(stored.ours)


def store(stored: Stored, text: str) -> None:
    """Write text and picture beside the other results."""
    if text:
        (scores.SUMMARIES / f"accuracy_{stored.name}.txt").write_text(text.rstrip() + "\n")
    plot(stored)


def plot(stored: Stored) -> None:
    """Errors on every table with 50 labels, and peers' mean ratios against the number of labels."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 9), layout="constrained", width_ratios=(3, 2))
    plot_tables(left, stored)
    plot_labels(right, stored)
    figure.savefig(scores.SUMMARIES / f"accuracy_{stored.name}.png", dpi=100)
    plt.close(figure)


def plot_tables(axis: object, stored: Stored) -> None:
    """One line per table: every peer as a letter-free mark, the best one and ours marked."""
    ours, others, _ = stored.at(WITH_PLOT, "auto")
    own = ours.groupby("table").nrmse.mean()
    table = summary.ratios(ours, others).mul(own, axis=0)
    order = own[table.index].sort_values().index
    heights = range(len(order))
    for i, method in enumerate(table):
        axis.plot(table.loc[order, method], heights, "osv^DPX*<>"[i], markersize=4, alpha=0.6, label=method)
    axis.plot(own[order], heights, "k|", markersize=13, markeredgewidth=3, label="dsfr auto")
    axis.set_yticks(list(heights), order)
    axis.set(xscale="log", xlabel="test NRMSE", title=f"{WITH_PLOT} labels, {len(order)} {stored.name} tables")
    axis.grid(axis="y", linewidth=0.3)
    axis.legend(fontsize=8)


def plot_labels(axis: object, stored: Stored) -> None:
    levels = [level for level in ("20", "50", "100", "200", "500", "all") if level in set(stored.ours.labels)]
    means = pd.DataFrame(
        {level: summary.ratios(*stored.at(level, "auto")[:2]).apply(summary.geometric_mean) for level in levels}
    )
    for i, (method, row) in enumerate(means.iterrows()):
        axis.plot(levels, row, marker="osv^DPX*<>"[i % 10], label=method)
    axis.axhline(1.0, color="black", linewidth=2)
    axis.set(xlabel="labels", ylabel="NRMSE of the peer over that of dsfr auto (geometric mean over tables)")
    axis.legend(fontsize=8)
