"""Downloads as they are published, turned into rows of numbers: features first, target last."""

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
from dsfr.paper.datasets.catalog import DatasetError, Source

TIMEOUT = 60.0
"""Seconds without an answer after which a server counts as out of reach."""
_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

Fetch = Callable[[str], bytes]


def download(source: Source, fetch: Fetch | None = None) -> Array:
    """Values of a data set from its public source.

    Raises
    ------
    DatasetError
        If the source cannot be reached, or has something else to offer than it had.
    """
    fetch = fetch or _fetch
    try:
        data = fetch(source.url)
        if source.kind == "openml":
            data = fetch(json.loads(data)["data_set_description"]["parquet_url"])
        return READERS[source.kind](data, source.columns)
    except (URLError, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise DatasetError(
            f"{source.name} is not on this machine and {source.url} cannot be reached ({reason}). Try again online, or "
            f"put {source.name}.csv.gz into a folder and let the environment variable DSFR_DATA_HOME name it."
        ) from None
    except (KeyError, ValueError, StopIteration, OSError, EOFError, *_DAMAGED) as error:
        raise DatasetError(
            f"{source.url} does not hold {source.name} as it did ({type(error).__name__}: {error}). Get "
            f"{source.name}.csv.gz elsewhere and let DSFR_DATA_HOME name its folder."
        ) from None


def _fetch(url: str) -> bytes:
    request = Request(url, headers={"User-Agent": "dsfr"})
    with urlopen(request, timeout=TIMEOUT) as answer:
        content: bytes = answer.read()
    return content


def _text(data: bytes, columns: Sequence[str]) -> Array:
    """Numbers between blanks, no header."""
    return _matrix((line.split() for line in data.decode().splitlines() if line.strip()), len(columns))


def _csv(data: bytes, columns: Sequence[str]) -> Array:
    """CSV with a header, ``?`` for missing."""
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
    """A zip file with a workbook whose first sheet has a header of shared strings and numbers below."""
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
    """A column as doubles; categories are published as text or as dictionaries of it."""
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
