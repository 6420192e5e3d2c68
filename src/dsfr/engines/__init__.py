"""How agents are reached. An engine runs named tasks and reduces what they return; it knows no mathematics."""

from dsfr.engines.contract import Engine, EngineError, Task, Tasks
from dsfr.engines.ledger import Entry, Ledger, Traffic
from dsfr.engines.local.choice import choose_engine
from dsfr.engines.local.faults import Absence, Faults
from dsfr.engines.local.in_process import InProcessEngine

__all__ = [
    "Absence",
    "Engine",
    "EngineError",
    "Entry",
    "Faults",
    "InProcessEngine",
    "Ledger",
    "Task",
    "Tasks",
    "Traffic",
    "choose_engine",
]
