"""Several rule bases, one after the other: each learns from those before which features matter.

A rule base is trained as ever, on features stretched by their relevance; then agents add up how steep its model is
along each feature, and the next one is clustered accordingly. Stretching moves centers and widths only: lines keep the
features' own scale, and a rule base is an ordinary one in the end. Steps come in pairs of different widths and kinds of
pairs; every two, the number of rules doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.stacking import LeftOut, tempered_shares
from dsfr.core.solve.evidence import Tuned
from dsfr.core.solve.leave_one_out import left_out_residuals
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.clustering.clusters import Variation, agree_rules, cluster_scale
from dsfr.training.ensemble.relevance import agree_polynomial, mean_square_slopes, stretch
from dsfr.training.rounds import Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import COUNT, MIXTURE_WITH_FACTORS, SCORE
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.semidefinite import GRAM
from dsfr.training.weights.leave_one_out import LabelGroups, labeled_blocks
from dsfr.training.weights.problem import Solution
from dsfr.training.weights.weights import agree_weights

WIDER = 2.25
"""Factor on the widths in every second step."""
SURE_STEPS = 6
"""Steps that are always taken where their number is left open: three numbers of rules."""
MOST_STEPS = 12
MOST_WEIGHTS = 500
"""More rules are not tried where their number is left open and they would need more weights."""
RELEVANCE_STEPS = 3
"""Rule bases of the same kind until the relevances of a single model have settled."""


@dataclass(frozen=True, slots=True)
class Base:
    """A trained rule base."""

    settings: Settings
    rules: Rules
    shares: Array
    converged: bool
    found: Solution
    cluster_scale: float
    """Width of its sets over the deviation of their clusters."""
    mean_square_slopes: Array
    """Of its model along each feature, over all rows; ones where relevances are not asked for."""

    @property
    def score(self) -> float:
        """What the labels say of it, on the scale of a log evidence."""
        tuned, total = self.found.tuned, self.found.statistics
        if tuned is None or total is None:
            return 0.0
        if tuned.loo_error is None:
            return tuned.log_evidence
        return -total.n_labeled * float(np.log(max(tuned.loo_error, np.finfo(np.float64).tiny)))

    @property
    def tuned(self) -> Tuned | None:
        """What was chosen from the labels."""
        return self.found.tuned


def agree_bases(
    engine: Engine, settings: Settings, population: Population, observe: Observer
) -> tuple[list[Base], Array]:
    """Rule bases and their shares in the average of their predictions."""
    trained: list[Base] = []
    curvature = agree_polynomial(engine, settings, population)
    for step in _steps(settings, len(population.ranges.low), trained):
        variation = Variation(len(trained), _stretch(settings, trained, curvature))
        trained.append(_agree_base(engine, step, population, variation, observe))
        if trained[-1].tuned is None and settings.tune is not None:  # the labels do not vary: nothing can be learnt
            return trained[-1:], np.ones(1)
    if settings.n_models == 1:
        best = trained[-1] if settings.tune is None else max(trained, key=lambda base: base.score)
        return [best], np.ones(1)
    return trained, _shares(engine, settings, population, trained)


def _agree_base(
    engine: Engine, settings: Settings, population: Population, variation: Variation, observe: Observer
) -> Base:
    def noted(info: RoundInfo) -> None:
        observe(replace(info, base=variation.number))

    varied = varied_message(population, variation)
    with single_threaded_blas():
        rules, shares, converged = agree_rules(engine, settings, population, noted, variation)
        found = agree_weights(engine, settings, rules, population, noted, varied)
    mean_squares = mean_square_slopes(engine, {**rules.arrays(), **varied, "weights": found.weights}, settings)
    stretched = np.ones(len(population.ranges.low)) if variation.stretch is None else variation.stretch
    return Base(settings, rules, shares, converged, found, cluster_scale(settings, stretched), mean_squares)


def varied_message(population: Population, variation: Variation) -> Bundle:
    """What agents must know of a rule base beside its rules: the ranges of its lines, its number and its stretch."""
    stretch = {} if variation.stretch is None else {"stretch": variation.stretch}
    return {**pack(population.ranges), **stretch, "variation": np.asarray(variation.number, dtype=np.int64)}


def _steps(settings: Settings, n_features: int, trained: list[Base]) -> Iterator[Settings]:
    """Settings of one rule base after the other; what has been trained decides how long it goes on."""
    if settings.n_models == 1:
        yield from [settings] * (1 if settings.relevance is None else RELEVANCE_STEPS)
        return
    most = MOST_STEPS if settings.n_models == "auto" else int(settings.n_models)
    rules = settings.rules
    for step in range(most):
        rung, second = divmod(step, 2)
        n_rules = settings.n_rules * 2**rung  # as `Settings.most_rules` has it
        if settings.n_models == "auto" and not second and rung:
            too_many = n_rules * (n_features + 1) > MOST_WEIGHTS
            if too_many or (step >= SURE_STEPS and not _still_better(trained)):
                return
        yield replace(
            settings,
            n_rules=n_rules,
            rules=replace(rules, width_scale=WIDER * rules.width_scale) if second else rules,
            unlabeled=settings.unlabeled and settings.unlabeled.alternative() if second else settings.unlabeled,
        )


def _still_better(trained: list[Base]) -> bool:
    """Whether the last number of rules was better than all before."""
    newest, before = (max(base.score for base in bases) for bases in (trained[-2:], trained[:-2]))
    return newest > before


def _stretch(settings: Settings, trained: list[Base], curvature: Array | None) -> Array | None:
    """Relevances by curvature and by the models so far, weighed as in their average; without tuning, by the last.

    By bends alone in every first step of two, where these are known: which is better depends on the table.
    """
    if settings.relevance is None:
        return None
    if not trained or (curvature is not None and len(trained) % 2 == 0):
        return curvature
    total = trained[-1].found.statistics
    scores = np.array([base.score for base in trained])
    shares = tempered_shares(scores, total.n_labeled if total is not None else 1.0)
    if settings.tune is None:
        shares = np.append(np.zeros(len(trained) - 1), 1.0)
    return stretch(curvature, [base.mean_square_slopes for base in trained], shares)


def _shares(engine: Engine, settings: Settings, population: Population, trained: list[Base]) -> Array:
    """By evidence; or stacked on leave-one-out predictions, in one more round."""
    scores = np.array([base.score for base in trained])
    total = trained[0].found.statistics
    if settings.tune != "loo" or total is None:
        return tempered_shares(scores, total.n_labeled if total is not None else 1.0)
    message = mixture_message(population, trained, np.full(len(trained), 1.0 / len(trained)))
    return unpack(LeftOut, engine.sum("stack", message)).shares()


@task(
    verb="sum",
    stage="averaging",
    reveals="How well the labels of others predict the agent's: products of leave-one-out predictions. With "
    '`tune="loo"` and several models.',
    broadcast=MIXTURE_WITH_FACTORS,
    contributes={
        "products": array("m", "m", rules=(GRAM,)),
        "moment": array("m"),
        "target_square": SCORE,
        "n": COUNT,
    },
    recalls=("label_groups",),
)
def stack(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of the leave-one-out predictions of all rule bases with each other and the targets."""
    m = len(broadcast["shares"])
    sums = LeftOut(np.zeros((m, m)), np.zeros(m), 0.0, 0.0)
    for predictions, y in left_out_predictions(shard, memory, broadcast):
        sums = LeftOut(
            sums.products + predictions.T @ predictions,
            sums.moment + predictions.T @ y,
            sums.target_square + float(y @ y),
            sums.n + len(y),
        )
    return memory, pack(sums)


def mixture_message(
    population: Population, trained: Sequence[Base], shares: Array, *, with_factors: bool = True
) -> Bundle:
    """All rule bases of a mixture, for agents to predict with, and with the factors of their systems to leave out."""
    message = {
        **pack(population.ranges),
        "target_mean": scalar(population.target.mean),
        "target_scale": scalar(population.target.deviation),
        "shares": shares,
    }
    for i, base in enumerate(trained):
        factor = {"factor": base.found.factor()} if with_factors else {}
        arrays = {**base.rules.arrays(), "weights": base.found.weights, **factor}
        message |= {f"{name}_{i}": array for name, array in arrays.items()}
    return message


def base_message(broadcast: Bundle, number: int) -> Bundle:
    """One rule base of a `mixture_message`, with what all have in common."""
    common = ("low", "high", "target_mean", "target_scale")
    own = ("centers", "widths", "membership", "weights", "factor")
    arrays = {name: broadcast[f"{name}_{number}"] for name in own if f"{name}_{number}" in broadcast}
    return {name: broadcast[name] for name in common} | arrays


def left_out_predictions(shard: Shard, memory: Bundle, broadcast: Bundle) -> Iterator[tuple[Array, Array]]:
    """Leave-one-out predictions by every rule base (one column each) and targets of labelled rows, block by block."""
    bases = [base_message(broadcast, i) for i in range(len(broadcast["shares"]))]
    groups = [LabelGroups.of(shard, memory, base, base["weights"][:, None]) for base in bases]
    passed = 0
    for blocks in zip(*(labeled_blocks(shard, memory, base) for base in bases), strict=True):
        y = blocks[0][1]
        together = [None if own is None else own.together(passed, passed + len(y), 0) for own in groups]
        columns = [
            y - left_out_residuals(H, y, base["factor"], base["weights"], others)
            for (H, _), base, others in zip(blocks, bases, together, strict=True)
        ]
        passed += len(y)
        yield np.stack(columns, axis=1), y
