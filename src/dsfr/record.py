"""What a model file remembers of its training: rounds, and what was sent by task and by agent. Bounded and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsfr.core.consensus import RoundInfo
    from dsfr.engines import Ledger

MAX_ROUNDS = 100
"""Rounds kept of each stage, evenly spaced; first and last are among them."""
MAX_AGENTS = 200
"""Agents kept, those with most to carry."""
MAX_ENTRIES = 10_000
"""Longest list a reader accepts."""

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


def record(history: Sequence[RoundInfo], ledger: Ledger) -> dict[str, list[dict[str, Any]]]:
    """Rounds, tasks and agents as lists of flat dictionaries that JSON can hold; a number nobody knows is None."""
    busiest = sorted(ledger.agents.items(), key=lambda item: -item[1].bytes_received - item[1].bytes_sent)
    agents = sorted(busiest[:MAX_AGENTS])
    return {
        "history": [_plain(info, "history") for info in _thinned(history)],
        "ledger": [_plain(entry, "ledger") for entry in ledger.entries.values()],
        "agents": [{"agent": name} | _plain(traffic, "agents", without="agent") for name, traffic in agents],
    }


def check_record(training: Mapping[str, Any]) -> None:
    """Refuse lists that are no record; files without them are older, and fine.

    Raises
    ------
    ValueError
        Naming the list.
    """
    for name, kinds in _KINDS.items():
        entries = training.get(name, [])
        if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
            raise ValueError(f"its record of {name!r} is no list, or too long")
        if not all(_is_entry(entry, kinds) for entry in entries):
            raise ValueError(f"its record of {name!r} has entries of the wrong kind")


def _is_entry(entry: object, kinds: Mapping[str, tuple[type, ...]]) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() == kinds.keys()
        and all(isinstance(entry[key], kind) and not isinstance(entry[key], bool) for key, kind in kinds.items())
    )


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
    """Six digits of a number are enough to draw; what is not finite is not known."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None
