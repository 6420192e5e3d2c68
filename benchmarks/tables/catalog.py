"""Every table by its name."""

import sys
import zlib

import numpy as np

from benchmarks.tables import bundled, generated

PAPER = ("airfoil", "wmsl", "ccpp", "ch", "kch")
REAL = (*PAPER, *bundled.TABLES)
GENERATED = tuple(generated.GENERATED)
TABLES = (*REAL, *GENERATED)


def load(name: str) -> bundled.Table:
    """Features, target and feature names of one table; exits if it cannot be loaded."""
    if name in PAPER:
        return load_paper(name)
    if name in GENERATED:
        X, y = generated.GENERATED[name](np.random.default_rng(zlib.crc32(name.encode())))
        return X, y, [f"x{i}" for i in range(X.shape[1])]
    if name in bundled.TABLES:
        return bundled.load_bundled(name)
    sys.exit(f"table {name!r} is none of {', '.join(TABLES)}")


def load_paper(name: str) -> bundled.Table:
    """A real table of the paper, from the folder DSFR_DATA_HOME."""
    from dsfr.paper.datasets import CATALOG, DatasetError, load_values

    try:
        values = load_values(name)
    except DatasetError as error:
        sys.exit(str(error))
    return values.X, values.y, list(CATALOG[name].columns[:-1])
