"""The record of a training in a model file: rounds, and communication by task and by agent. Bounded and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsfr.core.consensus.admm import RoundInfo
    from dsfr.engines import Ledger

MAX_ROUNDS = 100
"""Rounds kept of each stage, evenly spaced; first and last are among them."""
MAX_AGENTS = 200
"""Agents kept, those with the most traffic."""
MAX_ENTRIES = 10_000
"""Longest list a reader accepts."""
LEAST_SCALE = 1e-50
"""A width scale of a file lies between this and its inverse."""

_SCALARS: dict[str, tuple[type, ...]] = {
    "n_samples": (int,),
    "n_labeled": (int,),
    "n_agents": (int,),
    "rounds": (int,),
    "bytes": (int,),
    "termination": (str,),
    "tuned": (dict,),
    "n_target_values": (int,),
}
_NUMBER = (int, float)
_MODEL = ("share", "n_rules", "near_pairs", "width_scale")
"""Entries that readers use of the description of a member; there are others."""
_KINDS: dict[str, dict[str, tuple[type, ...]]] = {
    "history": {
        "stage": (str,),
        "round": (int,),
        "objective": (int, float, type(None)),
        "primal_residual": (int, float, type(None)),
        "dual_residual": (int, float, type(None)),
        "error_bound": (int, float, type(None)),
    },
    "ledger": {
        "task": (str,),
        "verb": (str,),
        "rounds": (int,),
        "messages": (int,),
        "bytes_down": (int,),
        "bytes_up": (int,),
    },
    "agents": {
        "agent": (str,),
        "rounds": (int,),
        "messages": (int,),
        "bytes_received": (int,),
        "bytes_sent": (int,),
    },
}

_LISTS: dict[str, dict[str, tuple[type, ...]]] = {
    **_KINDS,
    "models": dict.fromkeys(_MODEL, _NUMBER) | {"agreement": (int, float, type(None))},
}


def record(history: Sequence[RoundInfo], ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """Rounds, tasks and agents as lists of flat dictionaries for JSON; an unknown number is None."""
    busiest = sorted(ledger.agents.items(), key=lambda item: -item[1].bytes_received - item[1].bytes_sent)
    agents = sorted(busiest[:MAX_AGENTS])
    return {
        "history": [_plain(info, "history") for info in _thinned(history)],
        "ledger": [_plain(entry, "ledger") for entry in ledger.entries.values()],
        "agents": [{"agent": name} | _plain(traffic, "agents", without="agent") for name, traffic in agents],
    }


def check_record(training: Mapping[str, Any]) -> None:
    """Refuse values of the wrong type; every part of a record is optional.

    Raises
    ------
    ValueError
        Naming the part.
    """
    for name, kind in _SCALARS.items():
        if name in training and not _is(training[name], kind):
            raise ValueError(f"its record of {name!r} is of the wrong kind")
    for name, kinds in _LISTS.items():
        entries = training.get(name, [])
        if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
            raise ValueError(f"its record of {name!r} is no list, or too long")
        if not all(_has(entry, kinds) for entry in entries):
            raise ValueError(f"its record of {name!r} has entries of the wrong kind")
    scales = training.get("cluster_scales", [])
    if not isinstance(scales, list) or len(scales) > MAX_ENTRIES or not all(map(_is_scale, scales)):
        raise ValueError("its record of 'cluster_scales' is no list of numbers > 0")
    if not all(_is_scale(entry["width_scale"]) for entry in training.get("models", [])):
        raise ValueError("its record of 'models' has a width scale that is no number > 0")
    _check_federation(training.get("federation", {}))


def _check_federation(about: object) -> None:
    """Who took part, by certificate, and the limits that the policies of all of them keep."""
    for name, kind in (("roster", (str,)), ("loosest_policy", _NUMBER)):
        found = about.get(name, {}) if isinstance(about, dict) else None
        if not isinstance(found, dict) or len(found) > MAX_ENTRIES:
            raise ValueError(f"its record of 'federation' has no {name!r} by name, or too long a one")
        if not all(_is(value, kind) for value in found.values()):
            raise ValueError(f"its record of {name!r} has entries of the wrong kind")


_STUDENT: dict[str, tuple[type, ...]] = {
    "price": _NUMBER,
    "strongest_price": (int, float, type(None)),
    "fidelity": _NUMBER,
    "overlap": _NUMBER,
    "teacher_error": (int, float, type(None)),
    "teacher_weights": (int,),
    "teacher_members": (int,),
    "max_rules": (int,),
}
_CURVE: dict[str, tuple[type, ...]] = dict.fromkeys(("n_rules", "distance", "price"), _NUMBER)


def check_student(student: object, n_rules: int, n_features: int) -> None:
    """Refuse a record of a student that is not as its training writes it.

    Raises
    ------
    ValueError
        Naming the part.
    """
    if not _has(student, _STUDENT) or not isinstance(student, dict) or not isinstance(student.get("is_signal"), bool):
        raise ValueError("its record of 'student' has entries of the wrong kind")
    for name, length in (("outputs", n_rules), ("coverage", n_rules), ("typical_row", n_features)):
        values = student.get(name)
        if not isinstance(values, list) or len(values) != length or not all(_is(value, _NUMBER) for value in values):
            raise ValueError(f"its record of {name!r} is no list of {length} numbers")
    curve, words = student.get("curve"), student.get("words", {})
    if not isinstance(curve, list) or len(curve) > MAX_ENTRIES or not all(_has(entry, _CURVE) for entry in curve):
        raise ValueError("its record of 'curve' has entries of the wrong kind")
    for name in ("binary", "fixed"):
        features = student.get(name, [] if name == "fixed" else None)
        if not isinstance(features, list) or not all(_is(j, (int,)) and 0 <= j < n_features for j in features):
            raise ValueError(f"its record of {name!r} is no list of numbers of features")
    if not isinstance(words, dict) or not all(_are_words(key, names) for key, names in words.items()):
        raise ValueError("its record of 'words' has entries of the wrong kind")


def _are_words(key: object, names: object) -> bool:
    is_number = isinstance(key, str) and key.isascii() and key.isdecimal()
    return is_number and isinstance(names, list) and all(isinstance(name, str) and name for name in names)


def check_width_scale(settings: Mapping[str, Any]) -> None:
    """Refuse a width scale by which widths cannot be divided to get the deviations of clusters."""
    rules = settings.get("rules", {})
    if not isinstance(rules, dict) or not _is_scale(rules.get("width_scale", 1.0)):
        raise ValueError("its setting 'width_scale' is no number > 0")


def _has(entry: object, kinds: Mapping[str, tuple[type, ...]]) -> bool:
    return isinstance(entry, dict) and all(key in entry and _is(entry[key], kind) for key, kind in kinds.items())


def _is(value: object, kind: tuple[type, ...]) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_scale(value: object) -> bool:
    return _is(value, _NUMBER) and LEAST_SCALE < value < 1 / LEAST_SCALE  # type: ignore[operator]


def _thinned(history: Sequence[RoundInfo]) -> list[RoundInfo]:
    """At most `MAX_ROUNDS` rounds of every stage, in order."""
    stages = dict.fromkeys(info.stage for info in history)
    kept = []
    for stage in stages:
        rounds = [info for info in history if info.stage == stage]
        last = len(rounds) - 1
        n_kept = min(len(rounds), MAX_ROUNDS)
        kept += [rounds[round(i * last / max(n_kept - 1, 1))] for i in range(n_kept)]
    return kept


def _plain(entry: object, name: str, without: str = "") -> dict[str, Any]:
    return {key: _number(getattr(entry, key)) for key in _KINDS[name] if key != without}


def _number(value: Any) -> Any:
    """A number with six digits, enough for plots; None if it is not finite, which means unknown."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
