"""Error against what there is to read: our rules and models of other packages that people can read.

Scores come from `benchmarks.accuracy`, which runs all methods on the same draws of the same tables. Errors are relative
to those of our automatic mode, the teacher of the rules, on common draws. What there is to read is conditions plus
terms (`benchmarks.accuracy.complexity`).

    python -m benchmarks.readable [--tables design|judged] [--labels 20 50 200] [--run [--draws N]]

``--run`` first runs what is not stored: peers in their environment, and our methods on the design tables.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator

import pandas as pd

from benchmarks.accuracy import scores, summary
from benchmarks.accuracy.peers import READABLE
from benchmarks.tables import DESIGN, JUDGED
from benchmarks.tables.bundled import ENVIRONMENT

SETS = {"design": DESIGN, "judged": JUDGED}
TEACHER, RULES = "auto", "rules"
LABELS = ("20", "50", "200")


def read(tables: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of the teacher (of the version before, if the present one is not stored), and of methods to read."""
    stored = scores.read_scores(scores.OURS[tables])
    teacher, rules = (summary.newest(stored, method) for method in (TEACHER, RULES))
    if teacher.empty:
        before = scores.read_scores(scores.BEFORE)
        teacher = before[before.method == TEACHER]
    peers = scores.read_scores(scores.PEERS)
    methods = pd.concat([rules, peers[peers.method.isin(READABLE)]])
    return tuple(rows[rows.table.isin(SETS[tables])] for rows in (teacher, methods))


def compare(teacher: pd.DataFrame, methods: pd.DataFrame, labels: str) -> pd.DataFrame:
    """Geometric mean of relative errors, medians of what there is to read, and seconds; one row per method."""
    own, others = (rows[rows.labels == labels] for rows in (teacher, methods))
    table = summary.ratios(own, others)
    others = others.assign(to_read=others.conditions + others.terms)
    by_method = others.groupby("method")
    return (
        pd.DataFrame(
            {
                "error": table.apply(summary.geometric_mean),
                "tables": table.count(),
                "conditions": by_method.conditions.median(),
                "terms": by_method.terms.median(),
                "to_read": by_method.to_read.median(),
                "seconds": by_method.seconds.median(),
            }
        )
        .dropna(subset="error")
        .sort_values("error")
    )


def lines(found: pd.DataFrame, labels: str, tables: str) -> Iterator[str]:
    yield f"{labels} labels, {tables} tables: NRMSE over that of dsfr auto (geometric mean), medians of the others"
    yield f"{'':<18}{'error':>7}{'tables':>8}{'conditions':>12}{'terms':>7}{'to read':>9}{'seconds':>9}"
    for method, row in found.iterrows():
        counts = f"{row.conditions:>12.0f}{row.terms:>7.0f}{row.to_read:>9.0f}"
        yield f"{method:<18}{row.error:>7.3f}{row.tables:>8.0f}{counts}{row.seconds:>9.2f}"
    yield ""


def plot(found: dict[str, pd.DataFrame], tables: str) -> None:
    """Error against what there is to read, one picture per number of labels."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(4.6 * len(found), 4.4), layout="constrained", sharey=True)
    for axis, (labels, rows) in zip([axes] if len(found) == 1 else axes, found.items(), strict=True):
        for method, row in rows.dropna(subset="to_read").iterrows():
            i = READABLE.index(method) if method in READABLE else -1
            color = "black" if method == RULES else f"C{i}"
            axis.plot(row.to_read, row.error, "osv^DPX<*"[i], color=color, markersize=9, label=method)
        axis.axhline(1.0, color="black", linewidth=0.8, linestyle="--")
        axis.set(xscale="log", xlabel="conditions + terms (median)", title=f"{labels} labels, {tables} tables")
        axis.margins(0.2, 0.08)
        axis.legend(fontsize=8)
    (axes if len(found) == 1 else axes[0]).set_ylabel("NRMSE over that of dsfr auto (geometric mean)")
    figure.savefig(scores.SUMMARIES / f"readable_{tables}.png", dpi=100)
    plt.close(figure)


def run_missing(tables: str, labels: list[str], draws: int) -> None:
    """Run what is not stored; our methods on judged tables are run by `benchmarks.accuracy` only."""
    common = ["--tables", tables, "--labels", *labels, "--draws", str(draws)]
    peers = [str(ENVIRONMENT / "bin" / "python"), "-m", "benchmarks.accuracy", "peers", *common]
    subprocess.run([*peers, "--methods", *READABLE], check=True)
    if tables == "design":
        subprocess.run([sys.executable, "-m", "benchmarks.accuracy", "ours", *common], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", choices=SETS, default="design")
    parser.add_argument("--labels", nargs="+", choices=LABELS, default=LABELS)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--draws", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.run:
        run_missing(arguments.tables, arguments.labels, arguments.draws)
    teacher, methods = read(arguments.tables)
    compared = {labels: compare(teacher, methods, labels) for labels in arguments.labels}
    found = {labels: rows for labels, rows in compared.items() if len(rows)}
    for labels, rows in found.items():
        seconds = teacher[teacher.labels == labels].seconds.median()
        print(f"dsfr auto, the teacher: {teacher.version.iloc[-1]}, {seconds:.2f} s")
        print("\n".join(lines(rows, labels, arguments.tables)))
    if found:
        plot(found, arguments.tables)


if __name__ == "__main__":
    main()
