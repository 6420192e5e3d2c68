"""What the columns of a table hold, found before training: numbers, categories, and what cannot be learnt from."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.words import one_line
from dsfr.model.schema import BOOLEAN, MISSING, OTHER, Column

MOST_LEVELS = 20
"""Most levels of a column that is taken as a category without being declared."""
LEAST_ROWS = 5
"""Levels of fewer rows count as `OTHER`."""
MOST_COUNTED = 10_000
"""Different texts of a column that are counted; a column with more is no category."""
IDENTIFIER_ROWS = 20
"""Rows from which a column that is different in every row is taken for an identifier."""
FREE_TEXT_WORDS = 4.0
"""Words per value, on average, from which text is free text."""
_NAMELESS = re.compile(r"\s*|Unnamed: \d+(_level_\d+)?")
_OF_ROWS = re.compile(
    r"(?i:(.*[\W_])?(id|ids|idx|index|uuid|guid|key|row|row_?names?|row_?num(ber)?|serial))|.*[a-z]I[dD]"
)
_DATE = re.compile(
    r"\d{4}-\d{1,2}(-\d{1,2}([T ]\d.*)?)?|\d{1,2}[./]\d{1,2}[./](\d{4}|\d{2})|\d{4}[./]\d{1,2}[./]\d{1,2}"
)
_DECIMAL_COMMA = re.compile(r"[-+]?\d+(,\d+)?")


class Verdict(NamedTuple):
    """A column to learn from; or why it is left out; or why it cannot be used, and what to do about it."""

    column: Column | None
    left_out: str = ""
    problem: str = ""
    odd: str = ""
    """A text among numbers, if that is the problem."""

    def located(self, place: str) -> Verdict:
        """The same, with the place of the text among numbers in the message."""
        return self._replace(problem=self.problem.replace(repr(self.odd), f"{self.odd!r} in {place}", 1))


@dataclass(slots=True)
class ColumnSurvey:
    """Counts of the values of one column, from any number of batches."""

    name: str
    order: tuple[str, ...] = ()
    """Order of the levels, if the type of the column has one."""
    is_category: bool = False
    """Whether it is a category by its type or by request, even if its levels are numbers."""
    holds: str = ""
    """What the column holds, by its type, if that is neither numbers nor text."""
    counts: Counter[str] = field(default_factory=Counter)
    n_rows: int = 0
    """Rows with a value."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Add the numbers of rows by text; texts that stand for a missing value do not count."""
        for text, count in counts.items():
            if text in MISSING:
                continue
            self.n_rows += count
            if text in self.counts or len(self.counts) <= MOST_COUNTED:
                self.counts[text] += count

    def verdict(self, *, explicit: bool = False) -> Verdict:
        """What to do with the column; ``explicit``: it was asked for by name."""
        if self.holds:
            return _refused(self.name, self.holds, REMEDIES.get(self.holds, "turn it into numbers"))
        if not self.n_rows:
            return _refused(self.name, *EMPTY)
        if not explicit and _NAMELESS.fullmatch(self.name):
            return Verdict(None, "it has no name: an index, perhaps")
        share = sum(count for text, count in self.counts.items() if _is_number(text)) / self.n_rows
        if share == 1.0 and not self.is_category:
            return Verdict(Column(self.name))
        if set(self.counts) <= {*BOOLEAN}:
            return self._levels()
        return self._problem(share, explicit=explicit) or self._levels()

    def _problem(self, share: float, *, explicit: bool) -> Verdict | None:
        texts = list(self.counts)
        if all(map(_DATE.fullmatch, texts)) and not self.is_category:
            return _refused(self.name, f"holds dates ({_shown(texts[0])})", REMEDIES["holds dates"])
        if all(map(_DECIMAL_COMMA.fullmatch, texts)) and not self.is_category:
            odd = next(text for text in texts if "," in text)
            return _refused(self.name, f"has decimal commas ({odd!r})", "read it with --decimal ,")._replace(odd=odd)
        if share >= 0.5 and not self.is_category:
            odd = next(text for text in texts if not _is_number(text))
            said = f"column {self.name!r} has text where a number is needed: {odd!r}. Correct it, clear the cell"
            return Verdict(None, problem=said, odd=odd)
        if len(texts) == self.n_rows > IDENTIFIER_ROWS and not explicit and _words(texts) < FREE_TEXT_WORDS:
            return Verdict(None, "it is different in every row: an identifier")
        if len(texts) > MOST_LEVELS and _words(texts) >= FREE_TEXT_WORDS:
            return _refused(self.name, f"holds free text ({_shown(texts[0])})", "make a few categories of it")
        if len(texts) > MOST_LEVELS:
            n_levels = f"{len(texts)}" if len(texts) <= MOST_COUNTED else f"more than {MOST_COUNTED}"
            return _refused(self.name, f"has {n_levels} levels, more than {MOST_LEVELS}", "group them into fewer")
        return None

    def _levels(self) -> Verdict:
        """Levels with enough rows, in the order of the type or of the alphabet; the others together are `OTHER`."""
        rank = {level: place for place, level in enumerate(self.order)}
        ordered = sorted(self.counts, key=lambda level: (rank.get(level, len(rank)), level))
        kept = [level for level in ordered if self.counts[level] >= LEAST_ROWS]
        has_rare = len(kept) < len(ordered)
        if has_rare:
            kept = [*(level for level in kept if level != OTHER), OTHER]
        if len(kept) < 2:
            only = f"no level of {LEAST_ROWS} rows" if has_rare else f"only one level, {_shown(kept[0])}"
            return Verdict(None, f"it has {only}")
        return Verdict(Column(self.name, tuple(kept)))


EMPTY = "has no value at all", "fill it in"
"""What is said of a column without values, and what to do about it."""
REMEDIES = {"holds dates": "turn it into numbers, such as a year or the days since a date"}
"""What to do about columns, by what they hold."""


def number_verdict(name: str, first: Array, *, explicit: bool = False) -> Verdict:
    """What to do with a column of numbers, by its name and the first values of it."""
    if len(first) and np.isnan(first).all():
        return _refused(name, *EMPTY)
    if explicit:
        return Verdict(Column(name))
    if _NAMELESS.fullmatch(name):
        return Verdict(None, "it has no name: an index, perhaps")
    if _OF_ROWS.fullmatch(name) and _are_identifiers(first):
        return Verdict(None, "it is a different whole number in every row: an identifier")
    return Verdict(Column(name))


def settle(verdicts: Mapping[str, Verdict], remedy: str, error: type[ValueError] = ValueError) -> tuple[Column, ...]:
    """The columns to learn from; a warning names those that are left out.

    ``remedy`` says how to leave out columns, with ``{names}`` in it.

    Raises
    ------
    ValueError
        Naming all columns that cannot be used, each with what to do about it.
    """
    problems = {name: verdict.problem for name, verdict in verdicts.items() if verdict.problem}
    if problems:
        leave_out = remedy.format(names=", ".join(map(repr, problems)))
        if len(problems) == 1:
            raise error(f"{next(iter(problems.values()))}, or {leave_out}")
        lines = "".join(f"\n  {problem}" for problem in problems.values())
        raise error(f"{len(problems)} columns cannot be learnt from as they are:{lines}\nOr {leave_out}")
    left_out = [f"{name!r} ({verdict.left_out})" for name, verdict in verdicts.items() if verdict.left_out]
    if left_out:
        warnings.warn(f"not learnt from: {', '.join(left_out)}", stacklevel=2)
    return tuple(verdict.column for verdict in verdicts.values() if verdict.column is not None)


def _refused(name: str, what: str, remedy: str) -> Verdict:
    return Verdict(None, problem=f"column {name!r} {what}: {remedy}")


def _shown(text: str) -> str:
    cut = one_line(text[:30])
    return repr(cut if len(text) <= 30 else f"{cut}...")


def _words(texts: Sequence[str]) -> float:
    """Words per text, on average."""
    return sum(len(text.split()) for text in texts) / len(texts)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _are_identifiers(values: Array) -> bool:
    """Whether there are enough values, all of them different whole numbers."""
    if len(values) < IDENTIFIER_ROWS or not np.isfinite(values).all():
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)


def counted(texts: Iterable[str | None]) -> Counter[str]:
    """Numbers of rows by text, without those that have none."""
    return Counter(text for text in texts if text is not None)
