"""Columns as people have them, and what must become of each, whatever way a table comes."""

import re
import warnings

import numpy as np
import pandas as pd

N_ROWS = 40
SENTENCES = [f"the tenant of flat {n} has said this" for n in range(N_ROWS)]
ODD = {
    "nan": np.r_[np.nan, np.arange(1.0, N_ROWS)],
    "inf": np.r_[np.inf, np.arange(1.0, N_ROWS)],
    "text": SENTENCES,
    "category": ["x", "y"] * (N_ROWS // 2),
    "date": pd.date_range("2020-01-01", periods=N_ROWS),
    "bool": [True, False] * (N_ROWS // 2),
    "constant": np.full(N_ROWS, 3.0),
    "id": np.arange(N_ROWS) + 1000,
    "duplicate": np.arange(float(N_ROWS)),
    "empty": np.full(N_ROWS, np.nan),
    "one level": ["x"] * N_ROWS,
}
"""Values of the odd column by cell."""
EXPECTED = {
    "nan": r"fitted: a, odd \| $",
    "inf": r"refused: (?=.*odd)(?=.*infini).*([Dd]rop|ake it NaN)",
    "text": r"refused: (rank 0: )?column 'odd' holds free text \('the tenant.*: make a few categories of it, or leave",
    "category": r"fitted: a, odd is y \| $",
    "date": r"refused: (rank 0: )?column 'odd' holds dates.*: turn it into numbers, such as a year.* or leave out",
    "bool": r"fitted: a, odd is True \| $",
    "constant": r"fitted: a, odd \| $",
    "id": r"fitted: a \| not learnt from: 'row_id' \(it is a different whole number in every row: an identifier\)$",
    "duplicate": r"refused: .*several columns named .*odd.*: rename them",
    "empty": r"refused: (rank 0: )?column 'odd' has no value at all: fill it in, or leave out 'odd'",
    "one level": r"fitted: a \| not learnt from: 'odd' \(it has only one level, 'x'\)$",
}
"""Outcome of a fit by cell: features and warnings, or the message of the error."""


def frame_of(cell):
    """A table with one odd column; its target is ``y``."""
    rng = np.random.default_rng(0)
    a = rng.uniform(0, 10, N_ROWS).round(3)
    frame = pd.DataFrame({"a": a, "row_id" if cell == "id" else "odd": ODD[cell]})
    if cell == "duplicate":
        frame.insert(2, "odd", np.arange(float(N_ROWS)), allow_duplicates=True)
    frame["y"] = 3.0 * a + rng.normal(0, 0.1, N_ROWS)
    return frame


def outcome(fit):
    """What a fit has come to, in one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            model = fit()
        except Exception as error:
            return "refused: " + re.sub(r"\s+", " ", str(error))
    said = {str(warning.message) for warning in caught if "not learnt from" in str(warning.message)}
    return f"fitted: {', '.join(model.feature_names)} | {'; '.join(sorted(said))}"
