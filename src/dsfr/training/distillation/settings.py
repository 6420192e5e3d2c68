"""What short rules may be like."""

from __future__ import annotations

from dataclasses import dataclass, field

from dsfr.training.component import Component, Rule, count, number, parameter
from dsfr.training.distillation.edits import Edits

MOST_RULES = 20
"""Rules that a student may have."""


@dataclass(frozen=True, kw_only=True, repr=False)
class StudentSettings(Component):
    """What the student may be like; `RuleRegressor` documents each by the same name.

    Raises
    ------
    ValueError
        Naming the setting, its value and the rule that it breaks.
    """

    max_rules: int = parameter(
        5,
        Rule(
            lambda value: count(1, "").holds(value) and value <= MOST_RULES,
            f"a whole number from 1 to {MOST_RULES}; 3 to 7 are readable",
        ),
    )
    max_conditions: int = parameter(3, count(0, "a whole number >= 0; 2 or 3 are readable"))
    max_terms: int | None = parameter(None, count(0, "a whole number >= 0, or None", or_none=True))
    tolerance: float | None = parameter(
        None, number(0, "a number >= 0, or None; 0.01 is one per cent of the error", strict=False, or_none=True)
    )
    edits: Edits = field(default_factory=Edits)
    categories: tuple[tuple[int, ...], ...] = ()
    """Features that indicate all levels of one category."""
