"""Interpolation consistency regularisation, the penalty of the paper's SFR-ICR."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.features.basis import Basis
from dsfr.core.penalties.interpolation_consistency import MAX_DEFAULT_PAIRS, POOL_ROWS, PairDraw, gap_gram, near_pairs
from dsfr.core.scaling.affine import scale_features
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.component import Rule, count, number, one_of, parameter
from dsfr.training.penalties.penalty import UnlabeledPenalty
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import Field, Fields, optional
from dsfr.training.tasks.declaration import Rule as ValueRule
from dsfr.training.tasks.declaration import number as real
from dsfr.training.tasks.fields import FLAG, SMALL_OR_LARGE
from dsfr.training.tasks.messages import scalar, scaling_ranges
from dsfr.training.tasks.symbols import Sizes, size_of

AS_MANY_AS_ROWS = -1
"""Number of pairs that stands for the number of unlabelled rows, up to a maximum."""
MAX_PAIRS = 1_000_000
"""Pairs of unlabelled rows that an agent draws at most."""
MAX_PAIR_WORK = 1e12
"""Pairs times squared weights at most: the multiplications of their Gram matrix."""


def _pairs_are_affordable(values: npt.NDArray[Any], bundle: Bundle, sizes: Sizes) -> bool:
    n_pairs = int(values)
    n_weights = size_of("p", sizes) or int(bundle.get("n_nodes", np.asarray(1)))
    return 1 <= n_pairs <= MAX_PAIRS and float(n_pairs) * n_weights**2 <= MAX_PAIR_WORK


AFFORDABLE = f"1 to {MAX_PAIRS}, and times the squared number of weights at most {MAX_PAIR_WORK:g}"
MOST_PAIRS = ValueRule(AFFORDABLE, _pairs_are_affordable)
PAIRS = ValueRule(
    f"{AS_MANY_AS_ROWS} (as many as rows) or {AFFORDABLE}",
    lambda values, bundle, sizes: int(values) == AS_MANY_AS_ROWS or _pairs_are_affordable(values, bundle, sizes),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class ICR(UnlabeledPenalty):
    """Interpolation consistency: predictions between two unlabelled rows should lie between their predictions.

    ``P = B'B`` with one row ``H(mix u + (1 - mix) v) - mix H(u) - (1 - mix) H(v)`` for every pair of rows u, v.

    Parameters
    ----------
    weight : float, default=None
        Weight of the penalty (gamma in the paper). None: 0.1, or what ``tune`` chooses.
    n_pairs : int, default=None
        Pairs per agent, used raw as in the paper. None: as many as the agent has unlabelled rows, at most
        ``most_pairs``.
    most_pairs : int, default=10000
        Most pairs per agent where ``n_pairs`` is None; the penalty is rescaled, so that it estimates that of as many
        pairs as rows.
    pairs : {"random", "local"}, default="random"
        Pairs of any two rows; or of near ones, which penalises local bends only. The penalty is rescaled, so that a
        model of constant curvature pays about the same for both.
    mix_concentration : float, default=0.75
        Mixing shares are drawn from Beta(mix_concentration, mix_concentration).
    """

    shorthand: ClassVar[str] = "icr"
    key: ClassVar[str] = "n_pairs"
    default_weight: ClassVar[float] = 0.1
    is_drawn: ClassVar[bool] = True
    fields: ClassVar[Fields] = {
        "n_pairs": optional(Field((), (PAIRS,), "int64")),
        "most_pairs": Field((), (MOST_PAIRS,), "int64", beside="n_pairs"),
        "mix_concentration": replace(real(*SMALL_OR_LARGE), beside="n_pairs"),
        "near": optional(FLAG, beside="n_pairs"),
    }

    n_pairs: int | None = parameter(
        None, count(1, "a whole number >= 1, or None for as many as unlabelled rows", or_none=True)
    )
    most_pairs: int = parameter(
        MAX_DEFAULT_PAIRS,
        Rule(lambda value: count(1, "").holds(value) and value <= MAX_PAIRS, f"a whole number from 1 to {MAX_PAIRS}"),
    )
    pairs: str = parameter("random", one_of("random", "local"))
    mix_concentration: float = parameter(0.75, number(0, "a number > 0; 0.75 is the default, the paper gives none"))

    @property
    def concentration(self) -> float:
        """Concentration of the mixing shares."""
        return self.mix_concentration

    @property
    def has_near_pairs(self) -> bool:
        """Whether pairs of near rows are compared."""
        return self.pairs == "local"

    def message(self) -> Bundle:
        """Number of pairs, concentration of the mixing shares, and whether pairs are near ones."""
        n_pairs = AS_MANY_AS_ROWS if self.n_pairs is None else self.n_pairs
        near = {"near": scalar(1.0)} if self.has_near_pairs else {}
        return {
            "n_pairs": np.asarray(n_pairs, dtype=np.int64),
            "most_pairs": np.asarray(self.most_pairs, dtype=np.int64),
            "mix_concentration": scalar(self.mix_concentration),
            **near,
        }

    @classmethod
    def from_message(cls, broadcast: Bundle) -> Self:
        """The penalty of a broadcast."""
        n_pairs = int(broadcast["n_pairs"])
        return cls(
            n_pairs=None if n_pairs == AS_MANY_AS_ROWS else n_pairs,
            most_pairs=int(broadcast["most_pairs"]),
            pairs="local" if "near" in broadcast else "random",
            mix_concentration=float(broadcast["mix_concentration"]),
        )

    def gram(self, shard: Shard, memory: Bundle, broadcast: Bundle, basis: Basis, repeat: int = 0) -> Array:
        """``B'B`` of freshly drawn pairs: their numbers are drawn first, so that one pass finds the rows."""
        n_unlabeled = shard.n_samples - shard.rows.n_labeled
        draw = PairDraw(self.n_pairs, self.mix_concentration, self.most_pairs)
        rng = shard.rng(int(memory["seed"]), Purpose.PAIRS, repeat or int(broadcast.get("variation", 0)))
        pairs = draw.pairs(n_unlabeled, rng)
        near = self.has_near_pairs and n_unlabeled > 0
        pool = rng.integers(n_unlabeled, size=POOL_ROWS) if near else np.empty(0, dtype=np.int64)
        wanted, pairs, pool = pairs.compact(pool)
        X = scale_features(shard.picked(wanted, unlabeled=True), scaling_ranges(memory, broadcast))
        factor = draw.weight(n_unlabeled)
        with single_threaded_blas():
            if near:
                pairs, rescaling = near_pairs(X, pairs, pool, broadcast.get("stretch"))
                factor *= rescaling
            return factor * gap_gram(X, pairs, basis)

    def expected_pairs(self, n_unlabeled: float, n_agents: int) -> float:
        """Pairs of all agents."""
        return n_unlabeled if self.n_pairs is None else n_agents * float(self.n_pairs)

    def drawn_pairs(self, n_unlabeled: int) -> int:
        """Pairs of one agent."""
        return min(n_unlabeled, self.most_pairs) if self.n_pairs is None else self.n_pairs

    def alternative(self) -> Self:
        """Near pairs for random ones, and the other way round."""
        return replace(self, pairs="random" if self.has_near_pairs else "local")
