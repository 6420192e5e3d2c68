"""How an owner refuses, and how what it keeps for itself is named."""

from __future__ import annotations

from dsfr.engines import EngineError

OWN = "disclosure_"
"""Prefix of what the owner's side keeps in memory; tasks do not see it."""


class PolicyError(EngineError):
    """An owner refuses: names the rule, the numbers and the remedy."""
