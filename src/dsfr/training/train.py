"""The whole conversation, from first contact to a predictor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.solve.evidence import Tuned
from dsfr.engines import Engine
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.changed_rows import IncompleteRowsError
from dsfr.training.completion import agree_density
from dsfr.training.duplicates import duplicates
from dsfr.training.ensemble import calibration, rule_bases, target_scale
from dsfr.training.ensemble.members import Base
from dsfr.training.label_sums import LabelSums
from dsfr.training.rounds import CLUSTERS, WEIGHTS
from dsfr.training.scaling import robust, survey
from dsfr.training.scaling.checks import warn_of_many_rules
from dsfr.training.settings import Settings
from dsfr.training.shard import Purpose
from dsfr.training.tasks.checked_engine import checked
from dsfr.training.weights import weights


@dataclass(frozen=True, slots=True)
class Training:
    """A trained mixture of predictors and how it came about."""

    mixture: Mixture
    history: list[RoundInfo]
    unconverged: tuple[str, ...]
    """Stages that ended at ``max_rounds``."""
    n_samples: int
    n_labeled: int
    tuned: Tuned | None = None
    """Weight, ridge and noise that were chosen from the labels, if asked for; of the strongest of several models."""
    models: tuple[dict[str, float], ...] = ()
    """What sets each of several models apart, and its part in the average."""
    cluster_scales: tuple[float, ...] = ()
    """Of every member of the mixture, the width of its sets over the deviation of their clusters."""
    odd_target: tuple[float, float] | None = None
    """A target that is hardly meant as it stands, and what it counted as."""
    own_units: tuple[float, float] | None = None
    """Mean and deviation of the labels on the target's own scale, where that is not the scale of learning for sure."""
    n_target_values: int | None = None
    """Different labels, if they are few and were counted."""
    copies: dict[str, Predictor] = field(default_factory=dict)
    """Without a coordinator: the predictor of every agent of this process; all are equal to ``predictor``."""
    optimism: float = 1.0
    """Factor by which leave-one-out errors are too small, because what was chosen saw all labels."""
    error: tuple[float, float] | None = None
    """Mean squared leave-one-out error, in variances of the target, and the number of labels, where sums alone leave
    the agents and several models were weighed."""
    n_duplicates: int = 0
    """Rows that were left out as duplicates of others."""
    sample: float | None = None
    """Share of the rows that means over rows were taken of, where it is known how many rows are different."""
    sums: LabelSums | None = None
    """Sums over labels to which more can be added; None if the solver does not sum them."""
    labels_vary: bool = True
    """Whether there are two different labels."""
    ending: str = "converged"
    """What `termination` says if no stage ended at ``max_rounds``."""

    @property
    def predictor(self) -> Predictor:
        """The predictor with the largest share."""
        return self.mixture.strongest

    @property
    def termination(self) -> str:
        """``"converged"``, ``"max_rounds"``, or the `Solver.ending` of a solver that does not measure its error."""
        return "max_rounds" if self.unconverged else self.ending


def train(engine: Engine, settings: Settings, on_round: Callable[[RoundInfo], None] | None = None) -> Training:
    """Train over all agents of an engine; ``on_round`` is called after every round of clustering and solving.

    Raises
    ------
    ValueError
        If no agent has a labelled row, the system of the weights is singular, or the engine has a coordinator
        and the training is to have none.
    """
    checked_engine = checked(engine)
    settings.solver.check_engine(checked_engine)
    _check_sums_suffice(checked_engine, settings)
    try:
        return _train(checked_engine, settings, on_round)
    except IncompleteRowsError:
        density = agree_density(checked_engine, settings)
    # Agents complete their rows by it from here on, and everything begins again.
    checked_engine.takes_incomplete = True
    trained = _train(checked_engine, settings, on_round)
    return replace(trained, mixture=replace(trained.mixture, density=density))


def _train(engine: Engine, settings: Settings, on_round: Callable[[RoundInfo], None] | None) -> Training:
    """Train on complete rows.

    Raises
    ------
    IncompleteRowsError
        If there are none, before anything is computed.
    """
    history: list[RoundInfo] = []

    def observe(info: RoundInfo) -> None:
        history.append(info)
        if on_round is not None:
            on_round(info)

    # Counts of duplicates single out rows, and so are not among the sums that may leave an agent alone.
    merges = settings.merges_duplicates and not engine.only_sums
    repeated = duplicates.agree_duplicates(engine, settings) if merges else duplicates.Repetition()
    averaged = settings.several_bases or settings.uncertainty or settings.target == "log"
    if averaged:
        with single_threaded_blas():
            trained = _train_mixture(engine, settings, repeated.sample, history, observe)
    else:
        trained = _train_single(engine, settings, history, observe)
    # Without a coordinator every agent has all sums, to the bit, and computes the same model: once stands for all.
    holders = () if engine.has_coordinator else (name for name in engine.own_agents if name in engine.present)
    copies = {name: replace(trained.predictor) for name in holders}
    ending = settings.solver.ending if engine.n_agents > 1 else "converged"
    return replace(trained, copies=copies, n_duplicates=repeated.n_duplicates, ending=ending)


def _check_sums_suffice(engine: Engine, settings: Settings) -> None:
    """Refuse settings that need more than sums of an engine that gives sums alone."""
    if engine.only_sums and (settings.uncertainty or settings.tune == "loo"):
        asked = "uncertainty=True" if settings.uncertainty else 'tune="loo"'
        raise ValueError(
            f"{asked} needs leave-one-out errors, for which the pooled system is handed to every agent, and on this "
            'engine sums alone leave them: take uncertainty=False and tune="evidence" or None'
        )


def _train_single(
    engine: Engine, settings: Settings, history: list[RoundInfo], observe: Callable[[RoundInfo], None]
) -> Training:
    """One basis and its weights."""
    with single_threaded_blas():
        population, basis, shares, clustered = _agree_basis(engine, settings, observe)
    found = weights.agree_weights(engine, settings, basis, population, observe, shares=shares)
    stages = ((CLUSTERS, clustered), (WEIGHTS, found.converged))
    units = (population.target_mean, population.target_scale)
    predictor = Predictor(population.ranges, basis, found.weights, *units, shares, population.limits)
    return Training(
        mixture=replace(
            Mixture.of(predictor), link=target_scale.hold(settings, population), density=population.density
        ),
        history=history,
        unconverged=tuple(stage for stage, done in stages if not done),
        n_samples=int(population.n_samples),
        n_labeled=int(population.n_labeled),
        tuned=found.tuned,
        odd_target=population.odd_target,
        sums=LabelSums.of([found], population),
        labels_vary=population.target.varies,
    )


def _train_mixture(
    engine: Engine,
    settings: Settings,
    sample: float | None,
    history: list[RoundInfo],
    observe: Callable[[RoundInfo], None],
) -> Training:
    """Rule bases one after the other, averaged; and how sure their average is."""
    target = target_scale.agree_target(engine, settings, sample)
    population = target.population
    warn_of_many_rules(settings, population.n_samples)
    trained, weighed = rule_bases.agree_bases(engine, settings, population, target.effects.all_members, observe)
    shares = weighed.shares
    strongest = trained[int(shares.argmax())]
    agreed = calibration.agreement(engine, population, trained, shares) if len(trained) > 1 else np.ones(1)
    sure, is_log = settings.uncertainty, target.link.is_log
    mixture = calibration.calibrate(engine, population, trained, weighed, sure=sure, is_log=is_log)
    link = target_scale.final_link(engine, target, trained, weighed, mixture.scores)
    done = {
        CLUSTERS: all(base.converged for base in trained),
        WEIGHTS: all(base.found.converged for base in trained),
    }
    return Training(
        mixture=replace(mixture, link=link, density=population.density),
        own_units=(target.own_mean, target.own_deviation),
        n_target_values=target.effects.n_target_values,
        history=history,
        unconverged=tuple(stage for stage, converged in done.items() if not converged),
        n_samples=int(population.n_samples),
        n_labeled=int(population.n_labeled),
        tuned=strongest.tuned,
        odd_target=None if link.is_log else population.odd_target,
        optimism=weighed.optimism,
        error=weighed.error,
        sums=LabelSums.of([base.found for base in trained], population),
        labels_vary=population.target.varies,
        sample=population.sample,
        cluster_scales=tuple(base.cluster_scale for base in trained),
        models=tuple(map(_described, trained, shares.tolist(), agreed.tolist())) if len(trained) > 1 else (),
    )


def _described(base: Base, share: float, agreed: float) -> dict[str, float]:
    found = base.found
    return {
        "share": share,
        "agreement": agreed,
        "n_rules": base.basis.n_rules,
        "width_scale": base.settings.rules.width_scale,
        "near_pairs": float(base.settings.penalty.has_near_pairs),
        "ridge": found.ridge,
        "unlabeled_weight": found.unlabeled_weight,
        "score": base.score,
    }


def _agree_basis(
    engine: Engine, settings: Settings, observe: Callable[[RoundInfo], None]
) -> tuple[survey.Population, Rules | Wavelets, Array, bool]:
    """Population, basis, shares of the rules, and whether clustering has converged (or was not asked to)."""
    if settings.basis == "wavelets":
        population = robust.agree_scaling(engine, settings)
        rng = np.random.default_rng([settings.seed, 0, Purpose.NODES])
        return population, Wavelets.draw(settings.n_nodes, len(population.ranges.low), rng), np.empty(0), True
    return settings.solver.agree_basis(engine, settings, observe)
