"""Training as a conversation: what agents do in each named task, and what the coordinator makes of the reductions."""

from dsfr.training.ensemble_settings import Ensemble
from dsfr.training.fuzzy_rules import FuzzyRules
from dsfr.training.penalties import ICR, Graph
from dsfr.training.scaling.scalings import RangeScaling, RobustScaling
from dsfr.training.settings import Settings
from dsfr.training.shard import Shard, make_shards
from dsfr.training.solvers import ADMM, Conjugate, Decentralized, FewRounds, PrivateSums, Sums
from dsfr.training.tasks.catalog import TASKS
from dsfr.training.tasks.declaration import BroadcastError, ContributionError, TaskError
from dsfr.training.train import Training, train

__all__ = [
    "ADMM",
    "ICR",
    "TASKS",
    "BroadcastError",
    "Conjugate",
    "ContributionError",
    "Decentralized",
    "Ensemble",
    "FewRounds",
    "FuzzyRules",
    "Graph",
    "PrivateSums",
    "RangeScaling",
    "RobustScaling",
    "Settings",
    "Shard",
    "Sums",
    "TaskError",
    "Training",
    "make_shards",
    "train",
]
