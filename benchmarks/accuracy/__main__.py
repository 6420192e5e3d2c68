"""Our methods and their peers with few labels, on many tables; nothing sees a test row.

    python -m benchmarks.accuracy peers [--tables design|judged] [--labels 50 ...] [--draws 4] [--methods EBM ...]
    python -m benchmarks.accuracy ours  [--tables design|judged] [--labels 50 ...] [--draws 4] [--methods auto ...]
    python -m benchmarks.accuracy show  [--tables design|judged] [--labels 50 ...] [--detail] [--unseen]

Without --labels, 20 to 200 are run, which targets are set for, and all that are stored are shown.

`peers` runs in the environment of benchmarks/accuracy/requirements.txt. Rows that are stored with the present version
are not run again, so it can be stopped at any time. Without a command our methods run on the design tables and the
comparison is shown. Design tables may be looked at as often as one likes; judged tables are for a release: each run of
ours on them is kept in judged.csv with its commit. See `benchmarks.tables` for tables, split and draws.
"""

import argparse
import os
import sys

from benchmarks.accuracy import measure, peers, scores
from benchmarks.accuracy.summary import WITH_TARGET
from benchmarks.tables import DESIGN, JUDGED, UNSEEN
from benchmarks.tables.bundled import ENVIRONMENT

SETS = {"design": DESIGN, "judged": JUDGED}
LABELS = ("20", "50", "100", "200", "500", "all")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("peers", "ours", "show"))
    parser.add_argument("--tables", choices=SETS, default="design")
    parser.add_argument("--only", nargs="+", help="names of tables within the set")
    parser.add_argument("--labels", nargs="+", choices=LABELS)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--unseen", action="store_true", help="judged tables of packages that were never used")
    parser.add_argument("--detail", action="store_true", help="every table on a line of its own")
    return parser.parse_args()


def units(arguments: argparse.Namespace, methods: tuple[str, ...]) -> list[measure.Unit]:
    """Everything to run, one draw of all tables after the other."""
    tables = [name for name in SETS[arguments.tables] if name in (arguments.only or SETS[arguments.tables])]
    return [
        (table, labels, draw, method)
        for labels in arguments.labels or WITH_TARGET
        for draw in range(arguments.draws)
        for table in tables
        for method in arguments.methods or methods
    ]


def run_peers(arguments: argparse.Namespace) -> None:
    if sys.prefix != str(ENVIRONMENT.absolute()):
        python = str(ENVIRONMENT.absolute() / "bin" / "python")
        os.execv(python, [python, "-m", "benchmarks.accuracy", *sys.argv[1:]])
    measure.run(units(arguments, tuple(peers.PEERS)), scores.PEERS, measure.score_peer, peers.version_of)


def run_ours(arguments: argparse.Namespace) -> None:
    from benchmarks.accuracy import ours

    path = scores.OURS[arguments.tables]
    measure.run(units(arguments, ours.OURS), path, ours.score_ours, ours.source_version)


def show(arguments: argparse.Namespace) -> None:
    from benchmarks.accuracy import page

    stored = page.Stored.read(arguments.tables, UNSEEN if arguments.unseen else SETS[arguments.tables])
    methods, labels = arguments.methods or ("auto", "rules"), arguments.labels or LABELS
    text = "\n".join(page.lines(stored, methods, labels, arguments.detail))
    print(text)
    if not (arguments.labels or arguments.methods or arguments.unseen):
        page.store(stored, text if not arguments.detail else "")


def main() -> None:
    arguments = parse()
    commands = {"peers": (run_peers,), "ours": (run_ours,), "show": (show,), None: (run_ours, show)}
    for command in commands[arguments.command]:
        command(arguments)


if __name__ == "__main__":
    main()
