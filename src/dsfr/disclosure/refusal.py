"""How an owner refuses, and how what it keeps for itself is named."""

from __future__ import annotations

from dsfr.engines import EngineError
from dsfr.engines.agent import LASTING

OWN = "disclosure_"
"""Prefix of what the owner's side keeps in memory; tasks do not see it."""
KEPT = (OWN, LASTING)
"""The same, with what no earlier memory that a coordinator lets be restored can take away."""


class PolicyError(EngineError):
    """An owner refuses: names the rule, the numbers and the remedy."""
