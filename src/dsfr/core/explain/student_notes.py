"""Sentences about short rules: what they cost, and whether there is signal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dsfr.core.explain.words import one_line


def notes_of(record: Mapping[str, Any], n_rules: int) -> Iterator[str]:
    """Sentences about a student, from the record of its training."""
    if not record:
        return
    base = f"the average of {record['teacher_members']} models with {record['teacher_weights']:,} weights"
    if record["teacher_members"] == 1:
        base = f"a model with {record['teacher_weights']:,} weights"
    if not record["is_signal"]:
        yield (
            f"The labels carry no signal: the leave-one-out error of {base} is not below that of the mean. The "
            "prediction is the mean of the labels."
        )
        return
    rules = "One rule" if n_rules == 1 else f"{n_rules} rules"
    if record["teacher_error"] is None:
        verb = "explains" if n_rules == 1 else "explain"
        yield f"{rules} {verb} {record['fidelity']:.1%} of how {base} varies over the rows."
        return
    alone = record["strongest_price"] if n_rules > 1 else None
    yield (
        f"Price of readability: {rules.lower() if n_rules == 1 else rules} with {record['price']:.1%} more error than "
        f"{base} (expected from the distance between both)"
        + ("." if alone is None else f"; answering with the strongest rule alone: {alone:.1%}.")
    )
    yield from _dearer(record, n_rules)


def _dearer(record: Mapping[str, Any], n_rules: int) -> Iterator[str]:
    """If the price is high, how many rules a lower one takes."""
    high = 0.05
    if record["price"] <= high:
        return
    enough = [entry for entry in record["curve"] if entry["price"] <= high]
    if enough:
        argument = "max_rules" if enough[0]["n_rules"] > record["max_rules"] else "a lower tolerance"
        yield f"{enough[0]['n_rules']:.0f} rules would cost {enough[0]['price']:.1%}: {argument} allows them."
    elif record["curve"]:
        best = min(record["curve"], key=lambda entry: entry["price"])
        more = f"Even {best['n_rules']:.0f} rules would cost {best['price']:.1%}"
        advice = more if best["n_rules"] > n_rules else "More rules would not cost less"
        yield f"{advice}: use the average where accuracy counts."


def unused_thresholds(features: Sequence[str]) -> Iterator[str]:
    """That thresholds prescribed for features that no rule has a condition on are not in the model."""
    if features:
        yield (
            f"No rule has a condition on {', '.join(map(one_line, features))}, for which thresholds are prescribed: it "
            "would not lower the error by what there is more to read."
        )
