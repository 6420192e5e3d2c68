"""Linguistic labels of values, and formatting of numbers and names."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from typing import NamedTuple

import numpy as np

from dsfr.core.arrays import Array

LABELS = ("very low", "low", "medium", "high", "very high")
LABEL_EDGES = (0.1, 0.3, 0.7, 0.9)
"""Edges of the labels, as shares of the rows below the value."""


def positions(values: Array, column: Array, tolerance: Array | float = 0.0) -> Array:
    """Share of a column below each value; values within the tolerance count half; 0 to 1.

    >>> positions(np.array([2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([0.375, 1.   ])
    """
    ordered = np.sort(column)
    under = np.searchsorted(ordered, values - tolerance, side="left")
    under = under + np.searchsorted(ordered, values + tolerance, side="right")
    part: Array = under / (2.0 * len(ordered))
    return part


def label(position: float) -> str:
    """Label of a value with this share of all rows below it; see `LABEL_EDGES`.

    >>> [label(p) for p in (0.0, 0.2, 0.5, 0.7, 0.95)]
    ['very low', 'low', 'medium', 'high', 'very high']
    """
    return LABELS[int(np.searchsorted(LABEL_EDGES, position, side="right"))]


def readable(value: float) -> str:
    """Format a number with four significant digits; scientific notation only for very large and small numbers.

    >>> [readable(v) for v in (6300.0, 0.0031234, 1234567.0, 1.5e12, -0.0)]
    ['6300', '0.003123', '1235000', '1.5e+12', '0']
    """
    rounded = float(f"{value:.4g}") + 0.0
    return f"{rounded:.0f}" if 1e4 <= abs(rounded) < 1e9 else f"{rounded:.4g}"


def signed(value: float) -> str:
    """`readable` with a sign in any case.

    >>> [signed(v) for v in (12.0, 0.0, -0.5)]
    ['+12', '+0', '-0.5']
    """
    text = readable(value)
    return text if text.startswith("-") else f"+{text}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), *names[-1:]])


def counted(groups: Iterable[Sized], other: str = "") -> str:
    """How many groups of two and of three features there are: ``1 pair``, ``2 other pairs and 3 other triples``."""
    numbers = Counter(map(len, groups))
    kinds = [(number, name) for number, name in ((numbers[2], "pair"), (numbers[3], "triple")) if number]
    return listed([f"{number} {other}{name}{'s' if number > 1 else ''}" for number, name in kinds]) or "0 pairs"


def one_line(name: str) -> str:
    r"""Escape the unprintable characters of a name, so that it stays on one line and cannot control a terminal.

    >>> one_line("a\nb \u202e ü")
    'a\\nb \\u202e ü'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in name)


_PLAIN = re.compile(r"[^\W\d]\w*(\.\w+)*( \w+(\.\w+)*)*")
_RESERVED = {"is", "or", "and", "where", "fully", "not", "if"}


def quoted(name: str) -> str:
    """A name as the text of rules has it: in quotation marks, as JSON has it, unless it consists of plain words.

    >>> [quoted(name) for name in ("mean radius", "x.1", "a*b", "this is")]
    ['mean radius', 'x.1', '"a*b"', '"this is"']
    """
    if _PLAIN.fullmatch(name) and not _RESERVED & set(name.lower().split(" ")):
        return name
    return json.dumps(name, ensure_ascii=not name.isprintable())


def quoted_term(name: str) -> str:
    """A term as the text has it; numbers need no quotation marks."""
    return name if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", name) else quoted(name)


class Indicator(NamedTuple):
    """What a feature indicates that is 0 or 1: whether a column has a level."""

    column: str
    level: str
    levels: tuple[str, ...]
    """All levels of the column."""

    @property
    def opposite(self) -> str:
        """What the column is where the feature is 0: the other one of two levels, or not this one.

        >>> Indicator("sex", "m", ("f", "m")).opposite, Indicator("a", "x", ("x", "y", "z")).opposite
        ('f', 'not x')
        """
        others = [level for level in self.levels if level != self.level]
        return others[0] if len(others) == 1 else f"not {self.level}"


def two_valued_label(position: float, names: tuple[str, str]) -> str:
    """Label of a place between two values, 0 at the first and 1 at the second.

    >>> [two_valued_label(position, ("0", "1")) for position in (0.003, 0.4, 0.95)]
    ['0', '1 for 40%', '1']
    """
    low, high = names
    if position < LABEL_EDGES[0]:
        return low
    return high if position > LABEL_EDGES[-1] else f"{high} for {position:.0%}"
