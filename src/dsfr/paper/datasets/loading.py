"""Load a data set from ``DSFR_DATA_HOME``, from the cache or from its public source, and verify its checksum."""

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
from dsfr.paper.datasets.catalog import CATALOG, Dataset, DatasetError
from dsfr.paper.datasets.downloads import Fetch, download
from dsfr.storage.atomic import replacing

NAMES = (*CATALOG, "artificial")


@dataclass(frozen=True, slots=True)
class Values:
    """Features and target of a data set as arrays, with the names of the columns."""

    X: Array
    y: Array
    feature_names: tuple[str, ...]
    target_name: str


@dataclass(frozen=True, slots=True)
class Location:
    """Where a data set is loaded from."""

    path: Path | None
    """Path of the file; None if there is no file and the data set is downloaded or generated."""
    kind: str
    """``"home"``, ``"cache"``, ``"download"`` or ``"generated"``."""


def load_values(name: str, *, fetch: Fetch | None = None) -> Values:
    """Load a data set as arrays; pandas is not needed.

    Parameters
    ----------
    name : str
        One of `NAMES`.
    fetch : callable, default=None
        Returns the bytes at an address; None downloads them.

    Raises
    ------
    DatasetError
        If the name is unknown, a file is damaged, or the source cannot be reached.
    """
    if name == "artificial":
        X, y = make_artificial()
        return Values(X, y, tuple(f"x{j + 1}" for j in range(N_FEATURES)), "y")
    dataset, location = _dataset(name), locate(name)
    values = _read(dataset, location) if location.path is not None else _download(dataset, fetch)
    return Values(values[:, :-1].copy(), values[:, -1].copy(), dataset.columns[:-1], dataset.columns[-1])


def load(name: str) -> Any:
    """Load a data set as a pandas DataFrame with the target in the last column.

    Raises
    ------
    DatasetError
        If the name is unknown, a file is damaged, or the source cannot be reached.
    ImportError
        If pandas is not installed.
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an optional dependency
    except ImportError as error:
        raise ImportError(
            "data frames need pandas: pip install 'dsfr[reproduce]'. `load_values` returns arrays without it."
        ) from error
    values = load_values(name)
    frame = pd.DataFrame(values.X, columns=list(values.feature_names))
    frame[values.target_name] = values.y
    return frame


def locate(name: str) -> Location:
    """Find out where a data set would be loaded from, without reading or downloading it."""
    if name == "artificial":
        return Location(None, "generated")
    _dataset(name)
    home = os.environ.get("DSFR_DATA_HOME")
    if home and (Path(home) / f"{name}.csv.gz").is_file():
        return Location(Path(home) / f"{name}.csv.gz", "home")
    cached = cache_folder() / f"{name}.csv.gz"
    return Location(cached, "cache") if cached.is_file() else Location(None, "download")


def cache_folder() -> Path:
    """Folder of downloaded data sets: ``DSFR_CACHE_HOME``, or ``dsfr`` in the user's cache folder."""
    folder = os.environ.get("DSFR_CACHE_HOME")
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) if folder else Path(base) / "dsfr"


def values_sha256(values: Array) -> str:
    """Checksum of an array of numbers; -0 counts as 0."""
    return hashlib.sha256(np.ascontiguousarray(values + 0.0, dtype="<f8").tobytes()).hexdigest()


def _dataset(name: str) -> Dataset:
    if name not in CATALOG:
        raise DatasetError(f"unknown data set {name!r}: it must be one of {', '.join(NAMES)}")
    return CATALOG[name]


def _read(dataset: Dataset, location: Location) -> Array:
    assert location.path is not None
    stat = location.path.stat()
    return _read_verified(dataset.name, str(location.path), location.kind, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read_verified(name: str, path: str, kind: str, _changed: int, _size: int) -> Array:
    """Values of a file with verified checksum; cached, because an experiment loads the same few tables many times."""
    dataset, data = CATALOG[name], Path(path).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if kind == "home" and found != dataset.file_sha256:
        raise DatasetError(
            f"{path} is not the published file: its sha256 is {found[:12]}..., not {dataset.file_sha256[:12]}.... "
            "Restore it, or remove it to have the data set downloaded."
        )
    try:
        values = _parse(gzip.decompress(data), dataset)
    except (OSError, EOFError, zlib.error, pa.ArrowException, ValueError) as error:
        raise DatasetError(f"{path} is damaged ({error}): delete it to have the data set downloaded again") from None
    _check_values(values, dataset, f"{path} is damaged: delete it to have the data set downloaded again")
    return values


def _parse(text: bytes, dataset: Dataset) -> Array:
    table = pa.csv.read_csv(pa.BufferReader(text))
    if tuple(table.column_names) != dataset.columns:
        raise ValueError(f"its columns are {', '.join(table.column_names)}")
    return np.column_stack([table.column(name).cast(pa.float64()).to_numpy() for name in dataset.columns])


def _download(dataset: Dataset, fetch: Fetch | None) -> Array:
    values = download(dataset, fetch)
    _check_values(
        values,
        dataset,
        f"{dataset.url} does not hold the published {dataset.name}: its values have changed. Get {dataset.name}.csv.gz "
        "elsewhere and set DSFR_DATA_HOME to its folder.",
    )
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    lines = [",".join(dataset.columns), *(",".join(map(repr, row)) for row in values.tolist())]
    with replacing(folder / f"{dataset.name}.csv.gz") as file:
        file.write(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
    return values


def _check_values(values: Array, dataset: Dataset, message: str) -> None:
    if values.shape != (dataset.n_rows, len(dataset.columns)) or values_sha256(values) != dataset.values_sha256:
        raise DatasetError(message)
