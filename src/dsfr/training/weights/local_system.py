"""An agent's own system of the weights: its pairs, which may be drawn again, and its factor."""

from __future__ import annotations

from dataclasses import replace

from dsfr.core.consensus.preconditioner import Preconditioner
from dsfr.core.solve.cholesky import cholesky
from dsfr.storage.bundles import Bundle
from dsfr.training.penalties import ICR, penalty_in
from dsfr.training.scaling.survey import KEPT_SCALING
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Fields, array
from dsfr.training.tasks.fields import BASIS, POSITIVE, PROBLEM, UNLABELED_WEIGHT
from dsfr.training.tasks.messages import scalar, unpack_basis
from dsfr.training.tasks.registry import KEYS, remember

_DRAWN_BY = {**ICR.fields, **{name: PROBLEM[name] for name in ("stretch", "variation")}}
_PAIRS = {name: replace(field, beside="") for name, field in _DRAWN_BY.items()} | {"unlabeled_weight": UNLABELED_WEIGHT}
KEPT_PAIRS = remember(__name__, {"gram": array("p", "p"), **_PAIRS}, transient=True)
"""What new pairs are drawn by, and added to."""
KEPT_FACTOR = remember(__name__, {"weight_penalty": POSITIVE, "weight_factor": array("p", "p")}, transient=True)
"""The factor of the agent's own system, and the penalty it is of."""
NEEDED_TO_REDRAW: Fields = {
    **{
        name: replace(KEYS[name].field, beside="redraw", is_optional=False)
        for name in (*KEPT_SCALING, "gram", "unlabeled_weight", "n_pairs", "mix_concentration")
    },
    **{name: replace(BASIS[name], beside="redraw") for name in ("centers", "widths")},
}


def redraw_pairs(shard: Shard, memory: Bundle, round_number: int) -> Bundle:
    """New pairs as Algorithm 2 has them; the factor is of the old ones and goes."""
    gaps = penalty_in(memory).gram(shard, memory, memory, unpack_basis(memory), repeat=round_number)
    curvature = memory["gram"] + float(memory["unlabeled_weight"]) * gaps
    kept = {name: array for name, array in memory.items() if name != "weight_factor"}
    return {**kept, "curvature": curvature}


def factorized(memory: Bundle, penalty: float) -> Bundle:
    """Memory with the factor of the agent's own system under this penalty."""
    if "weight_factor" in memory and float(memory["weight_penalty"]) == penalty:
        return memory
    factor = cholesky(memory["curvature"] + penalty * Preconditioner(memory["root"]).matrix)
    return {**memory, "weight_factor": factor, "weight_penalty": scalar(penalty)}
