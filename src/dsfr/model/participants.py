"""Who took part in a federated training, and under which limits, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsfr.core.explain.words import one_line

SHOWN_DIGITS = 16
"""Of a fingerprint: enough to compare by eye with a roster; the model file has all 64."""


def participant_notes(training: Mapping[str, Any]) -> list[str]:
    """Owners with the beginnings of their certificates' fingerprints, and the loosest policy; nothing of other models.

    >>> about = {"roster": {"a": "0f" * 32, "c": "1e" * 32}, "masked": True, "loosest_policy": {"min_rows": 50}}
    >>> for note in participant_notes({"federation": about}):
    ...     print(note)
    Trained by 2 owners in a federation, by masked sums. Certificates (SHA-256): a 0f0f0f0f0f0f0f0f, c 1e1e1e1e1e1e1e1e
    No owner had a looser policy than: min_rows 50
    """
    about = training.get("federation", {})
    roster, limits = about.get("roster", {}), about.get("loosest_policy", {})
    if not roster:
        return []
    owners = ", ".join(f"{one_line(name)} {one_line(digits[:SHOWN_DIGITS])}" for name, digits in sorted(roster.items()))
    sums = "masked sums" if about.get("masked") is True else "sums"
    notes = [f"Trained by {len(roster)} owners in a federation, by {sums}. Certificates (SHA-256): {owners}"]
    if limits:
        named = ", ".join(f"{one_line(name)} {limit:.4g}" for name, limit in sorted(limits.items()))
        notes.append(f"No owner had a looser policy than: {named}")
    return notes
