"""The parts that a model can be explained by: rules of clusters, effects of features, or both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsfr.core.arrays import Array
from dsfr.core.explain.effects import EffectBase
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.prediction.mixture import Member
from dsfr.core.scaling.affine import Ranges


@dataclass(frozen=True, slots=True)
class Structure:
    """Rules and effects of a mixture; at least one of both."""

    rules: RuleBase | None
    effects: EffectBase | None

    @classmethod
    def of(cls, members: Sequence[Member], width_scales: Sequence[float] | None = None) -> Structure:
        """Rules and effects of the members that have a share.

        Raises
        ------
        ValueError
            If the model has wavelets instead.
        """
        effects = EffectBase.of(members)
        has_rules = any(member.predictor.basis.n_rules and member.share > 0 for member in members)
        return cls(None if effects is not None and not has_rules else RuleBase.of(members, width_scales), effects)

    @property
    def domain(self) -> Ranges:
        """Domain of the features, see `Predictor.domain`."""
        return self._main.members[0].predictor.domain

    @property
    def typical_row(self) -> Array:
        """Nearly the mean of the training rows, from the rules; without rules, their medians from the knots; (d,)."""
        return self._main.typical_row

    @property
    def start(self) -> float:
        """The rules' mean output and the effects' output at the typical row, both weighted by their shares."""
        rules = 0.0 if self.rules is None else self.rules.share * self.rules.mean_output
        return rules + (0.0 if self.effects is None else self.effects.constant(self.origins))

    @property
    def origins(self) -> list[Array]:
        """Terms of the effects at the typical row."""
        return [] if self.effects is None else self.effects.mean_terms(self.typical_row[None])

    def synthetic_rows(self) -> Array:
        """Rows drawn from the model, in place of training rows; the same model gives the same rows."""
        return self._main.synthetic_rows()

    @property
    def _main(self) -> RuleBase | EffectBase:
        found = self.rules or self.effects
        assert found is not None
        return found
