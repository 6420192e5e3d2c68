"""Parameters of the estimators: plain values, and components that strings may stand for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from dsfr.disclosure import Policy
from dsfr.engines import Absence, Faults
from dsfr.estimators.engines import EngineChoice
from dsfr.training.component import Component, as_record, from_record
from dsfr.training.ensemble_settings import Ensemble
from dsfr.training.settings import FAMILIES, LEFT_OPEN, Settings, usual_solver

COMPONENTS: dict[str, type[Component]] = {
    **FAMILIES,
    Ensemble.argument: Ensemble,
    EngineChoice.argument: EngineChoice,
}
"""Families of components by the parameter that takes them."""
NOT_SETTINGS = frozenset({"n_agents", "engine", "precision", "on_round", "random_state"})
"""Parameters that say where and how rows are kept, and not what is learnt from them."""


class ComponentEstimator(BaseEstimator):
    """An estimator whose parameters may be components: ``solver__tol`` is an argument of the one in ``solver``.

    That holds as well where a string stands for the component.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Component]]] = {}
    """By parameter, further strings and the components that they stand for."""

    def component(self, name: str) -> Any:
        """The component that a parameter stands for; None where there is none.

        Raises
        ------
        ValueError
            If the parameter is neither a component nor a string that stands for one.
        """
        value, presets = getattr(self, name), dict(self.presets.get(name, {}))
        if name == "unlabeled" and value is None:
            return None
        if name == "solver":
            presets = {LEFT_OPEN: usual_solver(self.tune, getattr(self, "uncertainty", False))} | presets
        return COMPONENTS[name].resolve(value, presets)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep``, also the arguments of components, such as ``solver__tol``."""
        params: dict[str, Any] = super().get_params(deep=False)
        for name in [name for name in COMPONENTS if deep and name in params]:
            try:
                component = self.component(name)
            except ValueError:  # it is refused when it is used
                continue
            if component is not None:
                params |= {f"{name}__{key}": value for key, value in component.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``solver__tol=1e-6`` changes an argument of the present solver, whatever stands for it."""
        nested: dict[str, dict[str, Any]] = defaultdict(dict)
        for key in [key for key in params if key.partition("__")[0] in COMPONENTS and "__" in key]:
            name, _, argument = key.partition("__")
            nested[name][argument] = params.pop(key)
        super().set_params(**params)
        for name, arguments in nested.items():
            component = self.component(name)
            if component is None:
                raise ValueError(f"{name}=None has no arguments {', '.join(arguments)}: set {name} first")
            setattr(self, name, component.changed_by(arguments))
        return self

    def settings(self, seed: int, **fixed: Any) -> Settings:
        """Settings of a training with these parameters."""
        params = self.get_params(deep=False)
        settings = {name: value for name, value in params.items() if name not in NOT_SETTINGS}
        settings |= {name: self.component(name) for name in settings if name in COMPONENTS}
        if Ensemble.argument in settings:
            settings |= settings.pop(Ensemble.argument).get_params()
        return Settings(**settings | fixed, seed=seed)

    def stored_parameters(self, random_state: int) -> dict[str, Any]:
        """The class and its parameters as JSON holds them, with components in full."""
        params = self.get_params(deep=False) | {"random_state": random_state}
        params.pop("on_round")
        params |= {name: self.component(name) for name in params if name in COMPONENTS}
        params["engine"] = params["engine"].storable()
        return {"estimator": type(self).__name__} | {name: as_record(value) for name, value in params.items()}


def read_parameters(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `ComponentEstimator.stored_parameters`, with components again.

    Raises
    ------
    ValueError
        If a component is not known or not valid.
    """
    families = COMPONENTS.values()
    kinds: dict[str, type] = {kind.__name__: kind for family in families for kind in family.choices.values()}
    kinds |= {kind.__name__: kind for kind in (Faults, Absence, Policy)}
    params = {name: from_record(value, kinds) for name, value in stored.items() if name != "estimator"}
    for name, family in COMPONENTS.items():
        value = params.get(name)
        if value is not None and not isinstance(value, family):
            raise ValueError(f"{name}={value!r} is none of its components")
    return params


def drawn_state(random_state: Any) -> int:
    """A whole number that can stand for a random state: itself, or one that is drawn from it."""
    if isinstance(random_state, Integral) and not isinstance(random_state, bool):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def training_seed(random_state: int) -> int:
    """Seed of all that is random in a training, its graph included."""
    return int(np.random.RandomState(random_state).randint(2**31 - 1))
