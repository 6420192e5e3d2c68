"""Penalties on unlabelled rows. A new one is a file here and an import below; see CONTRIBUTING.md."""

from dsfr.training.penalties.graph import Graph
from dsfr.training.penalties.icr import ICR
from dsfr.training.penalties.penalty import NO_PENALTY, UnlabeledPenalty, penalty_in

__all__ = ["ICR", "NO_PENALTY", "Graph", "UnlabeledPenalty", "penalty_in"]
