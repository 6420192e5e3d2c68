"""Checks of what people prescribe for a feature of short rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

from dsfr.training.distillation.edits import MOST_RAMPS

SLOPES = {"+": 1, "-": -1, "0": 0}
"""Signs of slopes as people write them."""


def check_prescription(key: str, value: Any) -> None:
    """Refuse a prescription that is not known or has a value it cannot have.

    Raises
    ------
    ValueError
        Naming the prescription, its value and the rule.
    """
    if key not in _CHECKS:
        raise ValueError(f"{key!r} is not known; it must be one of {', '.join(_CHECKS)}")
    rule = _CHECKS[key](value)
    if rule:
        raise ValueError(f"{key}={value!r} {rule}")


def _rule_of_condition(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be True or False"


def _rule_of_slope(value: Any) -> str:
    return "" if isinstance(value, str) and value in SLOPES else "must be '+', '-' or '0'"


def _rule_of_words(value: Any) -> str:
    if not _is_list(value) or len(value) < 2 or not all(isinstance(word, str) and word.strip() for word in value):
        return "must be a list of two or more names, from low to high"
    return "repeats a name" if len(set(value)) < len(value) else ""


def _rule_of_thresholds(value: Any) -> str:
    if not _is_list(value) or not 1 <= len(value) <= MOST_RAMPS:
        return f"must be a list of 1 to {MOST_RAMPS} pairs of numbers"
    if not all(_is_list(pair) and len(pair) == 2 and all(map(_is_number, pair)) for pair in value):
        return "must be a list of pairs of numbers"
    ends = [end for pair in value for end in pair]
    if any(start >= end for start, end in value) or sorted(ends) != ends:
        return "must ascend: where a ramp starts, where it ends, then the next one"
    return ""


_CHECKS: dict[str, Callable[[Any], str]] = {
    "condition": _rule_of_condition,
    "thresholds": _rule_of_thresholds,
    "slope": _rule_of_slope,
    "words": _rule_of_words,
}
KEYS = tuple(_CHECKS)
"""What can be prescribed for a feature."""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) <= 1e100
