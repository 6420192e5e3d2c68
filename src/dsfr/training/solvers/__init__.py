"""Solvers: how agents agree. A new one is a file here and an import below; see CONTRIBUTING.md."""

from dsfr.training.solvers.admm import ADMM
from dsfr.training.solvers.conjugate import Conjugate
from dsfr.training.solvers.decentralized import Decentralized
from dsfr.training.solvers.few_rounds import FewRounds
from dsfr.training.solvers.private import PrivateSums
from dsfr.training.solvers.solver import IterativeSolver, Solver
from dsfr.training.solvers.sums import Sums

__all__ = ["ADMM", "Conjugate", "Decentralized", "FewRounds", "IterativeSolver", "PrivateSums", "Solver", "Sums"]
