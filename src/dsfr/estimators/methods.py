"""The paper's five methods by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsfr.estimators import LapWNNRegressor, SFRRegressor


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its name in the paper and the estimator that it is."""

    name: str
    make: Callable[..., Any]
    """Makes the estimator from keyword parameters."""
    needs_all_labels: bool = False
    """Fully supervised: it learns from labelled rows alone, and experiments give it every label."""


def _sfr(unlabeled: str | None) -> Callable[..., SFRRegressor]:
    return lambda **parameters: SFRRegressor(unlabeled=unlabeled, **parameters)


METHODS = {
    method.name.lower(): method
    for method in (
        Method("FR", _sfr(None), needs_all_labels=True),
        Method("LapWNN", LapWNNRegressor),
        Method("s-SFR", _sfr(None)),
        Method("SFR-G", _sfr("graph")),
        Method("SFR-ICR", _sfr("icr")),
    )
}
"""By lower-case name, in the order of the paper's table."""
