"""Widths of our intervals beside those of MAPIE around the same models, at equal nominal coverage.

    python -m benchmarks.conformal [--run] [--labels 50] [--draws 1] [--methods rules "rules CV+"] [--only auto ...]

MAPIE's CV+ of ten folds fits a model eleven times, its jackknife+ once more than there are labels; ours come with one
fit. ``--run`` first runs what is not stored, in the environment of benchmarks/accuracy/requirements.txt. Scores are in
benchmarks/results/accuracy/conformal.csv, what is shown in benchmarks/results/conformal.txt. Design tables only.
"""

import argparse
import os
import sys
from collections.abc import Iterator

import pandas as pd

from benchmarks.accuracy import measure, scores
from benchmarks.run import RESULTS
from benchmarks.tables import DESIGN
from benchmarks.tables.bundled import ENVIRONMENT

PATH = scores.RESULTS / "conformal.csv"
TABLES = ("auto", "biomass", "births", "cigarettes", "concrete", "diabetes", "friedman1", "noise_that_grows")
METHODS = ("auto", "auto CV+", "rules", "rules CV+")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--labels", default="50")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--only", nargs="+", choices=DESIGN, default=TABLES)
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> None:
    """Score what is not stored, in the environment that has MAPIE."""
    if sys.prefix != str(ENVIRONMENT.absolute()):
        python = str(ENVIRONMENT.absolute() / "bin" / "python")
        os.execv(python, [python, "-m", "benchmarks.conformal", *sys.argv[1:]])
    from benchmarks.accuracy import ours

    units = [
        (table, arguments.labels, draw, method)
        for draw in range(arguments.draws)
        for table in arguments.only
        for method in arguments.methods
    ]
    measure.run(units, PATH, ours.score_ours, ours.source_version)


def lines(stored: pd.DataFrame) -> Iterator[str]:
    """Coverage, width and seconds of every method, means over the tables on which all ran."""
    yield f"dsfr at {stored.version.iloc[-1]}; widths in deviations of the test targets; means over tables"
    for labels, rows in stored.groupby("labels"):
        shown = [name for name in rows if name.startswith(("coverage", "width", "seconds"))]
        by_table = rows.groupby(["table", "method"])[shown].mean()
        is_complete = by_table.groupby("table").size() == rows.method.nunique()
        complete = by_table[by_table.index.get_level_values("table").isin(is_complete.index[is_complete])]
        names = sorted(complete.index.get_level_values("table").unique())
        yield f"{labels} labels: {', '.join(names)}"
        yield f"{'':<20}" + "".join(f"{f'{n}%: holds':>12}{'width':>8}" for n in scores.LEVELS) + f"{'seconds':>10}"
        for method, part in complete.groupby("method"):
            mean = part.mean()
            cells = (f"{mean[f'coverage{n}']:>12.3f}{mean[f'width{n}']:>8.3f}" for n in scores.LEVELS)
            yield f"{method:<20}" + "".join(cells) + f"{mean.seconds:>10.1f}"


def main() -> None:
    arguments = parse()
    if arguments.run:
        run(arguments)
    stored = scores.read_scores(PATH)
    if stored.empty:
        raise SystemExit("nothing is stored: give --run")
    text = "\n".join(lines(stored)) + "\n"
    print(text, end="")
    (RESULTS / "conformal.txt").write_text(text)


if __name__ == "__main__":
    main()
