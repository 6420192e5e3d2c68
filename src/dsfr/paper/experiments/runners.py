"""Functions that run one fold of an experiment, by the kind of experiment."""

from __future__ import annotations

from collections.abc import Callable

from dsfr.paper.experiments.baselines import run_baselines
from dsfr.paper.experiments.complexity import run_complexity
from dsfr.paper.experiments.convergence import run_convergence
from dsfr.paper.experiments.deviations import run_deviations
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.sweeps import run_agents, run_pairs, run_penalties, run_rules
from dsfr.paper.experiments.table import Choices, Row, run_admm, run_fits, run_grid

RUNNERS: dict[str, Callable[[Fold, Spec, Choices], list[Row]]] = {
    "grid": run_grid,
    "baselines": run_baselines,
    "fits": run_fits,
    "admm": run_admm,
    "deviations": run_deviations,
    "complexity": run_complexity,
    "convergence": run_convergence,
    "penalties": run_penalties,
    "pairs": run_pairs,
    "rules": run_rules,
    "agents": run_agents,
}
