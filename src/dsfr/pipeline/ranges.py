"""Declared ranges and units of columns: a TOML file that owners agree on before they train together."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dsfr.io.columns import TableError
from dsfr.model.schema import Schema
from dsfr.training import RangeScaling


def read_ranges(path: str | Path, schema: Schema, target: str) -> RangeScaling:
    """The lowest and the highest value of every column and of the target, by name.

    Categories have none: their indicators lie between 0 and 1.

    Raises
    ------
    TableError
        If the file is not TOML, or a column has no two numbers in it.
    """
    found = _lines(path)
    numbers = [column.name for column in schema.columns if column.levels is None]
    for name in (*numbers, target):
        if not _is_range(found.get(name)):
            raise TableError(
                f"ranges {path}: column {name!r} needs a line such as {name} = [0.0, 100.0], with a third entry for "
                "its unit if it has one"
            )
    ranges = [found[column.name][:2] if level is None else [0.0, 1.0] for _, column, level in schema.features]
    low, high = zip(*ranges, strict=True)
    return RangeScaling(lower=low, upper=high, target_range=found[target][:2])


def read_units(path: str | Path) -> dict[str, str]:
    """Units by column, of the lines that have one: ``name = [0.0, 100.0, "unit"]``, or ``name = "unit"``.

    Raises
    ------
    TableError
        If the file is not TOML.
    """
    found = {name: line if isinstance(line, str) else line[2:3] for name, line in _lines(path).items()}
    return {name: unit if isinstance(unit, str) else unit[0] for name, unit in found.items() if unit}


def _lines(path: str | Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TableError(f"ranges {path} are not TOML: {error}") from None
    for name, line in found.items():
        if not isinstance(line, str) and not _is_range(line):
            raise TableError(f'ranges {path}: {name} is {line!r}, and not [lowest, highest], [lowest, highest, "unit"]')
    return found


def _is_range(line: Any) -> bool:
    if not isinstance(line, list) or len(line) not in (2, 3):
        return False
    are_numbers = all(isinstance(end, int | float) and not isinstance(end, bool) for end in line[:2])
    return are_numbers and all(isinstance(unit, str) for unit in line[2:])
