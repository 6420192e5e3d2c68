"""Everything a training run can be told, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

MOST_MODELS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a run; the estimators document each by the same name.

    Raises
    ------
    ValueError
        Naming the setting, its value and the rule it breaks.
    """

    basis: str = "rules"
    n_rules: int = 5
    n_nodes: int = 100
    unlabeled: str | None = "icr"
    consistency: float = 0.1
    smoothness: float = 1e-4
    ridge: float = 0.1
    tune: str | None = None
    n_models: int | str = 1
    scaling: str = "range"
    relevance: str | None = None
    firing: str = "sum"
    uncertainty: bool = False
    fuzzifier: float = 1.1
    width_scale: float = 1.0
    width_pooling: str = "exact"
    pairs: str = "random"
    n_pairs: int | None = None
    mix_concentration: float = 0.75
    refresh_pairs: bool = False
    graph: str = "neighbors"
    n_neighbors: int = 10
    solver: str = "admm"
    rounds: str = "many"
    acceleration: str | None = "conjugate"
    relaxation: float = 1.0
    cluster_penalty: float | None = None
    penalty: float | str | None = None
    tol: float = 1e-4
    max_rounds: int = 10_000
    feature_ranges: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            rule = _RULES.get(field.name)
            if rule is not None and not rule.holds(value):
                raise ValueError(f"{field.name}={value!r} must be {rule.text}")
        if self.refresh_pairs and self.sums_for_weights:
            raise ValueError(
                f"refresh_pairs=True needs ADMM rounds to draw new pairs in, and with solver={self.solver!r}, "
                f"rounds={self.rounds!r} and tune={self.tune!r} there are none: take solver='admm', rounds='many' and "
                "tune=None, or leave it out"
            )
        if self.solver == "decentralized":
            self._check_decentralized()
        self._check_averaging()

    def _check_averaging(self) -> None:
        """Refuse what several rule bases, or one that is learnt in steps, cannot be combined with."""
        if self.n_models != 1 and self.tune is None:
            raise ValueError(
                f"n_models={self.n_models!r} needs tune: models are weighed by what the labels say of them. "
                "Take tune='evidence', or leave out n_models"
            )
        if self.uncertainty and not self.sums_for_weights:
            raise ValueError(
                f"uncertainty=True needs summed statistics, which solver={self.solver!r} does not share: take "
                "solver='exact' or tune='evidence'"
            )
        special = {"n_models": 1, "scaling": "range", "relevance": None, "uncertainty": False, "tune": None}
        plain_only = "rounds='few'" if self.rounds == "few" else "wavelets" if self.basis == "wavelets" else ""
        allowed = {"tune": ("evidence", None)} if plain_only == "rounds='few'" else {"tune": ("evidence", "loo", None)}
        for name, value in special.items() if plain_only else ():
            if getattr(self, name) not in allowed.get(name, (value,)):
                raise ValueError(f"{name}={getattr(self, name)!r} does not go with {plain_only}: leave it at {value!r}")

    def _check_decentralized(self) -> None:
        """Refuse what belongs to ADMM: agents without a coordinator agree by sums."""
        for name, value in (("penalty", None), ("cluster_penalty", None), ("relaxation", 1.0)):
            if getattr(self, name) != value:
                raise ValueError(
                    f'{name}={getattr(self, name)!r} does not go with solver="decentralized": leave it at {value!r}'
                )

    @property
    def sums_only(self) -> bool:
        """Whether agents agree by sums, and not by ADMM."""
        return self.solver in ("exact", "decentralized") or self.rounds == "few"

    @property
    def sums_for_weights(self) -> bool:
        """Whether the weights come from summed statistics: tuning needs these, and leaves nothing to agree on."""
        return self.sums_only or self.tune is not None

    @property
    def admm_for_clusters(self) -> bool:
        """Whether centers are agreed by ADMM, DFCM: because of how to accelerate, or of a penalty for it."""
        return not self.sums_only and (self.acceleration != "conjugate" or self.cluster_penalty is not None)

    @property
    def admm_for_weights(self) -> bool:
        """Whether weights are agreed by ADMM, DICR: because of how to accelerate, or of what it alone has."""
        special = self.penalty is not None or self.relaxation != 1.0 or self.redraws_pairs
        return not self.sums_for_weights and (self.acceleration != "conjugate" or special)

    @property
    def redraws_pairs(self) -> bool:
        """Whether every round of ADMM has pairs of its own."""
        return self.refresh_pairs and self.unlabeled == "icr"

    @property
    def several_bases(self) -> bool:
        """Whether rule bases follow each other, each learning from those before."""
        return self.n_models != 1 or self.relevance is not None

    @property
    def most_rules(self) -> int:
        """Rules of the largest rule base; where their number is left open, of the smallest."""
        return self.n_rules if self.n_models == "auto" else self.n_rules * 2 ** ((int(self.n_models) - 1) // 2)

    @property
    def merges_duplicates(self) -> bool:
        """Whether duplicate rows count once: where labels choose, or tell how sure a model is."""
        return self.tune is not None or self.uncertainty or self.relevance == "evidence"

    @property
    def unlabeled_weight(self) -> float:
        """Weight of the penalty on unlabelled rows."""
        return {"icr": self.consistency, "graph": self.smoothness, None: 0.0}[self.unlabeled]


@dataclass(frozen=True, slots=True)
class _Rule:
    holds: Callable[[Any], bool]
    text: str


def _number(low: float, text: str, *, strict: bool, or_none: bool = False) -> _Rule:
    def holds(value: Any) -> bool:
        if value is None:
            return or_none
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        number = float(value)
        return (number > low if strict else number >= low) and number < float("inf")

    return _Rule(holds, text)


def _count(low: int, text: str, *, or_none: bool = False) -> _Rule:
    def holds(value: Any) -> bool:
        if value is None:
            return or_none
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low

    return _Rule(holds, text)


def _one_of(*choices: str | None) -> _Rule:
    return _Rule(lambda value: value in choices, "one of " + ", ".join(map(repr, choices)))


_POSITIVE = _number(0, "a number > 0", strict=True)

_RULES = {
    "basis": _one_of("rules", "wavelets"),
    "n_rules": _count(1, "a whole number >= 1; usual values are 3 to 20"),
    "n_nodes": _count(1, "a whole number >= 1; 100 is usual"),
    "unlabeled": _one_of("icr", "graph", None),
    "consistency": _number(0, "a number >= 0; 0 ignores the interpolated pairs", strict=False),
    "smoothness": _number(0, "a number >= 0; 0 ignores the graph", strict=False),
    "ridge": _number(0, "a number > 0, or the weights are not determined; usual values are 1e-3 to 1", strict=True),
    "tune": _one_of("evidence", "loo", None),
    "n_models": _Rule(
        lambda value: value == "auto" or (_count(1, "").holds(value) and value <= MOST_MODELS),
        f"a whole number from 1 to {MOST_MODELS} (every second one has twice the rules), or 'auto' to go on while more "
        "rules help",
    ),
    "scaling": _one_of("range", "robust"),
    "relevance": _one_of("evidence", "slopes", None),
    "firing": _one_of("sum", "mean"),
    "uncertainty": _Rule(lambda value: isinstance(value, bool), "True or False"),
    "pairs": _one_of("random", "local"),
    "fuzzifier": _number(1, "a number > 1 (1 is hard clustering); usual values are 1.1 to 3", strict=True),
    "width_scale": _number(0, "a number > 0; 1 is the paper's width", strict=True),
    "width_pooling": _one_of("exact", "paper"),
    "n_pairs": _count(
        1,
        "a whole number >= 1, or None for as many as unlabelled rows (unlabeled=None uses no pairs)",
        or_none=True,
    ),
    "mix_concentration": _number(0, "a number > 0; 0.75 is the default, the paper gives none", strict=True),
    "refresh_pairs": _Rule(lambda value: isinstance(value, bool), "True or False"),
    "graph": _one_of("neighbors", "full"),
    "n_neighbors": _count(1, "a whole number >= 1; 10 is usual"),
    "solver": _one_of("admm", "exact", "decentralized"),
    "rounds": _one_of("many", "few"),
    "cluster_penalty": _number(
        0, "a number > 0, or None to follow the mean cluster mass of an agent", strict=True, or_none=True
    ),
    "acceleration": _one_of("conjugate", "anderson", None),
    "relaxation": _Rule(
        lambda value: _POSITIVE.holds(value) and value < 2, "a number > 0 and < 2; 1 is plain ADMM, 1.6 is usual"
    ),
    "penalty": _Rule(
        lambda value: value is None or value == "balanced" or _POSITIVE.holds(value),
        "a number > 0 (the paper uses 0.1), 'balanced', or None for one from the curvature of the problem",
    ),
    "tol": _number(0, "a number > 0; 1e-4 is usual", strict=True),
    "max_rounds": _count(1, "a whole number >= 1"),
    "seed": _count(0, "a whole number >= 0"),
}
