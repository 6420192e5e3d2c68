"""How agents are reached. An engine runs named tasks and reduces what they return; it knows no mathematics."""

from dsfr.engines.base import Engine, EngineError, NeighborEngine, Task, Tasks
from dsfr.engines.choice import choose_engine
from dsfr.engines.faults import Absence, Faults
from dsfr.engines.inprocess import InProcessEngine
from dsfr.engines.ledger import Entry, Ledger, Traffic

__all__ = [
    "Absence",
    "Engine",
    "EngineError",
    "Entry",
    "Faults",
    "InProcessEngine",
    "Ledger",
    "NeighborEngine",
    "Task",
    "Tasks",
    "Traffic",
    "choose_engine",
]
