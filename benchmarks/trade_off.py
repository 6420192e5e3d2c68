"""Error against what there is to read, over the tolerance of short rules, on design tables.

    python -m benchmarks.trade_off [--labels 50] [--draws 2] [--only boston ...]

One teacher for each table and draw is distilled with every tolerance (`RuleRegressor(tolerance=...)`). Errors are
relative to the teacher's, geometric means over tables; two halves of the tables show how far that depends on them.
The default was chosen on these tables, with 20, 50 and 200 labels. Peers whose models people can read are from the
stored scores of the same draws, so that models of equal length can be compared.
Stored in benchmarks/results/trade_off.txt.
"""

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.accuracy.ours import source_version
from benchmarks.accuracy.peers import READABLE
from benchmarks.accuracy.scores import PEERS, nrmse, read_scores
from benchmarks.run import RESULTS
from benchmarks.tables import DESIGN, draw_rows
from dsfr import RuleRegressor
from dsfr.core.explain.card import Card, term_names
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings

TOLERANCES = (0.0, 0.001, 0.003, 0.006, 0.01, 0.02, 0.04, None)


class Students(RuleRegressor):
    """Short rules of every tolerance, of one teacher."""

    def _train(self, engine, settings):
        training, own = super()._train(engine, settings), StudentSettings()
        self.students_ = [distill(engine, training, replace(own, tolerance=value)) for value in TOLERANCES]
        return training


def to_read(predictor) -> int:
    """Conditions, terms and constants; terms that all rules share once."""
    names = tuple(map(tuple, term_names(predictor.basis, {}, ())))
    columns = tuple(f"x{j}" for j in range(predictor.n_features))
    return Card(predictor, columns, "y", names, (0.0,) * predictor.basis.n_rules).to_read


Run = tuple[str, int]
"""Table and draw."""


def measured(table: str, labels: str, draw: int) -> tuple[float, np.ndarray] | None:
    """Error of the teacher; error over that, what there is to read and number of rules, for every tolerance, (t, 3)."""
    rows = draw_rows(table, labels, draw)
    if rows is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = Students(random_state=rows.seed).fit(rows.X, rows.y)
    teacher = nrmse(rows.y_test, np.asarray(model.teacher_.predict(rows.X_test)))
    mixtures = [student.mixture for student in model.students_]
    errors = [nrmse(rows.y_test, mixture.predict(rows.X_test)) / teacher for mixture in mixtures]
    sizes = [(to_read(mixture.strongest), mixture.strongest.basis.n_rules) for mixture in mixtures]
    return teacher, np.column_stack([errors, sizes])


def line(name: str, found: np.ndarray) -> str:
    """One method: errors on all tables, on both halves, and what there is to read."""
    errors = [np.exp(np.log(part[:, 0]).mean()) for part in (found, found[::2], found[1::2])]
    counts = f"{np.median(found[:, 1]):>10.0f}{found[:, 1].mean():>8.1f}"
    return f"{name:>16}" + "".join(f"{error:>8.3f}" for error in errors) + f"{found[:, 0].max():>8.2f}{counts}"


def peer_lines(teachers: dict[Run, float], labels: str) -> Iterator[str]:
    """Peers that ran on every draw and were counted, those with least to read first."""
    stored = read_scores(PEERS)
    stored = stored[(stored.labels == labels) & stored.method.isin(READABLE)].set_index(["method", "table", "draw"])
    found = {}
    for method in READABLE:
        keys = [(method, *run) for run in teachers]
        rows = stored.reindex(keys)
        if rows.notna()[["nrmse", "conditions", "terms"]].all(axis=None):
            errors = rows.nrmse.to_numpy() / np.array(list(teachers.values()))
            found[method] = np.column_stack([errors, rows.conditions + rows.terms])
    for method, rows in sorted(found.items(), key=lambda item: np.median(item[1][:, 1])):
        yield line(method, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="50")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=DESIGN, default=list(DESIGN))
    arguments = parser.parse_args()
    asked = [(table, draw) for table in arguments.only for draw in range(arguments.draws)]
    runs = {run: found for run in asked if (found := measured(run[0], arguments.labels, run[1])) is not None}
    found = np.stack([students for _, students in runs.values()])
    teachers = {run: teacher for run, (teacher, _) in runs.items()}
    names = ["default" if tolerance is None else f"{tolerance:.2%}" for tolerance in TOLERANCES]
    lines = [
        f"{arguments.labels} labels, {len(arguments.only)} tables, {arguments.draws} draws; dsfr at {source_version()}",
        "NRMSE over the teacher's (geometric mean of all tables, of every other one, of the rest; worst), median and",
        "mean of what there is to read, mean number of rules, by what each of it must save of the expected error",
        f"{'tolerance':>16}{'all':>8}{'first':>8}{'second':>8}{'worst':>8}{'median':>10}{'mean':>8}{'rules':>8}",
        *(line(name, found[:, i]) + f"{found[:, i, 2].mean():>8.1f}" for i, name in enumerate(names)),
        *peer_lines(teachers, arguments.labels),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.only == list(DESIGN):
        (RESULTS / "trade_off.txt").write_text(text)


if __name__ == "__main__":
    main()
