"""What a training will send, before anything runs: the sizes of all messages, task by task.

Sizes follow from the declarations of the tasks: they depend on features, rules and settings, never on rows. How many
rounds an iteration takes depends on the data and must be assumed; with the right numbers of rounds, bytes are exact for
sums (tests hold them to the ledger).
"""

from __future__ import annotations

from collections.abc import Iterator

from dsfr.training.legs import Leg, Shape
from dsfr.training.settings import Settings


def legs(n_features: int, settings: Settings, cluster_rounds: int, weight_rounds: int) -> list[Leg]:
    """The tasks of a training over several agents, in order.

    Raises
    ------
    ValueError
        If how many tasks there are depends on the data.
    """
    _check_plannable(settings)
    shape = Shape(n_features, settings)
    return [*_basis(shape, cluster_rounds), *settings.solver.weight_legs(shape, weight_rounds)]


def _basis(shape: Shape, rounds: int) -> Iterator[Leg]:
    if not shape.has_rules:
        yield from shape.survey_legs()
        return
    yield from shape.settings.solver.basis_legs(shape, rounds)
    pooled = shape.settings.rules.width_pooling == "exact"
    yield shape.leg("cluster_variances" if pooled else "local_variances", 1)


def _check_plannable(settings: Settings) -> None:
    open_ended = {
        f"scaling={settings.scaling!r}": settings.scaling.is_robust,
        f"tune={settings.tune!r}": settings.tune is not None,
        f"n_models={settings.n_models!r}": settings.n_models != 1,
        f"relevance={settings.relevance!r}": settings.relevance is not None,
        "uncertainty=True": settings.uncertainty,
    }
    for name, is_asked in open_ended.items():
        if is_asked:
            raise ValueError(f"{name} cannot be planned: its rounds depend on the data")
