"""Error against what there is to read, over the tolerance of short rules, on design tables.

    python -m benchmarks.trade_off [--labels 50] [--draws 1] [--only boston ...]

One teacher for each table and draw is distilled with every tolerance (`RuleRegressor(tolerance=...)`). Errors are
relative to the teacher's, geometric means over tables; two halves of the tables show how far that depends on them.
The default was chosen on these tables, with 20, 50 and 200 labels.
Stored in benchmarks/results/trade_off.txt.
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np

from benchmarks.accuracy.ours import source_version
from benchmarks.accuracy.scores import nrmse
from benchmarks.run import RESULTS
from benchmarks.tables import DESIGN, draw_rows
from dsfr import RuleRegressor
from dsfr.core.explain.card import Card, term_names
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings

TOLERANCES = (0.0, 0.0005, 0.001, 0.002, 0.003, 0.006, None)


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


def measured(table: str, labels: str, draw: int) -> np.ndarray | None:
    """Error over the teacher's, what there is to read and number of rules, for every tolerance; (tolerances, 3)."""
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
    return np.column_stack([errors, sizes])


def line(tolerance: float | None, found: np.ndarray) -> str:
    """One tolerance: errors on all tables, on both halves, and what there is to read."""
    errors = [np.exp(np.log(part[:, 0]).mean()) for part in (found, found[::2], found[1::2])]
    name = "default" if tolerance is None else f"{tolerance:.2%}"
    counts = f"{np.median(found[:, 1]):>10.0f}{found[:, 1].mean():>8.1f}{found[:, 2].mean():>8.1f}"
    return f"{name:>10}" + "".join(f"{error:>8.3f}" for error in errors) + f"{found[:, 0].max():>8.2f}{counts}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", default="50")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=DESIGN, default=list(DESIGN))
    arguments = parser.parse_args()
    runs = [measured(table, arguments.labels, draw) for table in arguments.only for draw in range(arguments.draws)]
    found = np.stack([run for run in runs if run is not None])
    lines = [
        f"{arguments.labels} labels, {len(arguments.only)} tables, {arguments.draws} draws; dsfr at {source_version()}",
        "NRMSE over the teacher's (geometric mean of all tables, of every other one, of the rest; worst), median and",
        "mean of what there is to read, mean number of rules, by what each of it must save of the expected error",
        f"{'tolerance':>10}{'all':>8}{'first':>8}{'second':>8}{'worst':>8}{'median':>10}{'mean':>8}{'rules':>8}",
        *(line(tolerance, found[:, i]) for i, tolerance in enumerate(TOLERANCES)),
    ]
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if arguments.only == list(DESIGN):
        (RESULTS / "trade_off.txt").write_text(text)


if __name__ == "__main__":
    main()
