"""What a training will send, before anything runs: the sizes of all messages, task by task.

Sizes depend on features, rules and settings, never on rows. How many rounds an iteration takes depends on the data and
must be assumed; with the right numbers of rounds, bytes are exact for sums (tests hold them to the ledger).
"""

from __future__ import annotations

from collections.abc import Iterator

from dsfr.training.legs import Leg, Shape, leg
from dsfr.training.settings import Settings


def legs(n_features: int, settings: Settings, cluster_rounds: int, weight_rounds: int) -> list[Leg]:
    """The tasks of a training by a coordinator over several agents, in order."""
    shape = Shape(n_features, settings)
    return [*_basis(shape, cluster_rounds), *settings.solver.weight_legs(shape, weight_rounds)]


def _basis(shape: Shape, rounds: int) -> Iterator[Leg]:
    if not shape.has_rules:
        yield from shape.survey_legs()
        return
    yield from shape.settings.solver.basis_legs(shape, rounds)
    if shape.settings.rules.width_pooling == "exact":
        yield leg("cluster_spread", "sum", 1, shape.centers, shape.n_rules + shape.centers)
    else:
        yield leg("local_spread", "sum", 1, shape.centers, 2 * shape.n_rules + shape.centers)
