"""A model with fewer rules and sets, and the cost of it in accuracy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.core.explain.simplification import n_sets, simplify_predictor
from dsfr.core.features.effects import Effects
from dsfr.core.prediction.errors import relative_error
from dsfr.core.prediction.mixture import Member, Mixture

if TYPE_CHECKING:
    from dsfr.model.model import Model


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
    intervals: tuple[bool, bool]
    """Whether each model has jackknife intervals; a simpler one has none, because its errors were not counted."""

    def __str__(self) -> str:
        lines = [
            f"rules         {self.rules[0]} -> {self.rules[1]}",
            f"sets          {self.sets[0]} -> {self.sets[1]}",
            f"predictions   moved by {self.change:.2g} deviations of the target (root mean square)",
        ]
        if self.nrmse is not None:
            lines.append(f"NRMSE         {self.nrmse[0]:.4f} -> {self.nrmse[1]:.4f}")
        if self.intervals == (True, False):
            lines.append("intervals     lost: they were made from errors of the model before it was simplified")
        return "\n".join([*lines, f"measured on   {self.measured_on}"])


def simplify(model: Model, rows: Array | None, y: Any, *, similarity: float, min_strength: float) -> Simplification:
    """Simplify a model on given rows, or on rows drawn from it, and measure the change there.

    Raises
    ------
    ValueError
        If a threshold is out of its range, or targets come without rows or in the wrong number.
    """
    _check(similarity, min_strength)
    X = model.structure.synthetic_rows() if rows is None else rows
    targets = _targets(y, None if rows is None else len(rows))
    simpler = _simpler(model, X, similarity, min_strength)
    old, new = model.predict_rows(X), simpler.predict_rows(X)
    moved = simpler.mixture.values(X) - model.mixture.values(X)
    return Simplification(
        model=simpler,
        rules=(_n_rules(model), _n_rules(simpler)),
        sets=(_n_sets(model), _n_sets(simpler)),
        measured_on=f"{len(X)} rows drawn from the model itself" if rows is None else f"the {len(X)} rows given",
        change=float(np.sqrt(np.mean((moved / model.predictor.target_scale) ** 2))),
        nrmse=None if targets is None else _errors(targets, old, new),
        intervals=(model.mixture.scores is not None, simpler.mixture.scores is not None),
    )


def _simpler(model: Model, X: Array, similarity: float, min_strength: float) -> Model:
    """The model with every rule base simplified, without uncertainty; the same model if nothing can be simplified."""
    members = tuple(_simpler_member(member, X, similarity, min_strength) for member in model.members)
    if all(after is before for after, before in zip(members, model.members, strict=True)):
        return model
    simpler = tuple(replace(member, posterior=None) for member in members)
    mixture = Mixture(simpler, link=model.mixture.link, density=model.mixture.density)
    return replace(model, mixture=mixture, training=_without_agreement(model.training, members))


def _without_agreement(training: Mapping[str, Any], members: tuple[Member, ...]) -> dict[str, Any]:
    """The record of a training with the present numbers of rules, and without what was measured before simplifying."""
    described = training.get("models", [])
    if len(described) != len(members):
        return dict(training)
    kept = [
        {**entry, "agreement": None, "n_rules": member.predictor.basis.n_rules}
        for entry, member in zip(described, members, strict=True)
    ]
    return {**training, "models": kept}


def _simpler_member(member: Member, X: Array, similarity: float, min_strength: float) -> Member:
    if isinstance(member.predictor.basis, Effects):
        return member
    found = simplify_predictor(member.predictor, X, similarity=similarity, min_strength=min_strength)
    return member if found is member.predictor else replace(member, predictor=found)


def _check(similarity: float, min_strength: float) -> None:
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity={similarity} must be > 0 and <= 1; 1 joins equal sets only, 0.8 is usual")
    if not 0 <= min_strength < 1:
        raise ValueError(f"min_strength={min_strength} must be >= 0 and < 1; 0 drops no rule, 0.01 is usual")


def _targets(y: Any, n_rows: int | None) -> Array | None:
    if y is None:
        return None
    targets = as_floats(y, "y")
    if targets.shape != (n_rows,):
        raise ValueError(f"y has shape {targets.shape}; it needs one target for each of the rows X ({n_rows})")
    return targets


def _errors(y: Array, old: Array, new: Array) -> tuple[float, float] | None:
    before, after = relative_error(y, old), relative_error(y, new)
    return None if before is None or after is None else (before, after)


def _n_rules(model: Model) -> int:
    return sum(member.predictor.basis.n_rules for member in model.members)


def _n_sets(model: Model) -> int:
    return sum(n_sets(member.predictor.basis.rules) for member in model.members if member.predictor.basis.n_rules)
