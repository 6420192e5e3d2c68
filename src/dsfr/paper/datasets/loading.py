"""A data set by name: from ``DSFR_DATA_HOME``, from the cache, or from its public source, checked in each case."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from dsfr.core.arrays import Array
from dsfr.paper.datasets.artificial import N_FEATURES, make_artificial
from dsfr.paper.datasets.catalog import CATALOG, DatasetError, Source
from dsfr.paper.datasets.sources import Fetch, download
from dsfr.storage.atomic import replacing

NAMES = (*CATALOG, "artificial")


@dataclass(frozen=True, slots=True)
class Values:
    """A table of numbers and the names of its columns."""

    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a data set is found."""

    path: Path | None
    """None: nowhere on this machine, it would be downloaded (or, for the artificial one, generated)."""
    how: str
    """``"home"``, ``"cache"``, ``"download"`` or ``"generated"``."""


def load_values(name: str, *, fetch: Fetch | None = None) -> Values:
    """Features and target of a data set as arrays; needs no pandas.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    fetch : callable, default=None
        Gets the bytes behind an address; None asks the network.

    Raises
    ------
    DatasetError
        If the name is unknown, a file is damaged, or the source is out of reach.
    """
    if name == "artificial":
        X, y = make_artificial()
        return Values(X, y, tuple(f"x{j + 1}" for j in range(N_FEATURES)), "y")
    source = _source(name)
    place = locate(name)
    values = _read(source, place) if place.path is not None else _download(source, fetch)
    return Values(values[:, :-1].copy(), values[:, -1].copy(), source.columns[:-1], source.columns[-1])


def load(name: str) -> Any:
    """A data set as a pandas DataFrame, target in the last column.

    Raises
    ------
    DatasetError
        If the name is unknown, a file is damaged, or the source is out of reach.
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - optional: everything else works without it
    except ImportError as error:
        raise ImportError(
            "data frames need pandas: pip install 'dsfr[reproduce]'. `load_values` gives plain arrays."
        ) from error
    values = load_values(name)
    frame = pd.DataFrame(values.X, columns=list(values.feature_names))
    frame[values.target_name] = values.y
    return frame


def load_airfoil() -> Any:
    """Airfoil self-noise, 1503 rows, as a DataFrame."""
    return load("airfoil")


def load_wmsl() -> Any:
    """WarCraft master skill level, 3338 rows, as a DataFrame."""
    return load("wmsl")


def load_ccpp() -> Any:
    """Combined cycle power plant, 9568 rows, as a DataFrame."""
    return load("ccpp")


def load_ch() -> Any:
    """California housing, 20640 rows, as a DataFrame."""
    return load("ch")


def load_kch() -> Any:
    """King County house sales, 21613 rows, as a DataFrame."""
    return load("kch")


def load_artificial() -> Any:
    """The paper's artificial set, 5000 rows, seed 0, as a DataFrame; `make_artificial` makes others."""
    return load("artificial")


def locate(name: str) -> Place:
    """Where a data set would be taken from; nothing is read or downloaded."""
    if name == "artificial":
        return Place(None, "generated")
    _source(name)
    home = os.environ.get("DSFR_DATA_HOME")
    if home and (Path(home) / f"{name}.csv.gz").is_file():
        return Place(Path(home) / f"{name}.csv.gz", "home")
    cached = cache_folder() / f"{name}.csv.gz"
    return Place(cached, "cache") if cached.is_file() else Place(None, "download")


def cache_folder() -> Path:
    """Where downloads are kept: ``DSFR_CACHE_HOME``, or ``dsfr`` in the user's cache folder."""
    told = os.environ.get("DSFR_CACHE_HOME")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(told) if told else Path(base) / "dsfr"


def values_sha256(values: Array) -> str:
    """Checksum of numbers, whatever file they came in; -0 counts as 0."""
    return hashlib.sha256(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes()).hexdigest()


def _source(name: str) -> Source:
    if name not in CATALOG:
        raise DatasetError(f"unknown data set {name!r}: it must be one of {', '.join(NAMES)}")
    return CATALOG[name]


def _read(source: Source, place: Place) -> Array:
    assert place.path is not None
    stat = place.path.stat()
    return _read_checked(source.name, str(place.path), place.how, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read_checked(name: str, path: str, how: str, _changed: int, _size: int) -> Array:
    """Values of a file, checked; kept, because an experiment asks for the same few tables again and again."""
    source, data = CATALOG[name], Path(path).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if how == "home" and found != source.file_sha256:
        raise DatasetError(
            f"{path} is not the published file: its sha256 is {found[:12]}..., not {source.file_sha256[:12]}.... "
            "Restore it, or remove it to have the data set downloaded."
        )
    try:
        values = _parse(gzip.decompress(data), source)
    except (OSError, EOFError, zlib.error, pa.ArrowException, ValueError) as error:
        raise DatasetError(f"{path} is damaged ({error}): delete it to have the data set downloaded again") from None
    _check_values(values, source, f"{path} is damaged: delete it to have the data set downloaded again")
    return values


def _parse(text: bytes, source: Source) -> Array:
    table = pa.csv.read_csv(pa.BufferReader(text))
    if tuple(table.column_names) != source.columns:
        raise ValueError(f"its columns are {', '.join(table.column_names)}")
    return np.column_stack([table.column(name).cast(pa.float64()).to_numpy() for name in source.columns])


def _download(source: Source, fetch: Fetch | None) -> Array:
    values = download(source, fetch)
    _check_values(
        values,
        source,
        f"{source.url} does not hold {source.name} as it did: its values have changed. Get {source.name}.csv.gz "
        "elsewhere and let DSFR_DATA_HOME name its folder.",
    )
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    lines = [",".join(source.columns), *(",".join(map(repr, row)) for row in values.tolist())]
    with replacing(folder / f"{source.name}.csv.gz") as file:
        file.write(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    return values


def _check_values(values: Array, source: Source, message: str) -> None:
    if values.shape != (source.n_rows, len(source.columns)) or values_sha256(values) != source.values_sha256:
        raise DatasetError(message)
