"""Names of the stages of a training, observers of rounds, and waiting for absent agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsfr.core.consensus.admm import RoundInfo
from dsfr.engines import Engine, EngineError
from dsfr.storage.bundles import Bundle

CLUSTERS, WEIGHTS = "clusters", "weights"
"""Names of the stages that take rounds."""
WAIT_FOR_ABSENT = 50
"""Rounds that go on after those present have converged, for agents that are away to come back."""

Observer = Callable[[RoundInfo], None]


@dataclass(slots=True)
class Patience:
    """Whether those present, who have converged, may stop: without all rows it is another solution that they have."""

    engine: Engine
    rounds: int = WAIT_FOR_ABSENT
    """Rounds that agents which are away have left to come back."""

    def ends(self) -> bool:
        """Whether everybody is there, or was waited for long enough; else this counts as a round of waiting."""
        if len(self.engine.present) == self.engine.n_agents or self.rounds == 0:
            return True
        self.rounds -= 1
        return False


def of_all_agents(engine: Engine, answers: list[Bundle]) -> list[Bundle]:
    """Gathered contributions, if there is one of every agent.

    Raises
    ------
    EngineError
        If an agent is missing.
    """
    if len(answers) == engine.n_agents:
        return answers
    missing = ", ".join(sorted(set(engine.agents) - set(engine.present))) or "unknown"
    raise EngineError(
        f'{len(answers)} of {engine.n_agents} agents answered (missing: {missing}), and ADMM(stopping="paper") needs '
        'all of them in every round: use ADMM(stopping="certificate"), which waits for those that are away'
    )
