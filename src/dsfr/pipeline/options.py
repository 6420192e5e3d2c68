"""Options of ``dsfr fit``, and the estimator that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsfr.core.consensus.admm import RoundInfo
from dsfr.estimators import AutoSFRRegressor, RuleRegressor
from dsfr.estimators.methods import METHODS
from dsfr.training import RangeScaling

NODES_PER_RULE = 20
"""Hidden wavelets for each rule asked for: five rules stand for LapWNN's usual hundred nodes."""
AUTO = "auto"
"""The method that chooses everything from the data."""

PARAMETER_OF = {
    "solver": "solver",
    "rules": "n_rules",
    "weight": "unlabeled__weight",
    "pairs": "unlabeled__n_pairs",
    "ridge": "ridge",
    "tune": "tune",
    "fuzzifier": "rules__fuzzifier",
    "width_scale": "rules__width_scale",
    "topology": "engine__topology",
    "tol": "solver__tol",
    "max_rounds": "solver__max_rounds",
}
"""Parameters of the estimators by the option that sets them; of `RuleRegressor`, those of its teacher."""
RULES = "rules"
"""The method whose rules are short: the automatic one, distilled."""
OF_STUDENT = {"rules": "max_rules", "topology": "engine__topology"}
"""Options that set parameters of `RuleRegressor` itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of ``dsfr fit``; those that are None leave the estimator's default in place."""

    target: str
    agents: int | None = None
    agent_column: str | None = None
    labels: int | None = None
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    method: str = "rules"
    paper: bool = False
    rules: int | None = None
    edits: dict[str, dict[str, Any]] | None = None
    weight: float | None = None
    ridge: float | None = None
    tune: str | None = None
    fuzzifier: float | None = None
    width_scale: float | None = None
    pairs: int | None = None
    solver: str | None = None
    topology: str | None = None
    tol: float | None = None
    max_rounds: int | None = None
    ranges: str | None = None
    """A file of `read_ranges`."""
    seed: int = 0
    delimiter: str | None = None
    decimal: str | None = None
    category: tuple[str, ...] = ()
    """Columns that are categories: ``COL``, or ``COL=LEVEL,LEVEL`` with declared levels."""

    @property
    def categories(self) -> dict[str, list[str] | None]:
        """Declared levels by column; None where they are to be found.

        Raises
        ------
        ValueError
            If a column is there twice.
        """
        entries = [given.partition("=") for given in self.category]
        if len({name for name, *_ in entries}) < len(entries):
            raise ValueError("--category names a column twice: give all its levels at once, COL=LEVEL,LEVEL")
        return {
            name: [level.strip() for level in levels.split(",")] if equals else None for name, equals, levels in entries
        }

    @property
    def needs_all_labels(self) -> bool:
        """Whether the method learns from labelled rows alone."""
        return self.method in METHODS and METHODS[self.method].needs_all_labels


def make_estimator(options: FitOptions, on_round: Callable[[RoundInfo], None] | None) -> Any:
    """The estimator of the method, with every option that was given as its parameter.

    Raises
    ------
    ValueError
        If the method has no use for an option, or tuning chooses what it sets.
    """
    values: dict[str, Any] = {name: getattr(options, name) for name in PARAMETER_OF}
    given = {name: None if value == "none" else value for name, value in values.items() if value is not None}
    estimator = _usual(options.method, options.paper)
    plain = {_parameter(options.method, name): given[name] for name in ("solver", "tune") if name in given}
    estimator.set_params(n_agents=options.agents or 1, on_round=on_round, random_state=options.seed, **plain)
    _refuse_without_effect(options.method, estimator, list(given))
    _refuse_chosen(estimator, options, list(given))
    params: dict[str, Any] = {_parameter(options.method, name): value for name, value in given.items()}
    if "n_nodes" in estimator.get_params() and "n_rules" in params:
        params["n_nodes"] = NODES_PER_RULE * params.pop("n_rules")
    estimator.set_params(**params)
    if options.edits is not None:
        if options.method != RULES:
            raise ValueError(f"--method {options.method} has no use for a file of --rules: give their number")
        estimator.set_params(edits=options.edits)
    if options.method == RULES and not (set(given) - set(OF_STUDENT)):
        estimator.set_params(teacher=None)  # the usual one, which a model file need not describe
    return estimator


def declare_ranges(estimator: Any, ranges: RangeScaling) -> None:
    """Scale by declared ranges; of `RuleRegressor`, it is the teacher that scales."""
    estimator.set_params(**{"teacher__scaling" if isinstance(estimator, RuleRegressor) else "scaling": ranges})


def keep_to_sums(estimator: Any, max_weights_per_label: float) -> None:
    """Where sums alone leave the agents: no leave-one-out errors, and few weights of automatic models per label."""
    teacher = "teacher__" if isinstance(estimator, RuleRegressor) else ""
    known = estimator.get_params()
    chosen = {"uncertainty": False, "ensemble__max_weights_per_label": max_weights_per_label}
    estimator.set_params(**{teacher + name: value for name, value in chosen.items() if teacher + name in known})


def _usual(method: str, paper: bool = False) -> Any:
    if method in (AUTO, RULES):
        if paper:
            raise ValueError(f"--paper does not go with --method {method}, which the paper does not have: drop one")
        return AutoSFRRegressor() if method == AUTO else RuleRegressor(teacher=AutoSFRRegressor())
    return METHODS[method].as_printed() if paper else METHODS[method].make()


def _parameter(method: str, option: str) -> str:
    """The parameter that an option sets."""
    if method != RULES:
        return PARAMETER_OF[option]
    return OF_STUDENT.get(option, f"teacher__{PARAMETER_OF[option]}")


def _refuse_without_effect(method: str, estimator: Any, given: list[str]) -> None:
    """Refuse options that set no parameter of the estimator, naming methods that have a use for them."""
    useless = _without_effect(method, estimator, given)
    if not useless:
        return
    names = ", ".join("--" + name.replace("_", "-") for name in useless)
    if useless == ["max_rounds"]:
        solver = getattr(estimator, "solver", None) or estimator.teacher.solver
        raise ValueError(f"--solver {solver} has no use for --max-rounds: leave it out")
    others = [name for name in (RULES, AUTO, *METHODS) if not _without_effect(name, _usual(name), useless)]
    remedy = f", or take --method {' or '.join(others)}" if others else ""
    raise ValueError(f"--method {method} has no use for {names}: leave out what has no effect{remedy}")


def _without_effect(method: str, estimator: Any, names: list[str]) -> list[str]:
    known = set(estimator.get_params()) | ({"n_rules"} if "n_nodes" in estimator.get_params() else set())
    return [name for name in names if _parameter(method, name) not in known]


def _refuse_chosen(estimator: Any, options: FitOptions, given: list[str]) -> None:
    """Refuse values for what tuning chooses."""
    tune = estimator.teacher.tune if options.method == RULES else estimator.tune
    chosen = [name for name in ("ridge", "weight") if name in given and tune is not None]
    if not chosen:
        return
    names = ", ".join("--" + name for name in chosen)
    if options.tune is not None:
        raise ValueError(f"--tune {options.tune} chooses {names}: leave out one or the other")
    raise ValueError(f"--method {options.method} chooses {names} by --tune {tune}: leave out {names}")
