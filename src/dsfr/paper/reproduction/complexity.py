"""Claims about complexity, beside measured exponents of growth."""

from __future__ import annotations

import numpy as np

from dsfr.paper.experiments.complexity import USUAL
from dsfr.paper.reproduction.claims import Claim, Evidence, yes_or_no
from dsfr.paper.reproduction.summary import group_by

SLACK = 0.25
"""An exponent that exceeds the claimed one by less counts as within the claim: times are noisy."""


def complexity_claims(evidence: Evidence) -> list[Claim]:
    """Both claims, with the exponents of rows, features, rules and agents."""
    return [
        Claim(
            "A round of DFCM takes O(N D K^2) time.",
            "Eq. (5) as printed sums over K for each of K memberships. With the K distances of a row computed once, "
            "O(N D K) is enough.",
            _measured(evidence, "clusters", {"rows": 1, "features": 1, "rules": 2}),
        ),
        Claim(
            "A round of DICR takes O(K D L) time.",
            "**No**: eq. (36) multiplies a matrix of K(D+1) rows and columns with a vector at each of L agents, which "
            "takes O(K^2 D^2 L); and the matrix has to be factored, O(K^3 D^3 L), once, or in every round if pairs are "
            "drawn anew.",
            _measured(evidence, "weights", {"features": 1, "rules": 1, "agents": 1}),
        ),
    ]


def _measured(evidence: Evidence, stage: str, claimed: dict[str, int]) -> str:
    times = {name: exponent(evidence, stage, name, "seconds") for name in claimed}
    sizes = {name: exponent(evidence, stage, name, "kilobytes") for name in ("features", "rules", "agents")}
    holds = all(times[name] <= bound + SLACK for name, bound in claimed.items())
    usual = ", ".join(f"{value} {name}" for name, value in USUAL.items())
    return (
        f"{yes_or_no(holds)}: exponents of the processor time of a round between the two largest values: "
        f"{_listed(times)}. Exponents of the bytes: {_listed(sizes)}. One size is varied at a time, from {usual}; "
        "pairs are not redrawn, and factors are kept."
    )


def exponent(evidence: Evidence, stage: str, parameter: str, column: str) -> float:
    """Growth from the second largest to the largest value: log ratio of the medians over log ratio of the values."""
    groups = group_by(evidence.results.where("complexity", stage=stage, parameter=parameter), "value")
    (low, before), (high, after) = [
        (value, float(np.median([row[column] for row in rows]))) for (value,), rows in sorted(groups.items())
    ][-2:]
    return float(np.log(after / before) / np.log(high / low))


def _listed(exponents: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in exponents.items())
