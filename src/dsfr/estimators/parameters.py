"""From an estimator's parameters to the settings of a training, and what ``auto=True`` stands for."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state

from dsfr.training import Settings

_NOT_SETTINGS = frozenset(
    {
        "auto",
        "n_agents",
        "engine",
        "precision",
        "topology",
        "faults",
        "min_agents",
        "on_round",
        "random_state",
        "feature_ranges",
    }
)


AUTO: dict[str, Any] = {
    "scaling": "robust",
    "firing": "mean",
    "relevance": "evidence",
    "pairs": "local",
    "width_scale": 1.5,
    "tune": "evidence",
    "n_models": "auto",
    "uncertainty": True,
    "solver": "exact",
    "tol": 1e-2,
}
"""What ``auto=True`` stands for, where nothing else is asked for."""


def training_seed(random_state: Any) -> int:
    """Seed of all that is random in a training, its graph included."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def settings_of(estimator: BaseEstimator, basis: str, seed: int, **fixed: Any) -> Settings:
    """Settings from an estimator's parameters, which have the same names."""
    auto = _plain(getattr(estimator, "auto", False))
    if not isinstance(auto, bool):
        raise ValueError(f"auto={auto!r} must be True or False")
    told = {name: _plain(value) for name, value in estimator.get_params().items() if name not in _NOT_SETTINGS}
    if auto:
        told |= {name: value for name, value in AUTO.items() if told[name] == _defaults(estimator)[name]}
    if told.get("n_models", 1) is None:
        told["n_models"] = 1
    ranges = estimator.feature_ranges
    if ranges is not None:
        bounds = check_array(ranges, dtype=np.float64, input_name="feature_ranges")
        if len(bounds) != 2:
            raise ValueError(f"feature_ranges has {len(bounds)} rows; it needs two: lowest and highest values")
        ranges = (tuple(bounds[0].tolist()), tuple(bounds[1].tolist()))
    try:
        return Settings(**told, **fixed, basis=basis, seed=seed, feature_ranges=ranges)
    except ValueError as error:
        if not auto:
            raise
        raise ValueError(f"{error} (auto=True stands for {_listed(AUTO)})") from None


def _listed(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def _defaults(estimator: BaseEstimator) -> dict[str, Any]:
    parameters = signature(type(estimator).__init__).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def _plain(value: Any) -> Any:
    """A number as Python has it: searches hand over numpy's, which JSON does not know."""
    return value.item() if isinstance(value, np.generic) else value
