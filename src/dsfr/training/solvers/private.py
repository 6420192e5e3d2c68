"""Two noisy sums: rules from the moments of the rows, and weights from their statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterVariances, fuzzy_c_means, seed_centers
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules, rule_widths
from dsfr.core.scaling.affine import Moments
from dsfr.core.solve.statistics import Quadratic, solve_weights
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.component import Rule, only
from dsfr.training.legs import Leg, Shape
from dsfr.training.rounds import WEIGHTS, Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.shard import Purpose
from dsfr.training.solvers.solver import Solver
from dsfr.training.tasks.fields import MAX_STEPS
from dsfr.training.tasks.messages import pack
from dsfr.training.weights.clipped import VARIANCE
from dsfr.training.weights.problem import Problem, Solution

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

N_DRAWN = 4096
"""Rows that are drawn from the normal distribution of the rows' moments, and clustered."""
SMALLEST_VARIANCE = 1e-4
"""Of the drawn rows along any axis, in units of half a range: noise may leave less than nothing."""


@dataclass(frozen=True, kw_only=True, repr=False)
class PrivateSums(Solver):
    """Two sums with noise of differential privacy, for owners whose policy has an ``epsilon``.

    Rules are clusters of rows that are drawn from the noisy mean and covariance of all rows, so clustering asks owners
    nothing. Weights come from noisy statistics of the labels; their ridge is at least half the usual size of the noise.
    """

    shorthand: ClassVar[str] = "private-sums"
    usual_rounds: ClassVar[tuple[int, int] | None] = None

    def accepts(self) -> Mapping[str, Rule]:
        """Nothing that asks owners for more than two sums."""
        why = "owners with an epsilon answer two noisy sums, and nothing else"
        alone = {name: only(None, because=why) for name in ("tune", "relevance", "unlabeled")}
        return {**alone, "n_models": only(1, because=why), "uncertainty": only(False, because=why)}

    def check_engine(self, engine: Engine) -> None:
        """Refuse engines whose owners add no noise.

        Raises
        ------
        ValueError
            If more than sums leave the agents.
        """
        if not engine.only_sums:
            raise ValueError(
                'solver="private-sums" needs owners that add noise: '
                "engine=InProcess(policy=Policy(epsilon=...), masks=True)"
            )

    def agree_basis(
        self, engine: Engine, settings: Settings, observe: Observer
    ) -> tuple[Population, Rules, Array, bool]:
        """Population and rules from one noisy sum."""
        ranges, target = settings.scaling.declared, settings.scaling.declared_target
        if ranges is None or target is None or settings.basis != "rules":
            raise ValueError(
                'solver="private-sums" needs rules and declared ranges: scaling=RangeScaling(lower=[...], '
                "upper=[...], target_range=(lowest, highest))"
            )
        message = {"seed": np.asarray(settings.seed, dtype=np.int64), **pack(ranges)}
        found = engine.sum("clipped_moments", message)
        rules, shares = _rules(found, settings)
        low, high = target
        middle, unit = low / 2.0 + high / 2.0, high / 2.0 - low / 2.0
        n_labeled = float(found["n_labeled"])
        # As if targets had the middle of their range as mean, and half its length as deviation: these are declared.
        moments = Moments(n_labeled, 0.0, n_labeled, middle, unit)
        population = Population(
            ranges, moments, float(found["n_samples"]), 0.0, n_labeled, limits=ranges, target_ends=(low, high)
        )
        return population, rules, shares, True

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights from one noisy sum."""
        names = ("centers", "widths", "membership", "target_mean", "target_scale")
        asked = {name: problem.broadcast[name] for name in names if name in problem.broadcast}
        found = problem.engine.sum("clipped_statistics", asked)
        products = _square(found["products"])
        gram, moment = _without_negative(products[:-1, :-1]), products[:-1, -1]
        n_weights = len(moment)
        # The largest eigenvalue of the noise is about its deviation times the root of 2p.
        ridge = max(problem.settings.ridge_value, float(np.sqrt(found[VARIANCE] * n_weights / 2.0)))
        weights = solve_weights(Quadratic(gram, moment, 0.0), ridge)
        objective = float(weights @ (gram @ weights / 2.0 - moment) + ridge / 2.0 * weights @ weights)
        problem.observe(RoundInfo(WEIGHTS, 1, objective, 0.0, 0.0, 0.0))
        return Solution(weights, ridge=ridge)

    def basis_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """One round of moments."""
        yield shape.leg("clipped_moments", 1)

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """One round of statistics."""
        yield shape.leg("clipped_statistics", 1)


def _rules(found: Bundle, settings: Settings) -> tuple[Rules, Array]:
    """Clusters of rows with these moments, and their shares."""
    rng = np.random.default_rng([settings.seed, 0, Purpose.START])
    second = _square(found["products"]) / float(found["n_samples"])
    mean = np.clip(second[0, 1:], -1.0, 1.0)
    values, axes = np.linalg.eigh(second[1:, 1:] - np.outer(mean, mean))
    root = (axes * np.sqrt(np.maximum(values, SMALLEST_VARIANCE))) @ axes.T
    X = np.clip(mean + rng.standard_normal((N_DRAWN, len(mean))) @ root, -1.0, 1.0)
    fuzzifier = settings.rules.fuzzifier
    start = seed_centers(X, settings.n_rules, rng)
    centers = fuzzy_c_means(X, start, fuzzifier=fuzzifier, tol=settings.solver.tol, max_rounds=MAX_STEPS)
    spread = ClusterVariances.of(X, centers, fuzzifier)
    widths = rule_widths(spread.variances, settings.rules.width_scale)
    return Rules(centers, widths, settings.rules.membership), spread.mass / spread.mass.sum()


def _square(triangle: Array) -> Array:
    """The symmetric matrix of an upper triangle."""
    size = int(np.sqrt(2 * len(triangle)))
    whole = np.zeros((size, size))
    whole[np.triu_indices(size)] = triangle
    return whole + np.triu(whole, 1).T


def _without_negative(matrix: Array) -> Array:
    """The nearest matrix without negative eigenvalues, which only noise has."""
    values, vectors = np.linalg.eigh(matrix)
    nearest: Array = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return nearest
