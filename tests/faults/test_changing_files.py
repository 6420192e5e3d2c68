"""A file that changes, shrinks or vanishes while it is streamed is one error that names it, never a wrong model."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from dsfr import SFRRegressor, scan
from dsfr.io.columns import TableError
from tests.faults.cases import n_cases, random_of, record

N_ROWS = 200_000
"""More than one batch of every kind of file."""
ENDINGS = ("csv", "csv.gz", "parquet", "npy", "fortran.npy")


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Bytes of the same rows in every kind of file."""
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.0, 1.0, (N_ROWS, 3)).round(6)
    frame = pd.DataFrame(values, columns=["x0", "x1", "x2"])
    folder = tmp_path_factory.mktemp("contents")
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.csv.gz", index=False, compression={"method": "gzip", "compresslevel": 1})
    frame.to_parquet(folder / "rows.parquet", row_group_size=20_000)
    np.save(folder / "rows.npy", values)
    np.save(folder / "rows.fortran.npy", np.asfortranarray(values))
    return {ending: (folder / f"rows.{ending}").read_bytes() for ending in ENDINGS}


def shrunk(path, rng):
    with path.open("r+b") as file:
        file.truncate(int(rng.integers(path.stat().st_size)))


def overwritten(path, rng):
    with path.open("r+b") as file:
        file.seek(int(rng.integers(path.stat().st_size)))
        file.write(rng.bytes(100))


def lengthened(path, rng):
    with path.open("ab") as file:
        file.write(b"1,2,3\n")


def replaced(path, rng):
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data)


def vanished(path, rng):
    path.unlink()


CHANGES = (shrunk, overwritten, lengthened, replaced, vanished)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_changed_file_is_named(contents, tmp_path, record_property, ending):
    rng = random_of(ending)
    for number in range(n_cases(len(CHANGES))):
        path = tmp_path / f"rows.{ending}"
        path.write_bytes(contents[ending])
        tables = scan(path, target="x2").tables(["x0", "x2"])
        next(tables)
        CHANGES[number % len(CHANGES)](path, rng)
        with pytest.raises(TableError, match=f"rows.{ending} (changed|was removed) while it was read"):
            list(tables)
    record(record_property, Counter({"refused by name": number + 1}))


def test_a_fit_on_a_file_that_shrinks_has_no_model(contents, tmp_path):
    path = tmp_path / "rows.npy"
    path.write_bytes(contents["npy"])
    rows, rng = scan(path, target="x2"), random_of("fit")
    estimator = SFRRegressor(n_rules=2)
    with pytest.raises(TableError, match="changed while it was read"):
        estimator.fit(replace_after_first_batch(rows, lambda: shrunk(path, rng)))
    assert not hasattr(estimator, "model_")


def replace_after_first_batch(rows, change):
    """The scan, with a change once its first batch was read."""
    left = [change]
    return type(rows)(rows.files, rows.column_names, rows.schema, rows.target, None, on_rows=lambda _: drain(left))


def drain(left):
    while left:
        left.pop()()


@pytest.mark.parametrize("ending", ["npy", "fortran.npy"])
def test_arrays_are_read_as_they_are(contents, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    path.write_bytes(contents[ending])
    read = np.concatenate([table.to_pandas().to_numpy() for _, table in scan(path).tables(["x2", "x0"])])
    np.testing.assert_array_equal(read, np.load(path)[:, [2, 0]])
