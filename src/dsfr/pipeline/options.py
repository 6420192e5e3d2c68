"""Options of ``dsfr fit``, and the estimator that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsfr.core.consensus.admm import RoundInfo
from dsfr.estimators import AutoSFRRegressor
from dsfr.estimators.methods import METHODS

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
"""Parameters of the estimators by the option that sets them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of ``dsfr fit``; those that are None leave the estimator's default in place."""

    target: str
    agents: int | None = None
    agent_column: str | None = None
    labels: int | None = None
    features: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    method: str = "sfr-icr"
    paper: bool = False
    rules: int | None = None
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
    delimiter: str = ","

    @property
    def needs_all_labels(self) -> bool:
        """Whether the method learns from labelled rows alone."""
        return self.method != AUTO and METHODS[self.method].needs_all_labels


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
    plain = {PARAMETER_OF[name]: given[name] for name in ("solver", "tune") if name in given}
    estimator.set_params(n_agents=options.agents or 1, on_round=on_round, random_state=options.seed, **plain)
    _refuse_without_effect(options.method, estimator, list(given))
    _refuse_chosen(estimator, options, list(given))
    params: dict[str, Any] = {PARAMETER_OF[name]: value for name, value in given.items()}
    if "n_nodes" in estimator.get_params() and "n_rules" in params:
        params["n_nodes"] = NODES_PER_RULE * params.pop("n_rules")
    return estimator.set_params(**params)


def _usual(method: str, paper: bool = False) -> Any:
    if method == AUTO:
        if paper:
            raise ValueError("--paper does not go with --method auto, which the paper does not have: leave out one")
        return AutoSFRRegressor()
    return METHODS[method].as_printed() if paper else METHODS[method].make()


def _refuse_without_effect(method: str, estimator: Any, given: list[str]) -> None:
    """Refuse options that set no parameter of the estimator, naming methods that have a use for them."""
    useless = _without_effect(estimator, given)
    if not useless:
        return
    names = ", ".join("--" + name.replace("_", "-") for name in useless)
    if useless == ["max_rounds"]:
        raise ValueError(f"--solver {estimator.solver} has no use for --max-rounds: leave it out")
    others = [name for name in (AUTO, *METHODS) if not _without_effect(_usual(name), useless)]
    remedy = f", or take --method {' or '.join(others)}" if others else ""
    raise ValueError(f"--method {method} has no use for {names}: leave out what has no effect{remedy}")


def _without_effect(estimator: Any, names: list[str]) -> list[str]:
    known = set(estimator.get_params()) | ({"n_rules"} if "n_nodes" in estimator.get_params() else set())
    return [name for name in names if PARAMETER_OF[name] not in known]


def _refuse_chosen(estimator: Any, options: FitOptions, given: list[str]) -> None:
    """Refuse values for what tuning chooses."""
    chosen = [name for name in ("ridge", "weight") if name in given and estimator.tune is not None]
    if not chosen:
        return
    names = ", ".join("--" + name for name in chosen)
    if options.tune is not None:
        raise ValueError(f"--tune {options.tune} chooses {names}: leave out one or the other")
    raise ValueError(f"--method {options.method} chooses {names} by --tune {estimator.tune}: leave out {names}")
