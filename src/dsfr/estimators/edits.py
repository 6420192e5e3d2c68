"""What people prescribe for rules, by the names of features, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsfr.io.edits_file import FileEdits
from dsfr.model.schema import Schema
from dsfr.training.distillation.edits import Edits
from dsfr.training.distillation.prescriptions import KEYS, SLOPES, check_prescription


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
            place = edits.place(name) if isinstance(edits, FileEdits) else "edits"
            raise ValueError(f"{place}: there is no feature {name!r}; there are {', '.join(schema.names)}")
        _check_entry(name, entry)
        if name in schema.categories:
            _check_category(name, entry)
        checked |= {j: entry for j, (_, column, _) in enumerate(schema.features) if column.name == name}
    return checked


def _check_category(name: str, entry: Mapping[str, Any]) -> None:
    """Refuse what cannot be prescribed for a category, whose levels have no order."""
    if {"thresholds", "words"} & set(entry) or entry.get("slope", "0") != "0":
        raise ValueError(f"edits[{name!r}]: it is a category: only condition and the slope '0' can be prescribed")


def _check_entry(name: str, entry: Any) -> None:
    if not isinstance(entry, Mapping):
        raise ValueError(f"edits[{name!r}]: {entry!r} must be a mapping with any of {', '.join(KEYS)}")
    for key, value in entry.items():
        try:
            check_prescription(key, value)
        except ValueError as error:
            raise ValueError(f"edits[{name!r}]: {error}") from None


def _ramps(thresholds: Sequence[Sequence[float]]) -> tuple[tuple[float, float], ...]:
    return tuple((float(start), float(end)) for start, end in thresholds)
