"""The paper's five methods by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dsfr.estimators import LapWNNRegressor, SFRRegressor
from dsfr.training import ICR, Graph
from dsfr.training.penalties import UnlabeledPenalty


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its name in the paper and the estimator that it is."""

    name: str
    estimator: Callable[..., Any]
    penalty: type[UnlabeledPenalty] | None
    """Its penalty on unlabelled rows."""
    needs_all_labels: bool = False
    """Fully supervised: it learns from labelled rows alone, and experiments give it every label."""
    has_rules: bool = True

    def as_printed(self, **parameters: Any) -> Any:
        """The estimator as the paper prints it; parameters win."""
        shorthand = self.penalty and self.penalty.shorthand
        return self.estimator.paper(**{"unlabeled": shorthand} | parameters)  # type: ignore[attr-defined]

    def make(self, **parameters: Any) -> Any:
        """The estimator with these parameters; the penalty is that of the method, unless one is given."""
        return self.estimator(**{"unlabeled": self.penalty and self.penalty()} | parameters)


METHODS = {
    method.name.lower(): method
    for method in (
        Method("FR", SFRRegressor, None, needs_all_labels=True),
        Method("LapWNN", LapWNNRegressor, Graph, has_rules=False),
        Method("s-SFR", SFRRegressor, None),
        Method("SFR-G", SFRRegressor, Graph),
        Method("SFR-ICR", SFRRegressor, ICR),
    )
}
"""By lower-case name, in the order of the paper's table."""
