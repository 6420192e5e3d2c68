"""Leave-one-out errors of an average on the target's own scale, whatever scale is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.prediction.link import Link, mean_factor
from dsfr.core.scaling.affine import LARGEST_FLOAT
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.ensemble.calibration import label_weights, labeled_sample
from dsfr.training.ensemble.members import Base, left_out_rows, mixture_message
from dsfr.training.scaling.robust import KEPT_LIMITS
from dsfr.training.scaling.survey import Population
from dsfr.training.shard import LOG_TARGET, Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import ASCENDING, COUNT, MIXTURE_WITH_FACTORS, POSITIVE, SCORE
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import task


@task(
    verb="sum",
    stage="averaging",
    reveals="How well the labels of others predict the agent's: products of leave-one-out predictions and targets. "
    "With a target that may be learnt as its logarithm, or with labels far off.",
    broadcast={
        **MIXTURE_WITH_FACTORS,
        "value_limits": array(2, rules=(ASCENDING,)),
        "usual": array(2, rules=(ASCENDING,)),
        "unit": POSITIVE,
    },
    contributes={"error": SCORE, "usual_error": SCORE, "product": array(), "square": SCORE, "n_labeled": COUNT},
    needs=("seed",),
    recalls=(*KEPT_LIMITS, "label_groups"),
    limited=False,
)
def original_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared leave-one-out errors of the average on the target's own scale, in a unit of it.

    Of logarithms, predictions are their exponentials, without a factor; products with the targets tell the best one.
    Errors of targets within given limits, in the same unit, are summed apart.
    """
    labels = labeled_sample(shard, int(memory["seed"]))
    sample, weights, y = Shard(labels, shard.key).within_limits(memory), label_weights(labels), labels.y
    averages = [rows.averages(broadcast["shares"]) for rows in left_out_rows(sample, memory, broadcast)]
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    values = np.clip(mean + scale * np.concatenate([np.empty(0), *averages]), *broadcast["value_limits"])
    unit = float(broadcast["unit"])
    predicted, targets = values / unit, y / unit
    if LOG_TARGET in memory:
        predicted, targets = np.exp(values - np.log(unit)), np.exp(y - np.log(unit))
    low, high = broadcast["usual"]
    squares = weights * (targets - predicted) ** 2
    return memory, {
        "error": scalar(float(squares.sum())),
        "usual_error": scalar(float(squares[(low <= targets) & (targets <= high)].sum())),
        "product": scalar(float((weights * targets) @ predicted)),
        "square": scalar(float((weights * predicted) @ predicted)),
        "n_labeled": scalar(weights.sum()),
    }


@dataclass(frozen=True, slots=True)
class OwnErrors:
    """Sums over labels on the target's own scale, in a unit of it."""

    error: float
    usual: float
    """Error of the labels within the limits that were asked for."""
    product: float
    square: float
    n: float

    @property
    def factor(self) -> float:
        """On exponentials of logarithms."""
        return mean_factor(self.product, self.square, self.n)

    def error_with(self, factor: float) -> float:
        """Squared error of predictions times a factor."""
        return self.error + 2.0 * (1.0 - factor) * self.product - (1.0 - factor**2) * self.square


def own_errors(
    engine: Engine,
    population: Population,
    bases: Sequence[Base],
    shares: Array,
    link: Link,
    unit: float,
    usual: Array | None = None,
) -> OwnErrors:
    """Of the average of members by these shares; errors of targets within ``usual`` limits are summed apart."""
    message = {
        **mixture_message(population, bases, shares),
        "value_limits": np.array([link.low, link.high]),
        "usual": np.array([-LARGEST_FLOAT, LARGEST_FLOAT]) if usual is None else usual / unit,
        "unit": scalar(unit),
    }
    summed = engine.sum("original_errors", message)
    numbers = (float(summed[name]) for name in ("error", "usual_error", "product", "square", "n_labeled"))
    return OwnErrors(*numbers)
