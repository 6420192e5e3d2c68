"""Engines: run named tasks on agents and reduce their contributions. They know no mathematics.

An engine is an object with the verbs `sum`, `max` and `gather`, the names of its agents and a ledger (`Engine`). It is
made from shards, the rows of each agent by name, and tasks, functions by name: ``MyEngine(shards, TASKS)``. The engine
passes each shard to the tasks of its agent and never reads it. `dsfr.train(engine, settings)` trains over any engine.

A new engine is a subclass of `BaseEngine` with one method, `_run_round`; CONTRIBUTING.md has the recipe, and
`tests/engine_contract.py` the laws that it must keep. Packages: `local` (agents in this process), `mpi` and `dask`
(agents in other processes), `gossip` (exact sums without a coordinator), `checkpoint` (a wrapper of any engine).
"""

from dsfr.engines.base import BaseEngine
from dsfr.engines.contract import Engine, EngineError, RefusedError, Task, Tasks
from dsfr.engines.ledger import Entry, Ledger, Traffic
from dsfr.engines.local.choice import choose_engine
from dsfr.engines.local.faults import Absence, Faults
from dsfr.engines.local.in_process import InProcessEngine

__all__ = [
    "Absence",
    "BaseEngine",
    "Engine",
    "EngineError",
    "Entry",
    "Faults",
    "InProcessEngine",
    "Ledger",
    "RefusedError",
    "Task",
    "Tasks",
    "Traffic",
    "choose_engine",
]
