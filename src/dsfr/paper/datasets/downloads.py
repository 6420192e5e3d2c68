"""Download the published files and convert them to arrays: features first, target last."""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from urllib.error import URLError
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from dsfr.core.arrays import Array
from dsfr.paper.datasets.catalog import Dataset, DatasetError

TIMEOUT = 60.0
"""Seconds to wait for a server."""
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

Fetch = Callable[[str], bytes]


def download(dataset: Dataset, fetch: Fetch | None = None) -> Array:
    """Download the values of a data set from its public dataset.

    Raises
    ------
    DatasetError
        If the source cannot be reached, or no longer offers the published file.
    """
    fetch = fetch or _fetch
    try:
        data = fetch(dataset.url)
        if dataset.file_format == "openml":
            data = fetch(json.loads(data)["data_set_description"]["parquet_url"])
        return READERS[dataset.file_format](data, dataset.columns)
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(
            f"{dataset.name} is not on this machine and {dataset.url} cannot be reached ({reason}). Try again online, "
            f"or put {dataset.name}.csv.gz into a folder and set the environment variable DSFR_DATA_HOME to it."
        ) from None
    except (KeyError, ValueError, StopIteration, OSError, EOFError, *_DAMAGED) as error:
        raise DatasetError(
            f"{dataset.url} does not hold the published {dataset.name} ({type(error).__name__}: {error}). Get "
            f"{dataset.name}.csv.gz elsewhere and set DSFR_DATA_HOME to its folder."
        ) from None


def _fetch(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "dsfr"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
    return content


def _text(data: bytes, columns: Sequence[str]) -> Array:
    """Numbers separated by blanks, without a header."""
    return _matrix((line.split() for line in data.decode().splitlines() if line.strip()), len(columns))


def _csv(data: bytes, columns: Sequence[str]) -> Array:
    """CSV with a header; rows with a missing value (``?``) are left out."""
    rows = csv.DictReader(io.StringIO(data.decode("utf-8-sig")))
    chosen = ([row[name] for name in columns] for row in rows)
    return _matrix((row for row in chosen if "?" not in row), len(columns))


def _tgz(data: bytes, columns: Sequence[str]) -> Array:
    """A tar file with one ``.data`` file: CSV without a header."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        member = next(member for member in archive.getmembers() if member.name.endswith("cal_housing.data"))
        content = archive.extractfile(member)
        if content is None:
            raise ValueError("the archive has no regular file cal_housing.data")
        return _matrix(csv.reader(io.StringIO(content.read().decode())), len(columns))


def _xlsx(data: bytes, columns: Sequence[str]) -> Array:
    """A zip file with an Excel workbook; its first sheet has a header of shared strings and rows of numbers."""
    with zipfile.ZipFile(io.BytesIO(data)) as outer:
        name = next(name for name in outer.namelist() if name.endswith("Folds5x2_pp.xlsx"))
        workbook = zipfile.ZipFile(io.BytesIO(outer.read(name)))
    with workbook:
        shared = ElementTree.fromstring(workbook.read("xl/sharedStrings.xml"))
        names = ["".join(item.itertext()) for item in shared.iter(f"{_SHEET}si")]
        sheet = ElementTree.fromstring(workbook.read("xl/worksheets/sheet1.xml"))
    rows = [{_letters(cell): cell.findtext(f"{_SHEET}v") or "" for cell in row} for row in sheet.iter(f"{_SHEET}row")]
    header = {names[int(text)]: letters for letters, text in rows[0].items()}
    return _matrix(([row[header[name]] for name in columns] for row in rows[1:]), len(columns))


def _letters(cell: ElementTree.Element) -> str:
    return re.sub(r"\d", "", cell.attrib["r"])


def _parquet(data: bytes, columns: Sequence[str]) -> Array:
    table = pa.parquet.read_table(pa.BufferReader(data), columns=list(columns))
    return np.column_stack([_numbers(table.column(name)) for name in columns])


def _numbers(column: pa.ChunkedArray) -> Array:
    """A column as doubles; categorical columns are text or dictionaries of text."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    values: Array = pc.cast(column, pa.float64()).to_numpy()
    return values


def _matrix(rows: Iterable[Sequence[str]], n_columns: int) -> Array:
    values = np.array([[float(cell) for cell in row] for row in rows], dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != n_columns:
        raise ValueError(f"expected rows of {n_columns} numbers")
    return values


READERS: dict[str, Callable[[bytes, Sequence[str]], Array]] = {
    "text": _text,
    "csv": _csv,
    "tgz": _tgz,
    "xlsx": _xlsx,
    "openml": _parquet,
}
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, ElementTree.ParseError, pa.ArrowException)
