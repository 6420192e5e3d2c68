"""What a fit would make leave an owner, for its consent: columns, settings, tasks, arrays and most rounds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsfr.disclosure import Policy
from dsfr.disclosure.table import TABLE
from dsfr.federation.check import Expected
from dsfr.federation.journal import AuditJournal
from dsfr.training.tasks.declaration import Fields
from dsfr.training.tasks.registry import REGISTRY


def asked_plan(kit: Path, name: str) -> Mapping[str, Any]:
    """The plan of this name that the owner was asked for.

    Raises
    ------
    ValueError
        If there is none in its journal.
    """
    entries = AuditJournal(kit / "local" / "journal.jsonl").entries()
    for entry in entries:
        if entry["event"] == "asked" and entry["plan"] == name:
            about: Mapping[str, Any] = json.loads(entry["about"])
            return about
    known = sorted({str(entry["plan"]) for entry in entries if entry["event"] == "asked"})
    raise ValueError(f"plan {name!r} was not asked for here; asked for: {', '.join(known) or 'none'}")


def describe_plan(plan: Mapping[str, Any], policy: Policy) -> Iterator[str]:
    """What may leave, line by line; d is the number of features, other letters are as in docs/privacy.md."""
    columns = Expected.of(plan).columns
    yield f"features (d = {len(columns.features)}): {', '.join(columns.features)}; target: {columns.target}"
    yield f"settings: {json.dumps(plan['options'], sort_keys=True)}"
    yield f"at most {policy.max_rounds} rounds and {policy.max_refusals} refusals; every answer is masked"
    yield "tasks that may be answered, the arrays that leave, and what these tell whoever adds up all owners:"
    for name, rules in TABLE.items():
        if not rules.refused and (rules.noise is None) == (policy.epsilon is None):
            yield f"  {name}: {_arrays(REGISTRY[name].contributes)}"
            yield f"    {REGISTRY[name].reveals}"


def _arrays(fields: Fields) -> str:
    """Names and sizes of arrays."""
    shapes = {name: " x ".join(str(size) for size in field.shape or ()) for name, field in fields.items()}
    return ", ".join(f"{name} ({shape})" if shape else name for name, shape in shapes.items())
