"""Settings of a training: a composition of components, checked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsfr.training.component import TRUE_OR_FALSE, Component, Rule, count, number, one_of, only, parameter
from dsfr.training.ensemble_settings import (
    FURTHER_EFFECTS,
    KIND_OF_EFFECTS,
    KIND_OF_RELEVANCE,
    NUMBER_OF_MODELS,
    WEIGHTS_PER_LABEL,
)
from dsfr.training.fuzzy_rules import FuzzyRules
from dsfr.training.penalties import ICR, NO_PENALTY, UnlabeledPenalty
from dsfr.training.scaling.scalings import RangeScaling, Scaling
from dsfr.training.solvers import Conjugate, Solver, Sums
from dsfr.training.solvers.few_rounds import is_not_robust

USUAL_RIDGE = 0.1
FAMILIES: dict[str, type[Component]] = {
    family.argument: family for family in (FuzzyRules, UnlabeledPenalty, Scaling, Solver)
}
"""Kinds of components by the setting that takes them."""
LEFT_OPEN = "auto"
"""A solver that is left open."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings(Component):
    """Settings of a run; the estimators document each by the same name. Components may be given by their shorthands.

    Raises
    ------
    ValueError
        Naming the setting, its value and the rule it breaks, or what it does not go with.
    """

    basis: str = parameter("rules", one_of("rules", "wavelets"))
    n_rules: int = parameter(5, count(1, "a whole number >= 1; usual values are 3 to 20"))
    n_nodes: int = parameter(100, count(1, "a whole number >= 1; 100 is usual"))
    rules: FuzzyRules = field(default_factory=FuzzyRules)
    unlabeled: UnlabeledPenalty | None = field(default_factory=ICR)
    ridge: float | None = parameter(
        None,
        number(0, "a number > 0, or the weights are not determined; usual values are 1e-3 to 1", or_none=True),
    )
    tune: str | None = parameter(None, one_of("evidence", "loo", None))
    n_models: int | str = parameter(1, NUMBER_OF_MODELS)
    relevance: str | None = parameter(None, KIND_OF_RELEVANCE)
    effects: str | None = parameter(None, KIND_OF_EFFECTS)
    max_weights_per_label: float | None = parameter(None, WEIGHTS_PER_LABEL)
    target: str | None = parameter(None, one_of("auto", "log", None))
    scaling: Scaling = field(default_factory=RangeScaling)
    uncertainty: bool = parameter(False, TRUE_OR_FALSE)
    solver: Solver = LEFT_OPEN  # type: ignore[assignment]
    seed: int = parameter(0, count(0, "a whole number >= 0"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.solver, str) and self.solver == LEFT_OPEN:
            object.__setattr__(self, "solver", usual_solver(self.tune, self.uncertainty))
        if self.effects == "auto":
            object.__setattr__(self, "effects", "polynomials" if self.n_models in ("auto", 0) else None)
        for name, family in FAMILIES.items():
            value = getattr(self, name)
            if value is not None or name != "unlabeled":
                object.__setattr__(self, name, family.resolve(value))
        check_compatible(self)

    @property
    def penalty(self) -> UnlabeledPenalty:
        """The penalty on unlabelled rows, `NO_PENALTY` if there is none."""
        return NO_PENALTY if self.unlabeled is None else self.unlabeled

    @property
    def ridge_value(self) -> float:
        """The ridge, or the usual one where none is given."""
        return USUAL_RIDGE if self.ridge is None else float(self.ridge)

    @property
    def several_bases(self) -> bool:
        """Whether rule bases follow each other, each learning from those before."""
        return self.n_models != 1 or self.relevance is not None or self.effects is not None

    def has_effects(self, kind: str) -> bool:
        """Whether effects of this kind are asked for."""
        return self.effects in FURTHER_EFFECTS[: FURTHER_EFFECTS.index(kind) + 1]

    @property
    def most_rules(self) -> int:
        """Rules of the largest rule base; where their number is left open, of the smallest."""
        return self.n_rules if self.n_models == "auto" else self.n_rules * 2 ** (max(int(self.n_models) - 1, 0) // 2)

    def most_weights(self, n_labeled: float) -> int | None:
        """Weights that one sum over so many labels may determine; None: any number."""
        if self.max_weights_per_label is None:
            return None
        return int(self.max_weights_per_label * n_labeled + 1e-9)

    @property
    def merges_duplicates(self) -> bool:
        """Whether duplicate rows count once: where labels choose, or measure the uncertainty of a model."""
        return self.tune is not None or self.uncertainty or self.relevance == "evidence"

    @property
    def takes_relative_weights(self) -> bool:
        """Whether weights of labels compare these with each other and do not say how many there are.

        That is so where copies of a row count once: there, doubling all weights must be as doubling the table is.
        """
        return self.merges_duplicates


def usual_solver(tune: Any, uncertainty: Any) -> Solver:
    """The solver where none is asked for: sums if tuning or uncertainty need the summed statistics."""
    return Conjugate() if tune is None and uncertainty is False else Sums()


def check_compatible(settings: Settings) -> None:
    """Refuse settings that do not go together, by what every component and setting declares that it accepts.

    Raises
    ------
    ValueError
        Naming what does not go together, what would be accepted and why, and the solvers that accept it all.
    """
    for subject, accepted in _declarations(settings):
        broken = {name: rule for name, rule in accepted.items() if not rule.holds(_value(settings, name))}
        if broken:
            clashes = "; ".join(
                f"{name}={_value(settings, name)!r} (accepted: {rule.text})" for name, rule in broken.items()
            )
            remedy = _remedy(settings, subject)
            raise ValueError(f"{subject} does not go with {clashes}. Change one or the other{remedy}")


def _declarations(settings: Settings) -> Iterator[tuple[str, Mapping[str, Rule]]]:
    """What is in force, as an assignment, and the rules that it has for other settings."""
    if settings.basis == "wavelets":
        why = "there are no rules"
        yield (
            "basis='wavelets'",
            {
                "scaling": Rule(is_not_robust, f"'range', because {why}"),
                "n_models": only(1, because=why),
                "relevance": only(None, because=why),
                "effects": only(None, because=why),
                "uncertainty": only(False, because=why),
            },
        )
    for name in FAMILIES:
        component = getattr(settings, name)
        if component is not None:
            yield f"{name}={component!r}", component.accepts()
    if settings.n_models != 1:
        why = "models are weighed by what the labels say of them"
        yield f"n_models={settings.n_models!r}", {"tune": only("evidence", "loo", because=why)}
    if settings.n_models == 0:
        why = "there would be nothing to train"
        yield "n_models=0", {"effects": only(*FURTHER_EFFECTS, because=why)}
    if settings.effects is not None:
        why = "effects are weighed by what the labels say of them"
        yield f"effects={settings.effects!r}", {"tune": only("evidence", "loo", because=why)}
    if settings.target == "log":
        why = "leave-one-out errors tell how logarithms become means"
        yield "target='log'", {"tune": only("evidence", "loo", because=why)}
    if settings.tune is not None:
        why = f"tune={settings.tune!r} chooses it"
        chosen = {"ridge": only(None, because=why), "unlabeled.weight": only(None, because=why)}
        yield f"tune={settings.tune!r}", chosen


def _value(settings: Settings, name: str) -> Any:
    """A setting, or an argument of one of its components after a dot; None of a component that is not there."""
    first, _, second = name.partition(".")
    value = getattr(settings, first)
    return getattr(value, second, None) if second else value


def _remedy(settings: Settings, subject: str) -> str:
    """Other solvers that accept the rest, if it is a solver that does not."""
    if not subject.startswith("solver="):
        return ""
    others = [
        name
        for name, kind in Solver.choices.items()
        if all(rule.holds(_value(settings, asked)) for asked, rule in kind().accepts().items())
    ]
    return f", or take solver={' or '.join(map(repr, others))}" if others else ""
