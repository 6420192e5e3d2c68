"""A simpler model and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.rulebase import RuleBase
from dsfr.core.rules import Rules
from dsfr.core.simplify import n_sets, simplify_predictor

if TYPE_CHECKING:
    from dsfr.model import Model


@dataclass(frozen=True, slots=True)
class Simplification:
    """A simpler model beside the one it came from; pairs are (before, after)."""

    model: Model
    rules: tuple[int, int]
    sets: tuple[int, int]
    measured_on: str
    """Which rows the costs were measured on."""
    change: float
    """Root mean square change of the predictions, in deviations of the target."""
    nrmse: tuple[float, float] | None
    """Error on the labelled rows, if targets were given."""

    def __str__(self) -> str:
        lines = [
            f"rules         {self.rules[0]} -> {self.rules[1]}",
            f"sets          {self.sets[0]} -> {self.sets[1]}",
            f"predictions   moved by {self.change:.2g} deviations of the target (root mean square)",
        ]
        if self.nrmse is not None:
            lines.append(f"NRMSE         {self.nrmse[0]:.4f} -> {self.nrmse[1]:.4f}")
        return "\n".join([*lines, f"measured on   {self.measured_on}"])


def simplify(model: Model, rows: Array | None, y: Any, *, similarity: float, min_strength: float) -> Simplification:
    """Simplify a model on rows, or on rows as it remembers them, and measure there what has changed.

    Raises
    ------
    ValueError
        If a threshold is out of its range, or targets come without rows or in the wrong number.
    """
    _check(similarity, min_strength)
    base = RuleBase.of(model.members)
    X = base.stand_in_rows(float(model.settings.get("width_scale", 1.0))) if rows is None else rows
    targets = _targets(y, None if rows is None else len(rows))
    before = model.predictor
    after = simplify_predictor(before, X, similarity=similarity, min_strength=min_strength)
    old, new = before.predict(X), after.predict(X)
    return Simplification(
        model=replace(model, predictor=after),
        rules=(_n_rules(before.basis), _n_rules(after.basis)),
        sets=(_n_sets(before.basis), _n_sets(after.basis)),
        measured_on=f"{len(X)} rows drawn from the model itself" if rows is None else f"the {len(X)} rows given",
        change=float(np.sqrt(np.mean((new - old) ** 2))) / before.target_scale,
        nrmse=None if targets is None else _errors(targets, old, new),
    )


def _check(similarity: float, min_strength: float) -> None:
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity={similarity} must be > 0 and <= 1; 1 joins equal sets only, 0.8 is usual")
    if not 0 <= min_strength < 1:
        raise ValueError(f"min_strength={min_strength} must be >= 0 and < 1; 0 drops no rule, 0.01 is usual")


def _targets(y: Any, n_rows: int | None) -> Array | None:
    if y is None:
        return None
    targets: Array = np.asarray(y, dtype=np.float64)
    if targets.shape != (n_rows,):
        raise ValueError(f"y has shape {targets.shape}; it needs one target for each of the rows X ({n_rows})")
    return targets


def _errors(y: Array, old: Array, new: Array) -> tuple[float, float] | None:
    known = ~np.isnan(y)
    if known.sum() < 2 or np.ptp(y[known]) == 0:
        return None
    deviation = y[known].std(ddof=1)
    first, second = (float(np.sqrt(np.mean((y[known] - p[known]) ** 2)) / deviation) for p in (old, new))
    return first, second


def _n_rules(basis: object) -> int:
    return len(basis.centers) if isinstance(basis, Rules) else 0


def _n_sets(basis: object) -> int:
    return n_sets(basis) if isinstance(basis, Rules) else 0
