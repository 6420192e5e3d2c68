"""What people prescribe for rules, by the names of features, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsfr.io.edits_file import FileEdits
from dsfr.training.distillation.edits import Edits
from dsfr.training.distillation.prescriptions import KEYS, SLOPES, check_prescription


def edits_of(edits: Mapping[str, Mapping[str, Any]] | None, feature_names: Sequence[str]) -> Edits:
    """Prescriptions by the number of a feature.

    Raises
    ------
    ValueError
        Naming the feature and what is wrong.
    """
    checked = _checked(edits, feature_names)
    return Edits(
        tuple(feature for feature, entry in checked.items() if entry.get("condition") is False),
        {feature: _ramps(entry["thresholds"]) for feature, entry in checked.items() if "thresholds" in entry},
        {feature: SLOPES[entry["slope"]] for feature, entry in checked.items() if "slope" in entry},
    )


def words_of(edits: Mapping[str, Mapping[str, Any]] | None, feature_names: Sequence[str]) -> dict[int, list[str]]:
    """Names of terms by the number of a feature."""
    return {
        feature: list(entry["words"]) for feature, entry in _checked(edits, feature_names).items() if "words" in entry
    }


def _checked(
    edits: Mapping[str, Mapping[str, Any]] | None, feature_names: Sequence[str]
) -> dict[int, Mapping[str, Any]]:
    if edits is None:
        return {}
    if not isinstance(edits, Mapping):
        raise ValueError(f"edits={edits!r} must be a mapping from names of features to mappings")
    names, checked = list(feature_names), {}
    for name, entry in edits.items():
        if name not in names:
            place = edits.place(name) if isinstance(edits, FileEdits) else "edits"
            raise ValueError(f"{place}: there is no feature {name!r}; there are {', '.join(names)}")
        _check_entry(name, entry)
        checked[names.index(name)] = entry
    return checked


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
