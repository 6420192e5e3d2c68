"""Lines of all rules with ever fewer numbers: a term leaves one rule or all of them, or has one slope for all rules.

Every step is the one that costs least for each number that it saves. Costs are increases of the penalised weighted
squared distance, summed over the rules, if all other coefficients are fitted again. They follow from the inverse of the
matrix of the least-squares problem of the numbers that remain. It is computed anew after every step: an inverse that
steps update loses all digits where columns are nearly collinear. Rules have only shared slopes in common, so that it
is solved rule by rule, and by the Schur complement for the shared slopes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.distillation.lines import LineRules, penalties

EQUAL = 1e-9
"""Difference of costs that count as equal, relative to what lines explain."""
NEVER = np.inf

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Terms:
    """Which coefficients lines have."""

    present: Flags
    """Shape (k, p); the constants always."""
    same: Flags
    """Columns with one slope for all rules; (p,)."""

    def without(self, rules: Sequence[int], column: int) -> Terms:
        """Without a term, in some of the rules; in all if it has one slope for all."""
        present, same = self.present.copy(), self.same.copy()
        present[slice(None) if same[column] else list(rules), column] = False
        same[column] = False
        return Terms(present, same)

    def with_same(self, column: int) -> Terms:
        """With one slope for all rules."""
        same = self.same.copy()
        same[column] = True
        return Terms(self.present, same)


@dataclass(frozen=True, slots=True)
class LineSystem:
    """The least-squares problem of the lines of all rules."""

    blocks: Array
    """The matrix of every rule; (k, p, p)."""
    target: Array
    """Shape (k, p)."""

    @classmethod
    def of(cls, sums: Sequence[Array], priors: Sequence[Array | None]) -> LineSystem:
        """From the sums of every rule, and the lines of their parents."""
        blocks, targets = [], []
        for local, prior in zip(sums, priors, strict=True):
            diagonal = penalties(local[0, 0], len(local) - 1, has_parent=prior is not None)
            blocks.append(local[:-1, :-1] + np.diag(diagonal))
            targets.append(local[:-1, -1] + (0.0 if prior is None else diagonal * prior))
        return cls(np.stack(blocks), np.stack(targets))

    def solved(self, terms: Terms) -> Array:
        """The best lines that have these terms; shape (k, p)."""
        return self.solved_with_inverse(terms)[0]

    def solved_with_inverse(self, terms: Terms) -> tuple[Array, Array]:
        """The best lines that have these terms, and the inverse of the matrix for these; (k, p) and (p, k, k).

        Of the inverse, the entries of the same column in all pairs of rules.
        """
        own, shared, p = terms.present & ~terms.same, terms.same, len(terms.same)
        matrix = np.where(own[:, :, None] & own[:, None, :], self.blocks, np.eye(p))
        coupling = np.where(own[:, :, None], self.blocks[:, :, shared], 0.0)
        sides = [coupling, np.where(own, self.target, 0.0)[..., None], own[:, :, None] * np.eye(p)]
        solved = np.linalg.solve(matrix, np.concatenate(sides, axis=2))
        pulls, lines, alone = solved[:, :, : -p - 1], solved[:, :, -p - 1].copy(), solved[:, :, -p:]
        inverse = np.einsum("kjj->jk", alone)[:, :, None] * np.eye(len(own))
        if shared.any():
            schur = self.blocks[:, shared][:, :, shared].sum(axis=0) - np.einsum("kps,kpt->st", coupling, pulls)
            moment = self.target[:, shared].sum(axis=0) - np.einsum("kps,kp->s", coupling, lines)
            solved = np.linalg.solve(schur, np.column_stack([moment, np.eye(len(moment))]))
            lines -= pulls @ solved[:, 0]
            lines[:, shared] = solved[:, 0]
            by_column = pulls.transpose(1, 0, 2)
            inverse += by_column @ solved[:, 1:] @ by_column.transpose(0, 2, 1)
            inverse[shared] = np.diag(solved[:, 1:])[:, None, None]
        return lines, inverse


def shorter_lines(system: LineSystem, rules: LineRules) -> Iterator[tuple[Terms, Array]]:
    """Terms and lines of ever fewer numbers, down to the constants alone; the lines are the best of their terms."""
    search = _Search.started(system, rules)
    while True:
        yield search.terms, search.lines
        if not search.terms.present[:, 1:].any():
            return
        search.step()


@dataclass(slots=True)
class _Search:
    """The best lines of the terms that remain after all steps so far."""

    system: LineSystem
    rules: LineRules
    terms: Terms
    lines: Array
    """Shape (k, p)."""
    inverse: Array
    """Of the matrix, for these terms: the entries of the same column in all pairs of rules; (p, k, k)."""
    equal: float
    """Difference of costs that count as equal."""

    @classmethod
    def started(cls, system: LineSystem, rules: LineRules) -> _Search:
        """All terms that rules may have."""
        k, p = system.target.shape
        terms = Terms(np.ones((k, p), dtype=np.bool_), np.zeros(p, dtype=np.bool_))
        lines, inverse = system.solved_with_inverse(terms)
        search = cls(system, rules, terms, lines, inverse, EQUAL * abs(float((lines * system.target).sum())))
        for column in rules.without:
            search.take(search.terms.without(range(k), column))
        search.keep_signs()
        search.keep_to_most_terms()
        return search

    def take(self, terms: Terms) -> None:
        """Go on with these terms."""
        self.terms = terms
        self.lines, self.inverse = self.system.solved_with_inverse(terms)

    def step(self) -> None:
        """Save the numbers that cost least each."""
        single, tied, everywhere = self._costs()
        k, p = single.shape
        costs = np.concatenate([everywhere, tied, single.ravel()])
        # The first of equal ones, so that the order in which sums were added does not decide.
        place = int(np.flatnonzero(costs <= costs.min() + self.equal)[0])
        if place < p:
            self.take(self.terms.without(range(k), place))
        elif place < 2 * p:
            self.take(self.terms.with_same(place - p))
        else:
            self.take(self.terms.without([(place - 2 * p) // p], place % p))
        self.keep_signs()

    def keep_signs(self) -> None:
        """Leave out slopes of the wrong sign, the worst first; a step that saves several numbers may turn one."""
        signs = np.zeros(self.terms.present.shape[1])
        for column, sign in self.rules.signs:
            signs[column] = sign
        while (wrong := self.lines * signs).min() < 0.0:
            rule, column = divmod(int(wrong.argmin()), wrong.shape[1])
            self.take(self.terms.without([rule], column))

    def keep_to_most_terms(self) -> None:
        """Leave out terms of rules that have too many."""
        most = self.rules.max_terms
        while most is not None and (many := np.count_nonzero(self.terms.present[:, 1:], axis=1) > most).any():
            single = np.where(many[:, None], self._costs()[0], NEVER)
            rule, column = divmod(int(np.flatnonzero(single <= single.min() + self.equal)[0]), single.shape[1])
            self.take(self.terms.without([rule], column))
            self.keep_signs()

    def _costs(self) -> tuple[Array, Array, Array]:
        """Costs of every number saved: by a term of one rule (k, p), by one slope for all rules, by none (p,)."""
        present, same = self.terms.present.copy(), self.terms.same
        present[:, 0] = False
        k, p = present.shape
        values = np.where(present, self.lines, 0.0)
        own = np.einsum("jkk->kj", self.inverse)
        single = np.where(present, values**2 / np.where(present, own, 1.0), NEVER)
        blocks = self.inverse.copy()
        free = present & ~same
        blocks[~(free.T[:, :, None] & free.T[:, None, :])] = 0.0
        blocks += np.eye(k) * ~free.T[:, :, None]
        sides = np.stack([values.T, np.ones((p, k))], axis=2)
        solved = np.linalg.solve(blocks, sides)
        whole = np.einsum("jk,jk->j", values.T, solved[:, :, 0])
        level = solved[:, :, 0].sum(axis=1) ** 2 / solved[:, :, 1].sum(axis=1)
        n_free = np.count_nonzero(free, axis=0)
        everywhere = np.where(n_free > 1, whole / np.maximum(n_free, 1), NEVER)
        tied = np.where((n_free == k) & (k > 1), np.maximum(whole - level, 0.0) / max(k - 1, 1), NEVER)
        return single, tied, everywhere
