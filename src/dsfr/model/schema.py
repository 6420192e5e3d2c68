"""Columns of a table as features: a number is one feature, a category is one 0/1 indicator for each of its levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.words import Indicator

OTHER = "other"
"""A level of this name stands for all values that have no level of their own."""
BOOLEAN = ("False", "True")
"""Levels of a column of booleans."""
MOST_DECLARED = 1000
"""Most levels of a column in a file."""
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "<NA>")
"""Texts that stand for a missing value."""


class Feature(NamedTuple):
    """One feature: its name, and the level of its column that it indicates, None for numbers."""

    name: str
    column: Column
    level: str | None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers, or a category with its levels."""

    name: str
    levels: tuple[str, ...] | None = None
    """Levels of a category, in order; None: numbers."""

    @property
    def indicated(self) -> tuple[str, ...]:
        """Levels that have an indicator: all; of two, the second."""
        levels = self.levels or ()
        return levels if len(levels) > 2 else levels[1:]

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features of the column."""
        if self.levels is None:
            return (Feature(self.name, self, None),)
        return tuple(Feature(f"{self.name} is {level}", self, level) for level in self.indicated)

    def indicators(self, codes: Array) -> Array:
        """0/1 columns from the numbers of levels, NaN where the level is missing; shape (n, indicated levels)."""
        levels = self.levels or ()
        places = np.array([levels.index(level) for level in self.indicated], dtype=np.float64)
        known: Array = (codes[:, None] == places).astype(np.float64)
        known[np.isnan(codes)] = np.nan
        return known

    def shares(self, values: Array) -> Array:
        """Share of every level, from the values of the indicators; shape (levels,)."""
        return values if len(values) == len(self.levels or ()) else np.array([1.0 - values[0], values[0]])

    def likeliest(self, values: Array) -> str:
        """The level of the largest share, with the share if it is not 1; "unknown" if it is missing."""
        shares = self.shares(values)
        if np.isnan(shares).any() or self.levels is None:
            return "unknown"
        level, share = self.levels[int(shares.argmax())], float(shares.max())
        return level if share == 1.0 else f"{level} ({share:.0%})"


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns that a model takes, in order."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, names: Iterable[str], categories: Mapping[str, Sequence[str]] | None = None) -> Schema:
        """Columns of numbers, but for declared categories.

        Raises
        ------
        ValueError
            If levels are not declared as a list of two or more different texts, or for a column that is not there.
        """
        declared, names = dict(categories or {}), list(names)
        unknown = [name for name in declared if name not in names]
        if unknown:
            raise ValueError(f"categories has {unknown[0]!r}, which is no column to learn from: {', '.join(names)}")
        return cls(tuple(declared_column(name, declared.get(name)) for name in names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[Feature, ...]:
        """All features."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def categories(self) -> dict[str, tuple[str, ...]]:
        """Levels of the categories, by name."""
        return {column.name: column.levels for column in self.columns if column.levels is not None}

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of all features."""
        return tuple(feature.name for feature in self.features)

    @property
    def is_plain(self) -> bool:
        """Whether all columns are numbers."""
        return not self.has_categories

    @property
    def has_categories(self) -> bool:
        """Whether some column is a category."""
        return any(column.levels is not None for column in self.columns)

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the features of every category."""
        found: dict[str, list[int]] = {}
        for j, (_, column, level) in enumerate(self.features):
            if level is not None:
                found.setdefault(column.name, []).append(j)
        return tuple(map(tuple, found.values()))

    @property
    def complete_categories(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the features of every category that has an indicator for all of its levels."""
        return tuple(group for group in self.groups if len(group) > 1)

    @property
    def indicators(self) -> dict[int, Indicator]:
        """What a feature indicates, by its number, of the features of categories."""
        return {
            j: Indicator(column.name, level, column.levels or ())
            for j, (_, column, level) in enumerate(self.features)
            if level is not None
        }

    def check(self) -> None:
        """Refuse features of the same name, and a table without features.

        Raises
        ------
        ValueError
            Naming them.
        """
        names = self.feature_names
        repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
        if repeated:
            raise ValueError(f"several columns or levels make a feature named {repeated[0]!r}: rename one of them")
        if not names:
            raise ValueError("no feature column is left: the table needs at least one")

    def encode(self, column_of: Callable[[Column], Array], n_rows: int) -> Array:
        """Features side by side; ``column_of`` gives numbers, or the numbers of levels; shape (n, features)."""
        parts = [
            column_of(column)[:, None] if column.levels is None else column.indicators(column_of(column))
            for column in self.columns
        ]
        return np.concatenate([np.empty((n_rows, 0)), *parts], axis=1)

    def to_json(self) -> list[dict[str, Any]]:
        """The columns as plain values."""
        return [
            {"name": column.name} | ({} if column.levels is None else {"levels": list(column.levels)})
            for column in self.columns
        ]

    @classmethod
    def from_json(cls, stored: object) -> Schema:
        """The columns of `to_json`, checked.

        Raises
        ------
        ValueError
            Naming what is wrong.
        """
        if not isinstance(stored, list) or not all(map(_is_column, stored)):
            raise ValueError("its columns have entries of the wrong kind")
        schema = cls(
            tuple(Column(entry["name"], tuple(entry["levels"]) if "levels" in entry else None) for entry in stored)
        )
        schema.check()
        return schema


def _is_column(entry: object) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or set(entry) - {"name", "levels"}:
        return False
    levels = entry.get("levels", ["any"])
    if not isinstance(levels, list) or not 0 < len(levels) <= MOST_DECLARED:
        return False
    return all(isinstance(level, str) for level in levels) and len(set(levels)) == len(levels)


def declared_column(name: str, levels: Sequence[str] | None) -> Column:
    """A column with declared levels, or of numbers.

    Raises
    ------
    ValueError
        If the levels are not two or more different texts.
    """
    if levels is None:
        return Column(name)
    listed = () if isinstance(levels, str) else tuple(map(level_text, levels))
    if len(listed) < 2 or len(set(listed)) < len(listed) or any(level in MISSING for level in listed):
        raise ValueError(f"categories[{name!r}]={levels!r} must be a list of two or more different levels")
    return Column(name, listed)


def level_text(value: Any) -> str:
    """A value as the text of a level; whole numbers without a decimal point.

    >>> [level_text(value) for value in (" north ", 2.0, True, 7)]
    ['north', '2', 'True', '7']
    """
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value).strip()


def codes_of(texts: Sequence[str | None], column: Column) -> Array:
    """Numbers of the levels of texts; NaN where one is missing or unknown."""
    levels = column.levels or ()
    places = {level: float(place) for place, level in enumerate(levels)}
    if set(levels) == set(BOOLEAN):
        truth = {"false": "False", "0": "False", "true": "True", "1": "True"}
        places |= {said: places[meant] for said, meant in truth.items()}
        places |= {said.upper(): places[meant] for said, meant in truth.items()}
    unknown = places.get(OTHER, np.nan)
    for text in MISSING:
        places.setdefault(text, np.nan)
    return np.array([np.nan if text is None else places.get(text, unknown) for text in texts], dtype=np.float64)
