"""What a fit may spend of an owner's differential privacy, and the noise that it is spent on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dsfr.disclosure.noise import mu_of, noisy_triangle
from dsfr.disclosure.policy import Policy
from dsfr.disclosure.refusal import OWN, PolicyError
from dsfr.disclosure.table import Noise
from dsfr.engines.agent import COUNTED
from dsfr.storage.bundles import Bundle
from dsfr.training.weights.clipped import VARIANCE

SPENT = COUNTED + "spent"
"""Share of the budget of a fit that is spent."""
LEAST_LABELS = 1000
"""Labels of all owners together, at least: with fewer, noise that protects one of them drowns all."""


@dataclass(frozen=True, slots=True)
class Budget:
    """One task of an owner, and what it keeps about the fit."""

    task: str
    policy: Policy
    noise: Noise | None
    kept: Bundle

    def check(self, *, masked: bool) -> None:
        """Refuse what has no noise where it must, noise that others can subtract, and spending twice.

        Raises
        ------
        PolicyError
            Naming the rule.
        """
        problem = self._problem(masked)
        if problem:
            raise PolicyError(f"task {self.task!r} is refused by policy rule 'epsilon': {problem}")

    def _problem(self, masked: bool) -> str:
        if self.noise is None:
            has_epsilon = self.policy.epsilon is not None
            return "this owner answers sums with noise alone; take solver='private-sums'" if has_epsilon else ""
        if self.policy.epsilon is None:
            return "it needs noise, and this owner's policy has no epsilon"
        if not masked:
            return "contributions are not masked, and each has a share of the noise only; take masks=True"
        labels, spent = int(self.kept[OWN + "labels"]), float(self.kept.get(SPENT, np.asarray(0.0)))
        if labels < LEAST_LABELS:
            return f"{labels} labels of all owners, and with fewer than {LEAST_LABELS} noise drowns what they say"
        if spent + self.noise.budget > 1.0 + 1e-9:
            return f"epsilon={self.policy.epsilon:g} of this fit is spent: each noisy sum is answered once"
        return ""

    def with_noise(self, contribution: Bundle, n_features: int) -> Bundle:
        """The contribution with this owner's share of the noise; as it is for tasks without."""
        if self.noise is None or self.policy.epsilon is None:
            return contribution
        mu = mu_of(self.policy.epsilon, self.policy.delta) * math.sqrt(self.noise.budget)
        bound, n_owners = self.noise.bound(n_features), int(self.kept[OWN + "owners"])
        products, variance = noisy_triangle(contribution["products"], bound, mu, n_owners)
        return {**contribution, "products": products, VARIANCE: np.asarray(variance)}
