"""Accuracy under a cap on weights for each label, beside that without one, on design tables.

    python -m benchmarks.cap [--draws 2] [--only boston ...]

A cap of a third is what a policy of owners allows (`Ensemble(max_weights_per_label=1/3)`). NRMSE on test rows, 50
labels; stored in benchmarks/results/cap.txt.
"""

import argparse
import warnings

import numpy as np

from benchmarks.accuracy.ours import source_version
from benchmarks.accuracy.scores import nrmse
from benchmarks.run import RESULTS
from benchmarks.tables import DESIGN, draw_rows
from dsfr import AutoSFRRegressor, Ensemble

CAPS = (None, 1.0, 1 / 3)
LABELS = "50"


def errors(table: str, draw: int) -> list[float]:
    """NRMSE under every cap; NaN where nothing fits."""
    rows, found = draw_rows(table, LABELS, draw), []
    for cap in CAPS:
        model = AutoSFRRegressor(ensemble=Ensemble(max_weights_per_label=cap), random_state=rows.seed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(nrmse(rows.y_test, np.asarray(model.fit(rows.X, rows.y).predict(rows.X_test))))
        except ValueError:  # not even a line along all features fits
            found.append(float("nan"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=DESIGN, default=list(DESIGN))
    arguments = parser.parse_args()
    lines = [
        f"NRMSE of AutoSFRRegressor with {LABELS} labels, dsfr at {source_version()}; mean of {arguments.draws} draws",
        f"{'table':24}{'free':>8}{'1':>8}{'1/3':>8}  weights for each label",
    ]
    means = []
    for table in arguments.only:
        mean = np.mean([errors(table, draw) for draw in range(arguments.draws)], axis=0)
        means.append(mean)
        lines.append(f"{table:24}" + "".join(f"{value:8.3f}" if np.isfinite(value) else f"{'-':>8}" for value in mean))
        print(lines[-1], flush=True)
    known = np.array([mean for mean in means if np.isfinite(mean).all()])
    ratios = np.exp(np.log(known / known[:, :1]).mean(axis=0))
    n_left = len(means) - len(known)
    lines.append(
        f"geometric mean over {len(known)} tables, over that without a cap: {ratios[1]:.3f} (1), {ratios[2]:.3f} (1/3)"
        f"; {n_left} tables have too many features for a third (-)"
    )
    text = "\n".join(lines) + "\n"
    print(text)
    (RESULTS / "cap.txt").write_text(text)


if __name__ == "__main__":
    main()
