"""Training without a coordinator, as a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsfr.engines import Engine
from dsfr.training.solvers.sums import Sums


@dataclass(frozen=True, kw_only=True, repr=False)
class Decentralized(Sums):
    """No coordinator: agents sum by messages between neighbors in a graph, and each ends with its own model.

    The sums are exact and equal at every agent, so every agent computes the model that `Sums` computes. The engine must
    have a ``topology``.

    Parameters
    ----------
    tol : float, default=1e-4
        Clustering stops when no center would move by more than ``tol``.
    max_rounds : int, default=10000
        Most rounds of clustering.
    acceleration : {"l-bfgs", None}, default="l-bfgs"
        Steps of the clustering: L-BFGS steps on its objective, or the textbook's alternating steps.
    """

    shorthand: ClassVar[str] = "decentralized"
    gossips: ClassVar[bool] = True

    def check_engine(self, engine: Engine) -> None:
        """Refuse an engine with a coordinator.

        Raises
        ------
        ValueError
            If several agents have no graph.
        """
        if engine.n_agents > 1 and engine.has_coordinator:
            raise ValueError(
                f"solver={self!r} needs to know who is linked to whom: give the engine a topology, such as "
                'engine=InProcess(topology="ring") (or make a GossipEngine or an MPIGossipEngine by hand)'
            )
