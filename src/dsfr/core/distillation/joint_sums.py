"""Sums of products of the columns of all rules: they determine the lines of every smaller tree on the way.

A column is ``strength x (1, features)``; the strength of a rule is the sum of the strengths of its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array


@dataclass(frozen=True, slots=True)
class JointSums:
    """Products of the columns of all rules with each other and with the teacher's predictions, over all rows."""

    gram: Array
    """Shape (k, p, k, p), with p columns per rule: its strength, then its strength times each feature of lines."""
    moment: Array
    """Shape (k, p)."""
    square: float
    """Sum of the squared predictions of the teacher."""

    @classmethod
    def of(cls, matrix: Array, n_rules: int) -> JointSums:
        """From the matrix of products of all columns, the last one being the teacher's predictions."""
        p = (len(matrix) - 1) // n_rules
        shape = (n_rules, p, n_rules, p)
        return cls(matrix[:-1, :-1].reshape(shape), matrix[:-1, -1].reshape(n_rules, p), float(matrix[-1, -1]))

    def merged(self, groups: Sequence[Sequence[int]]) -> JointSums:
        """Sums of fewer rules, each the union of a group."""
        member = np.zeros((len(groups), len(self.moment)))
        for place, group in enumerate(groups):
            member[place, list(group)] = 1.0
        gram = np.einsum("ak,kplq,bl->apbq", member, self.gram, member, optimize=True)
        return JointSums(gram, member @ self.moment, self.square)

    def local(self, rule: int) -> Array:
        """Sums weighted by the strength of one rule, as `fit_lines` takes them, without the square of the teacher."""
        p = self.moment.shape[1]
        sums = np.zeros((p + 1, p + 1))
        sums[:-1, :-1] = self.gram[rule].sum(axis=1)
        sums[:-1, -1] = sums[-1, :-1] = self.moment[rule]
        return sums

    @property
    def masses(self) -> Array:
        """Sum of the strengths of every rule; (k,)."""
        masses: Array = self.gram[:, 0, :, 0].sum(axis=1)
        return masses

    def distance(self, lines: Array) -> float:
        """Mean squared distance of the predictions of these lines to the teacher's."""
        values = lines.ravel()
        fitted = float(values @ self.gram.reshape(len(values), -1) @ values)
        left = self.square - 2.0 * float((lines * self.moment).sum()) + fitted
        return max(left, 0.0) / float(self.masses.sum())
