"""All tasks of a training: the one place where every module that declares any is imported."""

from __future__ import annotations

from dataclasses import dataclass

from dsfr.engines import Tasks
from dsfr.storage.bundles import Bundle
from dsfr.training import completion, identity
from dsfr.training.clustering import cluster_sums, clusters, dfcm, few_rounds, paper_dfcm, starts
from dsfr.training.distillation import fidelity, growth, intervals, limits, quantiles, taught
from dsfr.training.duplicates import duplicates, shared_rows
from dsfr.training.ensemble import calibration, members, own_errors, relevance
from dsfr.training.scaling import declared, grid_counts, robust, survey
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Fields
from dsfr.training.tasks.registry import REGISTRY
from dsfr.training.weights import clipped, conjugate_residuals, dicr, leave_one_out, paper_dicr, statistics

MODULES = (
    completion,
    duplicates,
    shared_rows,
    identity,
    survey,
    declared,
    robust,
    clusters,
    starts,
    cluster_sums,
    dfcm,
    paper_dfcm,
    few_rounds,
    statistics,
    clipped,
    conjugate_residuals,
    dicr,
    paper_dicr,
    leave_one_out,
    grid_counts,
    relevance,
    members,
    calibration,
    own_errors,
    taught,
    quantiles,
    growth,
    limits,
    fidelity,
    intervals,
)
"""Modules that declare tasks, in the order in which a training uses them."""


@dataclass(frozen=True, slots=True)
class CheckedTask:
    """A task by its name: runs it if what comes in is as declared, and passes on only what is as declared.

    Pickled as the name alone, so that workers of a cluster use their own declarations.
    """

    name: str

    def __call__(self, shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        """Memory and contribution of an agent."""
        return REGISTRY[self.name].run(shard, memory, broadcast)


_ORDER = [module.__name__ for module in MODULES]
TASKS: Tasks = {
    name: CheckedTask(name)
    for name in sorted(REGISTRY, key=lambda name: _ORDER.index(REGISTRY[name].function.__module__))
}
"""Everything an agent can be asked to do."""


def privacy_table() -> str:
    """The table of ``docs/privacy.md``: what every task sends, and what that says about an agent's rows."""
    lines = ["| task | verb | an agent sends | what it reveals |", "|---|---|---|---|"]
    for name in TASKS:
        declared = REGISTRY[name]
        lines.append(f"| `{name}` | {declared.verb} | {_listed(declared.contributes)} | {declared.reveals} |")
    return "\n".join(lines)


def _listed(fields: Fields) -> str:
    return ", ".join(f"`{name}`{_shape(field.shape)}" for name, field in fields.items())


def _shape(shape: tuple[int | str, ...] | None) -> str:
    return "" if not shape else f" ({' × '.join(map(str, shape))})"
