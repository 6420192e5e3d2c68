"""Conditions and terms on categories in words."""

from __future__ import annotations

from collections.abc import Sequence

from dsfr.core.explain.words import Indicator, quoted, quoted_term


def indicator_term(indicator: Indicator) -> str:
    """What an indicator says where it is 1.

    >>> indicator_term(Indicator("region", "north", ("east", "north", "south")))
    'region is north'
    """
    return f"{quoted(indicator.column)} is {quoted_term(indicator.level)}"


def allowed_levels(indicators: Sequence[Indicator], held: Sequence[bool]) -> list[str]:
    """Levels of a column for which some of its indicators are 1 and the others 0."""
    levels = list(indicators[0].levels)
    for indicator, holds in zip(indicators, held, strict=True):
        levels = [level for level in levels if (level == indicator.level) == holds]
    return levels


def condition_text(indicators: Sequence[Indicator], held: Sequence[bool]) -> str:
    """The levels that conditions on one column allow, or those that they exclude where these are fewer.

    >>> levels = ("east", "north", "south", "west")
    >>> north, east = Indicator("region", "north", levels), Indicator("region", "east", levels)
    >>> condition_text([north], [False])
    'not north'
    >>> condition_text([north, east], [False, False])
    'south or west'
    >>> condition_text([north, east], [True, False])
    'north'
    """
    allowed = allowed_levels(indicators, held)
    excluded = [level for level in indicators[0].levels if level not in allowed]
    if len(allowed) <= len(excluded):
        return " or ".join(map(quoted_term, allowed)) if allowed else "nothing"
    return f"not {' or '.join(map(quoted_term, excluded))}"
