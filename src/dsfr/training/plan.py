"""What a training will send, before anything runs: the sizes of all messages, task by task.

Sizes depend on features, rules and settings, never on rows. How many rounds an iteration takes depends on the data and
must be assumed; with the right numbers of rounds, bytes are exact for sums (tests hold them to the ledger).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

from dsfr.training.clustering import dfcm, few_rounds
from dsfr.training.settings import Settings
from dsfr.training.weights import dicr

NUMBER = 8
"""Bytes of a number."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One task of a training: how often it runs, and what goes to and comes from an agent each time."""

    task: str
    verb: str
    rounds: int
    bytes_down: int
    bytes_up: int
    everybody_answers: bool = True
    exact: bool = True
    """Whether the sizes are certain; acceleration sends a few numbers more or less."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the sizes of messages depend on."""

    n_features: int
    settings: Settings

    @property
    def n_rules(self) -> int:
        """Number of rules."""
        return self.settings.n_rules

    @property
    def centers(self) -> int:
        """Numbers in the centers of all rules."""
        return self.settings.n_rules * self.n_features

    @property
    def basis(self) -> int:
        """Numbers in the basis: centers and widths, or dilations and translations."""
        per_feature = self.settings.n_rules if self.settings.basis == "rules" else self.settings.n_nodes
        return 2 * per_feature * self.n_features

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        settings = self.settings
        return settings.n_rules * (self.n_features + 1) if settings.basis == "rules" else settings.n_nodes

    @property
    def penalty(self) -> int:
        """Numbers that tell which penalty there is on unlabelled rows."""
        return {"icr": 2, "graph": 1, None: 0}[self.settings.unlabeled]


def legs(n_features: int, settings: Settings, cluster_rounds: int, weight_rounds: int) -> list[Leg]:
    """The tasks of a training by a coordinator over several agents, in order."""
    shape = Shape(n_features, settings)
    if settings.basis == "wavelets":
        found = [*_survey(shape)]
    elif settings.rounds == "few":
        found = [next(_survey(shape)), *_few(shape), _spread(shape)]
    else:
        found = [*_survey(shape), *_clusters(shape, cluster_rounds), _spread(shape)]
    return [*found, *_weights(shape, weight_rounds)]


def _leg(task: str, verb: str, rounds: int, down: int, up: int, **options: bool) -> Leg:
    return Leg(task, verb, rounds, NUMBER * down, NUMBER * up, **options)


def _survey(shape: Shape) -> Iterator[Leg]:
    d, declared = shape.n_features, shape.settings.feature_ranges is not None
    yield _leg("measure", "max", 1, 2 if declared else 1, 4 if declared else 4 + 2 * d)
    yield _leg("agree", "sum", 1, 2 * d + 2, 4)


def _sums(shape: Shape) -> int:
    return shape.n_rules + shape.centers + 1


def _clusters(shape: Shape, rounds: int) -> Iterator[Leg]:
    yield _leg("start_centers", "gather", 1, 5, shape.centers, everybody_answers=False)
    if not shape.settings.admm_for_clusters:
        yield _leg("cluster_sums", "sum", rounds, shape.centers, _sums(shape))
        return
    mix = _mean_mix(rounds, dfcm.MEMORY if shape.settings.acceleration else 0)
    up = 2 * shape.centers + (mix + 1) + _sums(shape) + 2
    yield _leg("cluster_consensus", "sum", rounds, shape.centers + 2 + mix, up, exact=False)


def _few(shape: Shape) -> Iterator[Leg]:
    look = 2 * shape.n_features + 2
    yield _leg("local_clusters", "gather", 1, look + 5, shape.centers + shape.n_rules)
    yield _leg("count_and_sum", "sum", 1, look + shape.centers, 4 + _sums(shape))
    yield _leg("cluster_sums", "sum", few_rounds.N_REFINEMENTS - 1, shape.centers, _sums(shape))


def _spread(shape: Shape) -> Leg:
    if shape.settings.width_pooling == "exact":
        return _leg("cluster_spread", "sum", 1, shape.centers, shape.n_rules + shape.centers)
    return _leg("local_spread", "sum", 1, shape.centers, 2 * shape.n_rules + shape.centers)


def _weights(shape: Shape, rounds: int) -> Iterator[Leg]:
    p, settings = shape.n_weights, shape.settings
    told = shape.basis + 2 + shape.penalty
    if settings.sums_for_weights:
        matrices = 2 if settings.unlabeled is not None else 1
        yield _leg("statistics", "sum", 1, told, matrices * p * (p + 1) // 2 + 2 * p + 3)
        return
    if not settings.admm_for_weights:
        yield _leg("first_gradient", "sum", 1, told + 1, p + 1)
        yield _leg("weight_gradient", "sum", rounds - 1, p, p + 1)
        return
    typical = 0 if isinstance(settings.penalty, Real) or settings.basis != "rules" else 3
    yield _leg("prepare_weights", "sum", 1, told + 1 + typical, 2)
    redraw = 1 if settings.redraws_pairs else 0
    mix = _mean_mix(rounds, dicr.MEMORY if settings.acceleration and not redraw else 0)
    yield _leg("weight_consensus", "sum", rounds, p + 3 + mix + redraw, 2 * p + (mix + 1) + 2, exact=False)


def _mean_mix(rounds: int, memory: int) -> int:
    """Weights of past images in a message, on average: one more every round until the memory is full."""
    lengths = [min(number, memory + 1) for number in range(1, rounds + 1)]
    return round(sum(lengths) / max(len(lengths), 1))
