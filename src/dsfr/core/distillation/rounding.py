"""Numbers with few digits, which are printed in full."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from math import floor, inf, isfinite, log10

MOST_DIGITS = 17
"""Digits that determine a 64-bit float; a number is not rounded where more would remain."""


def power_below(size: float) -> int:
    """Largest whole ``p`` with ``10**p <= size``; for 0 the power of the smallest float.

    >>> [power_below(size) for size in (1.0, 9.99, 0.02, 0.0)]
    [0, 0, -2, -324]
    """
    return floor(log10(size)) if size > 0.0 and isfinite(size) else -324 if size < inf else 308


def rounded(value: float, power: int) -> float:
    """The nearest multiple of ``10**power``; the float that its decimal digits denote.

    Halfway, the even one; whatever the caller's context of decimal numbers says.

    >>> [rounded(2.345, -2), rounded(-1234.0, 2), rounded(0.04, 0), rounded(1e300, -2)]
    [2.34, -1200.0, 0.0, 1e+300]
    """
    if value == 0.0 or power_below(abs(value)) - power >= MOST_DIGITS:
        return value
    exact = Decimal(repr(value))
    quotient = (exact / Decimal(10) ** power).to_integral_value(ROUND_HALF_EVEN)
    return float(quotient * Decimal(10) ** power) + 0.0
