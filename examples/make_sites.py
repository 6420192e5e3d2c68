"""Write the tables of five sites: ``python examples/make_sites.py FOLDER [--rows 20000] [--csv]``.

Five weather stations measure temperature, humidity, wind and hour; the load of the grid is known for few of the hours.
Every site has its own climate. The random seed is fixed, so the tables are always the same.
"""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

N_SITES, SEED = 5, 20
LABELED = 0.01
"""Share of the hours whose load is known."""


def make_site(number: int, n_rows: int) -> pa.Table:
    """The table of one site; an empty load marks an unlabelled row."""
    rng = np.random.default_rng([SEED, number])
    temperature = rng.normal(5.0 + 5.0 * number, 6.0, n_rows)
    humidity = np.clip(rng.normal(80.0 - 8.0 * number, 12.0, n_rows), 5.0, 100.0)
    wind = rng.gamma(2.0, 2.0, n_rows)
    hour = rng.integers(0, 24, n_rows).astype(float)
    comfort = (temperature - 18.0) ** 2 / 60.0
    load = 40.0 + comfort + 8.0 * np.sin((hour - 7.0) * np.pi / 12.0) + 0.05 * humidity - 0.3 * wind
    load += rng.normal(0.0, 1.0, n_rows)
    known = rng.random(n_rows) < LABELED
    columns = {"temperature": temperature, "humidity": humidity, "wind": wind, "hour": hour}
    return pa.table(columns | {"load": pa.array(np.where(known, load, np.nan), from_pandas=True)})


def main() -> None:
    """Write all sites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--csv", action="store_true", help="write CSV instead of Parquet")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for number in range(N_SITES):
        table = make_site(number, options.rows)
        if options.csv:
            pa.csv.write_csv(table, options.folder / f"site-{number}.csv")
        else:
            pa.parquet.write_table(table, options.folder / f"site-{number}.parquet")
    print(f"{N_SITES} sites of {options.rows} rows in {options.folder}")


if __name__ == "__main__":
    main()
