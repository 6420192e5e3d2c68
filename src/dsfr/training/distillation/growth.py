"""Growth of the tree of rules: candidates are compared by sums over agents, one round for every split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.distillation.joint_sums import JointSums
from dsfr.core.distillation.knots import N_KNOTS
from dsfr.core.distillation.lines import fit_lines, forward_selection, matrices
from dsfr.core.distillation.split_sums import Candidates, SplitSums, bin_positions, triangle_products
from dsfr.core.distillation.tree import Growth, Leaf, Tree
from dsfr.core.features.linguistic import LinguisticRules, line_features
from dsfr.core.scaling.affine import Ranges
from dsfr.engines import Engine, RefusedError
from dsfr.storage.bundles import Bundle
from dsfr.training.distillation.columns import CONDITIONS, LINE_FEATURES, LINE_LIMITS, Columns, below, limits_in
from dsfr.training.distillation.limits import Bending, Bent, agree_limits
from dsfr.training.distillation.taught import KEPT_TEACHER, taught_blocks
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Field, array, within
from dsfr.training.tasks.fields import ASCENDING
from dsfr.training.tasks.messages import upper_triangle
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.semidefinite import gram_triangle

MOST_LINE_FEATURES = 20
"""Features that lines may have; with more features, those that reproduce the teacher best as a plane."""
MOST_CANDIDATES = 12
"""Features that rules may be split along; with more, those along which the teacher bends most."""
MOST_REFUSALS = 18
"""Refusals after which no agent is asked for the sums of a further rule: an agent ends a fit after 40 of them, and up
to 21 go to the teacher (one for the last step of each of 12 rule bases, one that ends them, two for each halving
of 5 rules to 1, and 4 for halvings of 12 curves)."""
LEAST_PROMISE = 0.02
"""Part of the largest gain of a rule's parent below which a feature is not asked for alone."""
MOST_MISSING = 2
"""Features of which agents give nothing; those of a rule that gained less are then not asked for."""
BY_SLOPE = 4
"""Of these, features with the largest slopes instead: an interaction need not show as a bend."""


@task(
    verb="sum",
    stage="distillation",
    reveals="Averages of known functions over the agent's rows: products of features and predictions, by quantile "
    "bins of every feature; with fewer rows than bins, nearly the rows.",
    broadcast={
        **CONDITIONS,
        **LINE_FEATURES,
        "evaluated": Field(("x",), (below("k"),), "int64"),
        "candidates": Field(("f",), (below("d"),), "int64"),
        "knots": array("f", N_KNOTS, rules=(ASCENDING,)),
    },
    contributes={
        "bins": array("x", "f", N_KNOTS + 1, "(u+2)(u+3)/2"),
        "ramps": array("x", "f", N_KNOTS - 1, "(u+2)(u+3)/2"),
    },
    needs=KEPT_TEACHER,
)
def split_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of line features and predictions, weighted by strengths of rules, bin by bin."""
    rules, knots = LinguisticRules.of_arrays(broadcast), broadcast["knots"]
    n_products = (len(broadcast["line_features"]) + 2) * (len(broadcast["line_features"]) + 3) // 2
    evaluated, (f, q) = broadcast["evaluated"], knots.shape
    bins = np.zeros((len(evaluated), f * (q + 1), n_products))
    ramps = np.zeros((len(evaluated), f * (q - 1), n_products))
    for X, U in taught_blocks(shard, memory, broadcast, broadcast["line_features"]):
        strengths = rules.strengths(X)[:, evaluated]
        inside, within_bin = bin_positions(X[:, broadcast["candidates"]], knots)
        products = triangle_products(U)
        for place in range(len(evaluated)):
            weighted = strengths[:, place, None] * products
            bins[place] += inside.T @ weighted
            ramps[place] += within_bin.T @ weighted
    shape = (len(evaluated), f, -1, n_products)
    return memory, {"bins": bins.reshape(shape), "ramps": ramps.reshape(shape)}


@task(
    verb="sum",
    stage="distillation",
    reveals="As `split_sums`, of one feature at a time and the distance of predictions to a plane. With many features.",
    broadcast={
        **LINE_FEATURES,
        "line": array("u+1", rules=(within(-1e50, 1e50),)),
        "knots": array("d", N_KNOTS, rules=(ASCENDING,)),
    },
    contributes={"bins": array("d", N_KNOTS + 1, 6)},
    needs=KEPT_TEACHER,
)
def bend_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): moments of each feature and of the distance of predictions to a plane, bin by bin of the feature."""
    knots, columns = broadcast["knots"], broadcast["line_features"]
    bins = np.zeros((shard.n_features, knots.shape[1] + 1, 6))
    every = np.arange(shard.n_features)
    for X, U in taught_blocks(shard, memory, broadcast, every):
        left = U[:, -1] - U[:, [0, *(columns + 1)]] @ broadcast["line"]
        for j in every.tolist():
            inside, _ = bin_positions(X[:, [j]], knots[[j]])
            bins[j] += inside.T @ triangle_products(np.column_stack([U[:, [0, j + 1]], left]))
    return memory, {"bins": bins}


@task(
    verb="sum",
    stage="distillation",
    reveals="Averages of known functions over the agent's rows: products of strengths, features and predictions.",
    broadcast={**CONDITIONS, **LINE_FEATURES, **LINE_LIMITS},
    contributes={"products": array("c(c+1)/2", rules=(gram_triangle("k(u+1)+1"),))},
    needs=KEPT_TEACHER,
)
def rule_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of the columns of all rules with each other and with the teacher's predictions."""
    rules = LinguisticRules.of_arrays(broadcast)
    size = rules.n_rules * (len(broadcast["line_features"]) + 1) + 1
    products, limits = np.zeros((size, size)), limits_in(broadcast)
    for X, U in taught_blocks(shard, memory, broadcast, broadcast["line_features"], limits):
        H = np.column_stack([line_features(rules.strengths(X), U[:, 1:-1]), U[:, -1]])
        products += H.T @ H
    return memory, {"products": upper_triangle(products)}


@dataclass(frozen=True, slots=True)
class Grown:
    """A grown tree, and the sums of its rules."""

    tree: Tree
    columns: Columns
    sums: JointSums
    """Of all leaves, within their limits."""
    bent: Bent | None = None
    """Limits that were chosen for lines, and the sums of a plane within its own; None if there are none."""

    def sums_of(self, n_rules: int) -> JointSums:
        """Sums of the rules of the stage of so many."""
        if n_rules == 1 and self.bent is not None:
            return self.bent.plane
        return self.sums.merged(self.tree.groups(n_rules))

    def limits_of(self, n_rules: int) -> Ranges | None:
        """Limits of the features in the lines of so many rules."""
        if self.bent is None:
            return None
        return self.bent.plane_limits if n_rules == 1 else self.bent.limits


def line_columns(products: Array) -> IntArray:
    """Features of the lines: all, or those that reproduce the teacher best together; ascending."""
    if len(products) - 2 <= MOST_LINE_FEATURES:
        return np.arange(len(products) - 2)
    return forward_selection(products, MOST_LINE_FEATURES) - 1


def agree_candidates(engine: Engine, products: Array, columns: Columns, knots: Array, usable: list[int]) -> list[int]:
    """Features along which rules may be split; with many features, those along which the teacher bends most."""
    if len(usable) <= MOST_CANDIDATES:
        return usable
    kept = [0, *(columns.features + 1).tolist(), -1]
    line, _ = fit_lines(products[np.ix_(kept, kept)], None)
    summed = engine.sum("bend_sums", {**columns.message(), "line": line, "knots": knots})["bins"]
    _, left = fit_lines(matrices(summed, 3), None)
    _, whole = fit_lines(matrices(summed.sum(axis=1), 3), None)
    gains = whole - left.sum(axis=1)
    bent = sorted(usable, key=lambda j: -gains[j])[: MOST_CANDIDATES - BY_SLOPE]
    slopes = dict(zip(columns.features.tolist(), np.abs(line[1:]).tolist(), strict=True))
    steep = sorted((j for j in usable if j in slopes and j not in bent), key=lambda j: -slopes[j])[:BY_SLOPE]
    return sorted([*bent, *steep])


def grow(
    engine: Engine, growth: Growth, columns: Columns, tree: Tree, max_rules: int, bending: Bending | None
) -> Grown:
    """Split rules until there are so many, or no split is worth it; one round each, one for limits, one for the sums.

    Agents may refuse sums of rules or bins with few of their rows: another split is then looked for.
    """
    asking = _Asking(engine, columns)
    joint = asking.joint(tree) if engine.only_sums else None
    while len(tree.leaves) < max_rules and len(growth.candidates.features):
        tree = asking.with_sums(tree, growth.candidates).evaluated(growth)
        split = tree.best_split(growth)
        if split is None:
            break
        if engine.only_sums:
            found = asking.allowed_joint(tree.split(split))
            if found is None:
                tree = tree.refused(split)
                continue
            joint = found
        tree = tree.split(split)
    bent = None if bending is None else agree_limits(engine, tree, columns, bending)
    if bent is not None and len(tree.leaves) == 1:
        return Grown(tree, columns, bent.plane, bent)
    return Grown(tree, columns, asking.joint(tree, bent) if joint is None else joint, bent)


def _promising(candidates: Candidates, leaf: Leaf) -> list[Candidates]:
    """One feature at a time, those first that gained most in the rule that this one is a part of; few gain nothing.

    Refusals are few. Lines of all features are fitted on both sides of a cut, so a product of two features shows as a
    gain along either of them, before anything is cut.
    """
    most = max(leaf.gains.values(), default=0.0)
    parts = [(leaf.gains.get(int(part.features[0]), most), part) for part in candidates.each()]
    worth = [(gain, part) for gain, part in parts if gain >= LEAST_PROMISE * most]
    return [part for _, part in sorted(worth, key=lambda pair: -pair[0])]


@dataclass(slots=True)
class _Asking:
    """What agents are asked for while a tree grows, and how often they have refused."""

    engine: Engine
    columns: Columns
    n_refused: int = 0

    def joint(self, tree: Tree, bent: Bent | None = None) -> JointSums:
        """Sums of all rules together, within the limits of their lines."""
        rules = tree.rules(self.columns.n_features)
        limits = {} if bent is None else bent.message()
        summed = self.engine.sum("rule_sums", {**rules.arrays(), **self.columns.message(), **limits})
        size = rules.n_rules * (len(self.columns.features) + 1) + 1
        return JointSums.of(matrices(summed["products"], size), rules.n_rules)

    def allowed_joint(self, tree: Tree) -> JointSums | None:
        """The same; None if an agent refuses, or has refused too often."""
        if self.n_refused >= MOST_REFUSALS:
            return None
        try:
            return self.joint(tree)
        except RefusedError:
            self.n_refused += 1
            return None

    def with_sums(self, tree: Tree, candidates: Candidates) -> Tree:
        """The tree with the sums of all rules that may be split."""
        numbers = [number for number, leaf in enumerate(tree.leaves) if leaf.sums is None and not leaf.is_closed]
        if not self.engine.only_sums:
            return tree.with_sums(numbers, self._split_sums(tree, candidates, numbers), candidates)
        for number in numbers:  # one by one: a refusal is of all that was asked
            tree = self._with_allowed_sums(tree, tree.leaves[number].candidates or candidates, number)
        return tree

    def _with_allowed_sums(self, tree: Tree, candidates: Candidates, number: int) -> Tree:
        """The tree with the sums of a rule along the features and between the knots that no agent refuses.

        All at once, and feature by feature if that is refused, here or for the rule that it is a part of; closed if
        nothing is left.
        """
        leaf = tree.leaves[number]
        sums = None if leaf.is_piecewise else self._allowed(tree, candidates, number)
        if sums is not None:
            return tree.with_sums([number], [sums], candidates)
        found = self._by_feature(tree, candidates, number)
        if not found:
            return tree.closed(number)
        left = Candidates.joined([part for part, _ in found])
        joined = SplitSums.joined([sums for _, sums in found])
        return tree.with_sums([number], [joined], left, is_piecewise=True)

    def _by_feature(self, tree: Tree, candidates: Candidates, number: int) -> list[tuple[Candidates, SplitSums]]:
        """Knots and sums of every feature that agents give anything of, ascending."""
        leaf, found, n_missing = tree.leaves[number], [], 0
        is_refused = not leaf.is_piecewise and len(candidates.features) == 1
        for one in _promising(candidates, leaf):
            part = self._finest(tree, one, number, is_refused=is_refused)
            if part is not None:
                found.append(part)
            n_missing += part is None
            if leaf.gains and n_missing >= MOST_MISSING:
                break
        return sorted(found, key=lambda part: int(part[0].features[0]))

    def _finest(
        self, tree: Tree, part: Candidates, number: int, *, is_refused: bool
    ) -> tuple[Candidates, SplitSums] | None:
        """The finest knots of one feature that no agent refuses, and the sums; None if there are none."""
        while len(part.features) and self.n_refused < MOST_REFUSALS:
            sums = None if is_refused else self._allowed(tree, part, number)
            if sums is not None:
                return part, sums
            part, is_refused = part.coarser(int(part.features[0])), False
        return None

    def _allowed(self, tree: Tree, candidates: Candidates, number: int) -> SplitSums | None:
        if self.n_refused >= MOST_REFUSALS:
            return None
        try:
            return self._split_sums(tree, candidates, [number])[0]
        except RefusedError:
            self.n_refused += 1
            return None

    def _split_sums(self, tree: Tree, candidates: Candidates, numbers: list[int]) -> list[SplitSums]:
        message = {
            **tree.rules(self.columns.n_features).arrays(),
            **self.columns.message(),
            "evaluated": np.array(numbers, dtype=np.int64),
            "candidates": candidates.features,
            "knots": candidates.knots,
        }
        summed = self.engine.sum("split_sums", message)
        return [SplitSums(*pair) for pair in zip(summed["bins"], summed["ramps"], strict=True)]
