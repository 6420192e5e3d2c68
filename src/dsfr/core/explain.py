"""Rules as people read them: sets and consequents in the data's own units, and a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsfr.core.arrays import Array
from dsfr.core.model import Predictor
from dsfr.core.rules import Rules


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule in the data's units: IF x is about ``centers`` ± ``widths`` THEN y = ``intercept + coefficients x``."""

    number: int
    share: float
    """Part of the training rows that belong to it, 0 to 1."""
    centers: Array
    widths: Array
    intercept: float
    coefficients: Array
    feature_names: tuple[str, ...]
    target_name: str

    def __str__(self) -> str:
        width = max(len(name) for name in self.feature_names)
        conditions = [
            f"{'IF ' if j == 0 else 'AND'}  {name:<{width}} is about {readable(center)} ± {readable(spread)}"
            for j, (name, center, spread) in enumerate(zip(self.feature_names, self.centers, self.widths, strict=True))
        ]
        return "\n".join([f"Rule {self.number} ({self.share:.0%} of the rows)", *conditions, self._consequent()])

    def _consequent(self) -> str:
        terms = [
            f" {'-' if coefficient < 0 else '+'} {readable(abs(coefficient))}·{name}"
            for name, coefficient in zip(self.feature_names, self.coefficients, strict=True)
        ]
        return f"THEN {self.target_name} = {readable(self.intercept)}{''.join(terms)}"


def explain(predictor: Predictor, feature_names: Sequence[str], target_name: str) -> tuple[Rule, ...]:
    """The rules of a predictor, in the units of the data.

    Strengths sum to 1, so mean and scale of the target move into every rule's own line without changing a prediction.
    """
    if not isinstance(predictor.basis, Rules):
        raise ValueError("this model has wavelets, not rules: only models of SFRRegressor can be explained")
    middle, half = predictor.ranges.midpoints, predictor.ranges.half_widths
    n_rules = len(predictor.basis.centers)
    consequents = predictor.target_scale * predictor.weights.reshape(n_rules, -1)
    slopes = consequents[:, 1:] / half
    intercepts = predictor.target_mean + consequents[:, 0] - slopes @ middle
    centers = middle + half * predictor.basis.centers
    widths = half * predictor.basis.widths
    return tuple(
        Rule(
            number=k + 1,
            share=float(predictor.shares[k]),
            centers=centers[k],
            widths=widths[k],
            intercept=float(intercepts[k]),
            coefficients=slopes[k],
            feature_names=tuple(feature_names),
            target_name=target_name,
        )
        for k in range(n_rules)
    )


def readable(value: float) -> str:
    """A number with four significant digits and no needless ones; powers of ten only for the very large and small.

    >>> [readable(v) for v in (6300.0, 0.0031234, 1234567.0, 1.5e12, -0.0)]
    ['6300', '0.003123', '1235000', '1.5e+12', '0']
    """
    rounded = float(f"{value:.4g}") + 0.0
    return f"{rounded:.0f}" if 1e4 <= abs(rounded) < 1e9 else f"{rounded:.4g}"
