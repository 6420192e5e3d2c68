"""What people prescribe for rules, by the names of features, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from dsfr.model.schema import Schema
from dsfr.training.distillation.edits import MOST_RAMPS, Edits

SLOPES = {"+": 1, "-": -1, "0": 0}
"""Signs of slopes as people write them."""
KEYS = ("condition", "thresholds", "slope", "words")


def edits_of(edits: Mapping[str, Mapping[str, Any]] | None, schema: Schema) -> Edits:
    """Prescriptions by the number of a feature.

    Raises
    ------
    ValueError
        Naming the feature and what is wrong.
    """
    checked = _checked(edits, schema)
    return Edits(
        tuple(feature for feature, entry in checked.items() if entry.get("condition") is False),
        {feature: _ramps(entry["thresholds"]) for feature, entry in checked.items() if "thresholds" in entry},
        {feature: SLOPES[entry["slope"]] for feature, entry in checked.items() if "slope" in entry},
    )


def words_of(edits: Mapping[str, Mapping[str, Any]] | None, schema: Schema) -> dict[int, list[str]]:
    """Names of terms by the number of a feature."""
    return {feature: list(entry["words"]) for feature, entry in _checked(edits, schema).items() if "words" in entry}


def _checked(edits: Mapping[str, Mapping[str, Any]] | None, schema: Schema) -> dict[int, Mapping[str, Any]]:
    """Prescriptions by the number of a feature; those of a category hold for all of its features."""
    if edits is None:
        return {}
    if not isinstance(edits, Mapping):
        raise ValueError(f"edits={edits!r} must be a mapping from names of features to mappings")
    checked: dict[int, Mapping[str, Any]] = {}
    for name, entry in edits.items():
        if name not in schema.names:
            there = ", ".join(schema.names)
            raise ValueError(f"edits names the feature {name!r}, which is not there; there are {there}")
        problem = _problem(entry) or (_problem_of_category(entry) if name in schema.categories else "")
        if problem:
            raise ValueError(f"edits[{name!r}]: {problem}")
        checked |= {j: entry for j, (_, column, _) in enumerate(schema.features) if column.name == name}
    return checked


def _problem_of_category(entry: Mapping[str, Any]) -> str:
    """What is wrong with prescriptions for a category, whose levels have no order."""
    if {"thresholds", "words"} & set(entry) or entry.get("slope", "0") != "0":
        return "it is a category: only condition and the slope '0' can be prescribed"
    return ""


def _problem(entry: Any) -> str:
    """What is wrong with the prescriptions for a feature; empty if nothing is."""
    if not isinstance(entry, Mapping):
        return f"{entry!r} must be a mapping with any of {', '.join(KEYS)}"
    unknown = [key for key in entry if key not in KEYS]
    if unknown:
        return f"{unknown[0]!r} is not known; it must be one of {', '.join(KEYS)}"
    if not isinstance(entry.get("condition", True), bool):
        return f"condition={entry['condition']!r} must be True or False"
    if entry.get("slope", "0") not in SLOPES:
        return f"slope={entry['slope']!r} must be '+', '-' or '0'"
    words = entry.get("words", ["low", "high"])
    if not _is_list(words) or len(words) < 2 or not all(isinstance(word, str) and word.strip() for word in words):
        return f"words={words!r} must be a list of two or more names, from low to high"
    if len(set(words)) < len(words):
        return f"words={words!r} repeats a name"
    return _problem_of_thresholds(entry["thresholds"]) if "thresholds" in entry else ""


def _problem_of_thresholds(thresholds: Any) -> str:
    shown = f"thresholds={thresholds!r}"
    if not _is_list(thresholds) or not 1 <= len(thresholds) <= MOST_RAMPS:
        return f"{shown} must be a list of 1 to {MOST_RAMPS} pairs of numbers"
    if not all(_is_list(pair) and len(pair) == 2 and all(map(_is_number, pair)) for pair in thresholds):
        return f"{shown} must be a list of pairs of numbers"
    ends = [end for pair in thresholds for end in pair]
    if any(start >= end for start, end in thresholds) or sorted(ends) != ends:
        return f"{shown} must ascend: where a ramp starts, where it ends, then the next one"
    return ""


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and abs(float(value)) <= 1e100


def _ramps(thresholds: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(start), float(end)) for start, end in thresholds)
