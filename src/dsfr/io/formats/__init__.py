"""File formats of tables, one module each; every module of this package that has a `FORMAT` is a format."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from dsfr.io.columns import TableError
from dsfr.io.formats.contract import BATCH_ROWS, TableFormat
from dsfr.io.formats.csv import FORMAT as CSV

__all__ = ["BATCH_ROWS", "TableFormat", "endings", "find_formats", "format_of", "output_format"]


@cache
def find_formats() -> list[TableFormat]:
    """The formats of this package, in the order of their modules' names; imported when a file is first asked for.

    Who fits arrays reads no file, and Parquet is slow to import.
    """
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return [module.FORMAT for module in modules if hasattr(module, "FORMAT")]


def endings() -> tuple[str, ...]:
    """Endings of all formats' file names."""
    return tuple(ending for known in find_formats() for ending in known.endings)


def format_of(path: Path) -> TableFormat:
    """The format of a file, by its first bytes or else by its ending; a file with neither is taken as CSV."""
    with path.open("rb") as file:
        head = file.read(max(len(known.magic) for known in find_formats()))
    by_magic = (known for known in find_formats() if known.magic and head.startswith(known.magic))
    return next(by_magic, None) or _by_ending(path) or CSV


def output_format(path: Path) -> TableFormat:
    """The format to write a file in, by its ending; without any, CSV.

    Raises
    ------
    TableError
        If no format has the ending, listing those that exist.
    """
    found = _by_ending(path) or (None if path.suffix else CSV)
    if found is None:
        raise TableError(f"cannot write {path.name}: its ending must be one of {', '.join(endings())}")
    return found


def _by_ending(path: Path) -> TableFormat | None:
    return next((known for known in find_formats() if path.name.lower().endswith(known.endings)), None)
