"""Whether a checkpoint is of this training: the same settings, agents, links and rows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from dsfr.engines.checkpoint.journal import Record

FORMAT = "1"


def difference(found: Record, now: Record) -> str:
    """In what a journal is of another training, for people; empty if it is of this one."""
    if found.about.get("format") != now.about["format"]:
        return f"the checkpoint has format {found.about.get('format')!r}, this version writes {FORMAT!r}: train anew"
    before, after = json.loads(found.about["settings"]), json.loads(now.about["settings"])
    changed = [
        f"{name} was {before.get(name)!r} and is {after.get(name)!r}"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
    if changed:
        return f"the checkpoint is of other settings ({'; '.join(changed[:5])}): resume with the same, or train anew"
    if found.about["agents"] != now.about["agents"]:
        was, are = json.loads(found.about["agents"]), json.loads(now.about["agents"])
        return (
            f"the checkpoint is of {len(was)} agents ({_few(was)}), and now there are {len(are)} ({_few(are)}): resume "
            "with the same ones, spread over any number of processes, or train anew"
        )
    if found.about.get("links") != now.about["links"]:
        return (
            "the checkpoint is of another graph between the same agents: resume with the same topology, or train anew"
        )
    same = found.arrays.keys() == now.arrays.keys() and all(
        np.array_equal(found.arrays[name], now.arrays[name]) for name in now.arrays
    )
    return "" if same else "the checkpoint is of other rows: resume with the same files, or train anew"


def _few(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def as_json(value: Any) -> str:
    """A value as text that is the same for equal values."""
    return json.dumps(json.loads(json.dumps(value)), sort_keys=True)
