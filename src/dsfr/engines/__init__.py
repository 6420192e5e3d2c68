"""How agents are reached. An engine runs named tasks and reduces what they return; it knows no mathematics."""

from dsfr.engines.base import Engine, EngineError, Task, Tasks
from dsfr.engines.inprocess import InProcessEngine
from dsfr.engines.ledger import Entry, Ledger

__all__ = ["Engine", "EngineError", "Entry", "InProcessEngine", "Ledger", "Task", "Tasks"]
