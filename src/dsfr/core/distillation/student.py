"""The student: lines of short rules from the sums of a grown tree, and how many rules it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.joint_sums import JointSums
from dsfr.core.distillation.lines import LineRules, fit_lines, plain_prior
from dsfr.core.distillation.shorter import LineSystem, shorter_lines
from dsfr.core.distillation.tree import INDICATED, Bounds, Tree, ramps_by_feature
from dsfr.core.prediction.shared_slopes import n_terms
from dsfr.core.scaling.affine import Ranges

EQUAL = 1e-9
"""Difference of expenses that count as equal."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Rules of one number, with the lines that are worth their length."""

    lines: Array
    """Shape (k, p)."""
    distance: float
    """Mean squared distance to the teacher."""
    price: float
    """Expected increase of the error."""
    to_read: int
    """Conditions, terms of lines and constants; terms that are the same in all rules once."""
    to_look_up: int = 0
    """Numbers in the meanings of words: both ends of every ramp."""
    limits: Ranges | None = None
    """Between which values lines follow features; None: wherever the teacher does."""

    def expense(self, tolerance: float) -> float:
        """Logarithm of the expected error, plus the tolerance for everything that there is to read or look up."""
        return float(np.log1p(self.price)) + tolerance * (self.to_read + self.to_look_up)


def stages_of(
    tree: Tree,
    sums: JointSums,
    rules: LineRules,
    conditions: Sequence[int],
    error: float,
    tolerance: float,
    known: Sequence[Stage] = (),
    plane: JointSums | None = None,
) -> list[Stage]:
    """For every number of rules, the lines of the least expense; ``conditions`` are the numbers of these.

    ``known`` are the first stages, where the tree was smaller before; ``plane`` are other sums of one rule, where its
    lines have limits of their own.
    """
    priors = _priors(tree, sums)
    found = list(known)
    words_of = list(zip(conditions, map(_n_ends, tree.stages), strict=True))
    for k, words in enumerate(words_of[len(known) :], start=len(known) + 1):
        groups = tree.groups(k)
        merged = plane if k == 1 and plane is not None else sums.merged(groups)
        system = _system(merged, [priors.get(tuple(group)) for group in groups], rules)
        shapes, lines = zip(*shorter_lines(system, rules), strict=True)
        stages = [_stage(merged, own, words, error) for own in lines]
        best = cheapest(stages, tolerance)
        terms = next(terms for terms, stage in zip(shapes, stages, strict=True) if stage is best)
        found.append(_stage(merged, system.solved(terms), words, error))
    return found


def _system(merged: JointSums, parents: Sequence[Array | None], rules: LineRules) -> LineSystem:
    sums = [merged.local(k) for k in range(len(parents))]
    pairs = zip(sums, parents, strict=True)
    priors = [None if line is None else plain_prior(local, line, rules.categories) for local, line in pairs]
    return LineSystem.of(sums, priors)


def _n_ends(stage: Sequence[Bounds]) -> int:
    """Numbers that say what the words of the conditions mean; those of indicators need none."""
    ramps = [ramp for found in ramps_by_feature(stage).values() for ramp in found]
    return 2 * sum(ramp != INDICATED for ramp in ramps)


def _stage(merged: JointSums, lines: Array, words: tuple[int, int], error: float) -> Stage:
    """Lines with their price; ``words`` are the numbers of conditions, and of ends of ramps."""
    (n_conditions, n_ends), distance = words, merged.distance(lines)
    return Stage(lines, distance, price_of(distance, error), n_conditions + n_terms(lines) + len(lines), n_ends)


def cheapest(stages: Sequence[Stage], tolerance: float) -> Stage:
    """The stage of the least expense; of equal ones, to rounding, that with less to read."""
    least = min(stage.expense(tolerance) for stage in stages)
    equal = (stage for stage in stages if stage.expense(tolerance) <= least + EQUAL)
    return min(equal, key=lambda stage: stage.to_read + stage.to_look_up)


def _priors(tree: Tree, sums: JointSums) -> dict[tuple[int, ...], Array]:
    """Line of the parent of every rule of every stage, by the leaves that make up the rule."""
    priors: dict[tuple[int, ...], Array] = {}
    for n_rules, place in enumerate(tree.splits, start=1):
        before, after = tree.groups(n_rules), tree.groups(n_rules + 1)
        parent = tuple(before[place])
        line, _ = fit_lines(sums.merged(before).local(place), priors.get(parent))
        priors[tuple(after[place])] = priors[tuple(after[place + 1])] = line
    return priors


def price_of(distance: float, error: float) -> float:
    """Expected increase of the root mean squared error, as a part of the teacher's.

    ``distance`` is the mean squared distance to the teacher, ``error`` the teacher's mean squared error. The distance
    is taken to be uncorrelated with the teacher's errors.
    """
    return float(np.sqrt(1.0 + distance / error)) - 1.0
