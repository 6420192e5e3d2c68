"""Disclosure control: what may leave an owner of rows, decided on the owner's side, and sums that hide single parts.

`Policy` has the rules and their defaults, `table` the rules of every task, `owner` applies both before a contribution
leaves, `masks` and `ring` hide a contribution until all are added up, and `engine` is the coordinator's side.
"""

from dsfr.disclosure.engine import ProtectedEngine, protect
from dsfr.disclosure.owner import protected_tasks
from dsfr.disclosure.policy import Policy
from dsfr.disclosure.refusal import PolicyError

__all__ = ["Policy", "PolicyError", "ProtectedEngine", "protect", "protected_tasks"]
