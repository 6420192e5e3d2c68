"""Sentences about the target of a model: its scale, its limits, and whether it has few values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsfr.core.explain.words import one_line, readable
from dsfr.core.prediction.link import Link, learnt_name


def target_notes(target_name: str, link: Link, training: Mapping[str, Any]) -> list[str]:
    """All that there is to say of a target; nothing of one that is learnt as it is, without limits."""
    return [*scale_notes(target_name, link), *few_valued(target_name, training)]


def scale_notes(target_name: str, link: Link) -> Iterator[str]:
    """How predictions follow from what is learnt."""
    name, learnt = one_line(target_name), one_line(learnt_name(target_name, link))
    if link.is_log:
        yield (
            f"Learnt is {learnt}: rules, effects and contributions are for logarithms, and a step of 0.1 is about 10%. "
            f"The prediction is {name} = {link.factor:.4g} exp({learnt}); the factor turns it into a mean."
        )
    if not link.is_identity:
        low, high = readable(link.low), readable(link.high)
        yield f"{learnt} counts as {low} where the sum is lower, as {high} where it is higher: no label is far beyond."


def few_valued(target_name: str, training: Mapping[str, Any]) -> Iterator[str]:
    """That a target has few values, if it has."""
    n_values = training.get("n_target_values")
    if n_values is not None:
        mean = "a probability if they are 0 and 1" if n_values == 2 else "and lies between them"
        yield (
            f"The labels of {one_line(target_name)} have {n_values} different values: a prediction is their mean, "
            f"{mean}. Consider a classifier."
        )
