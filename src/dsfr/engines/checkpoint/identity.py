"""Identity of a training: its settings, agents, graph and rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dsfr.engines.checkpoint.journal import Record

FORMAT = "3"
"""Version of the format of journals and memories."""


def first_difference(found: Record, now: Record) -> str:
    """First difference between a checkpoint and this run, as a sentence; empty if there is none."""
    if found.metadata.get("format") != now.metadata["format"]:
        return f"the checkpoint has format {found.metadata.get('format')!r}, this version writes {FORMAT!r}: train anew"
    before, after = json.loads(found.metadata["settings"]), json.loads(now.metadata["settings"])
    changed = [
        f"{name} was {before.get(name)!r} and is {after.get(name)!r}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    if changed:
        return f"the checkpoint has other settings ({'; '.join(changed[:5])}): resume with the same, or train anew"
    if found.metadata["agents"] != now.metadata["agents"]:
        was, are = json.loads(found.metadata["agents"]), json.loads(now.metadata["agents"])
        return (
            f"the checkpoint has {len(was)} agents ({_few(was)}), this run has {len(are)} ({_few(are)}): resume with "
            "the same agents, on any number of processes, or train anew"
        )
    if found.metadata.get("links") != now.metadata["links"]:
        return "the checkpoint has another graph of the same agents: resume with the same topology, or train anew"
    same = found.arrays.keys() == now.arrays.keys() and all(
        np.array_equal(found.arrays[name], now.arrays[name]) for name in now.arrays
    )
    return "" if same else "the checkpoint has other rows: resume with the same files, or train anew"


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def as_json(value: Any) -> str:
    """A value as JSON, the same text for equal values."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True)
