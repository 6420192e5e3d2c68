"""The rules of disclosure control and their defaults, all in this one file."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from dsfr.training.component import Component, Rule, count, number, parameter

_COLUMNS = Rule(
    lambda value: value is None or (isinstance(value, tuple) and all(isinstance(name, str) for name in value)),
    "a tuple of names of columns, or None for all",
)


_PROBABILITY = Rule(
    lambda value: isinstance(value, float) and 0.0 < value < 0.1, "a number between 0 and 0.1; 1e-6 is usual"
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Policy(Component):
    """What an owner lets out of its table. Every rule is checked by the owner, before anything leaves.

    Parameters
    ----------
    min_rows : int, default=50
        Fewest rows of an owner that takes part.
    min_labels : int, default=5
        Fewest labels of an owner that has any. Owners state their labels in whole multiples of it.
    min_partners : int, default=2
        Fewest other owners in a sum.
    max_weights_per_label : float, default=1/3
        Most weights of a model, or terms of a polynomial, for each label of all owners together; and most columns of
        products for each own row that they are summed over. With more, sums determine the rows.
    min_fuzzifier : float, default=1.05
        Smallest fuzzifier. With smaller ones a cluster can be made of one row.
    max_centers : int, default=64
        Most clusters or rules.
    min_mass : float, default=5
        Smallest sum of memberships of an owner's rows in a cluster or a fuzzy set, and of firing strengths in a rule;
        and fewest rows that any combination of the rules of a fit is about.
    min_label_mass : float, default=0
        Fewest own labels in a rule, or in a fuzzy set of a curve, that labels are summed over, unless there are none;
        and fewest that two such questions differ by. They count by their weights, in units of the largest. With 0,
        labels are counted in all and not by rule.
    max_thresholds : int, default=33
        Most values per column at which rows are counted, curves have knots and ramps end. They are round values of the
        declared range, the same in every round.
    min_split : int, default=5
        Fewest rows that a count shows between two of these values, unless there are none.
    max_rounds : int, default=1000
        Most rounds of one fit.
    max_refusals : int, default=40
        Most questions of one fit that are refused; after that nothing of it is answered, because a refusal tells
        something as well. Only owners that keep a journal can count them.
    max_fits : int, default=20
        Most fits on the same rows. Only owners that keep a journal can count them.
    max_checks : int, default=5
        Most checks of different declared ranges against the same rows: each answers with yes or no for every column,
        and bisection would find extremes. Only owners that keep a journal can count them.
    epsilon : float, default=None
        Differential privacy of one fit, see docs/privacy.md: the owner answers two sums with its share of noise, and
        nothing else. None: without noise.
    delta : float, default=1e-6
        Probability with which ``epsilon`` may fail.
    columns : tuple of str, default=None
        Columns that may be used; None: all of the table.
    """

    argument: ClassVar[str] = "policy"
    shorthand: ClassVar[str] = "default"

    min_rows: int = parameter(50, count(1, "a whole number >= 1; 50 is usual"))
    min_labels: int = parameter(5, count(1, "a whole number >= 1; 5 is usual"))
    min_partners: int = parameter(2, count(0, "a whole number >= 0; with 0 or 1 a sum is no protection"))
    max_weights_per_label: float = parameter(1 / 3, number(0, "a number > 0; 1/3 is usual"))
    min_fuzzifier: float = parameter(1.05, number(1, "a number > 1; 1.05 is usual"))
    max_centers: int = parameter(64, count(1, "a whole number >= 1"))
    min_mass: float = parameter(5.0, number(0, "a number >= 0; 5 is usual", strict=False))
    min_label_mass: float = parameter(0.0, number(0, "a number >= 0; 5 where labels are few and secret", strict=False))
    max_thresholds: int = parameter(33, count(1, "a whole number >= 1"))
    min_split: int = parameter(5, count(1, "a whole number >= 1"))
    max_rounds: int = parameter(1000, count(1, "a whole number >= 1"))
    max_refusals: int = parameter(40, count(1, "a whole number >= 1"))
    max_fits: int = parameter(20, count(1, "a whole number >= 1"))
    max_checks: int = parameter(5, count(0, "a whole number >= 0; with 0 no check is answered"))
    epsilon: float | None = parameter(
        None, number(0, "a number > 0, or None for no noise; 1 to 10 is usual", or_none=True)
    )
    delta: float = parameter(1e-6, _PROBABILITY)
    columns: tuple[str, ...] | None = parameter(None, _COLUMNS)

    def limits(self) -> dict[str, float]:
        """Numbers of all rules that have one, for the record of a training; names of columns are left out."""
        numbers = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in numbers.items() if isinstance(value, int | float)}

    def looser_than(self, other: Policy) -> list[str]:
        """Names of the rules that are looser here than in another policy."""
        return [entry.name for entry in fields(self) if _is_looser(entry.name, self, other)]

    def check_columns(self, names: tuple[str, ...]) -> None:
        """Refuse columns that are not on the list.

        Raises
        ------
        ValueError
            Naming them.
        """
        refused = [name for name in names if self.columns is not None and name not in self.columns]
        if refused:
            allowed = ", ".join(self.columns or ())
            raise ValueError(f"policy rule 'columns': {', '.join(refused)} may not be used; allowed are {allowed}")

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The policy in a TOML file, which may tighten the defaults and not loosen them.

        Raises
        ------
        ValueError
            If a rule is not known, not valid, or looser than its default.
        """
        try:
            found: dict[str, Any] = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"policy {path} is not TOML: {error}") from None
        unknown = sorted(set(found) - {entry.name for entry in fields(cls)})
        if unknown:
            raise ValueError(f"policy {path} has unknown rules {', '.join(unknown)}")
        if isinstance(found.get("columns"), list):
            found["columns"] = tuple(found["columns"])
        policy = cls(**found)
        looser = policy.looser_than(cls())
        if looser:
            shown = ", ".join(f"{name}={getattr(policy, name)!r}" for name in looser)
            raise ValueError(
                f"policy {path} is looser than the defaults in {shown}: a policy file can only tighten them"
            )
        return policy


def _is_looser(name: str, one: Policy, other: Policy) -> bool:
    ours, theirs = getattr(one, name), getattr(other, name)
    if name == "epsilon":
        return theirs is not None and (ours is None or ours > theirs)
    if name == "columns":
        return theirs is not None and (ours is None or not set(ours) <= set(theirs))
    return bool(ours < theirs if name.startswith("min_") else ours > theirs)
