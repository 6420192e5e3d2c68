"""Text and picture of the stored scores of one set of tables."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmarks.accuracy import scores, summary
from benchmarks.accuracy.peers import PEERS

WITH_PLOT = "50"
"""Labels of the picture of single tables."""
WIDEST = 3
"""Ratios beyond this are drawn at the edge."""


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
        return ours, self.peers[(self.peers.labels == labels) & self.peers.method.isin(PEERS)], before


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
    methods = [method for method in PEERS if method in set(stored.peers.method)]
    styles = {m: {"marker": "osv^DPX*<>"[i], "color": f"C{i}", "label": m} for i, m in enumerate(methods)}
    plot_tables(left, stored, styles)
    plot_labels(right, stored, styles)
    figure.savefig(scores.SUMMARIES / f"accuracy_{stored.name}.png", dpi=100)
    plt.close(figure)


def plot_tables(axis: Any, stored: Stored, styles: dict[str, dict[str, Any]]) -> None:
    """One line per table: errors over that of the table's best peer, ours as a bar."""
    ours, others, _ = stored.at(WITH_PLOT, "auto")
    table = summary.ratios(ours, others[others.method.isin(styles)])
    own = summary.best_peer(table).sort_values(ascending=False)
    heights = range(len(own))
    for method in table:
        relative = (table[method] * own)[own.index].clip(upper=WIDEST)
        axis.plot(relative, heights, linestyle="", markersize=4, alpha=0.6, **styles[method])
    axis.plot(own.clip(upper=WIDEST), heights, "k|", markersize=13, markeredgewidth=3, label="dsfr auto")
    axis.axvline(summary.CLOSE, color="black", linewidth=0.8, linestyle="--")
    axis.set_yticks(list(heights), own.index)
    axis.set(xscale="log", xlabel=f"NRMSE over that of the best peer (dashed: 1.05; {WIDEST} stands for more)")
    axis.set_xticks([0.6, 0.8, 1.0, 1.5, 2.0, WIDEST], ["0.6", "0.8", "1", "1.5", "2", f"{WIDEST}"])
    axis.minorticks_off()
    axis.set_title(f"{WITH_PLOT} labels, {len(own)} {stored.name} tables")
    axis.grid(axis="y", linewidth=0.3)


def plot_labels(axis: Any, stored: Stored, styles: dict[str, dict[str, Any]]) -> None:
    """Geometric means over tables against the number of labels."""
    levels = [level for level in ("20", "50", "100", "200", "500", "all") if level in set(stored.ours.labels)]
    means = pd.DataFrame(
        {level: summary.ratios(*stored.at(level, "auto")[:2]).apply(summary.geometric_mean) for level in levels}
    )
    for method, style in styles.items():
        if method in means.index:
            axis.plot(levels, means.loc[method], **style)
    axis.axhline(1.0, color="black", linewidth=3, label="dsfr auto")
    axis.set(xlabel="labels", ylabel="NRMSE of the peer over that of dsfr auto (geometric mean over tables)")
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
