"""Training as a conversation: what agents do in each named task, and what the coordinator makes of the reductions."""

from dsfr.training.settings import Settings
from dsfr.training.shard import Shard, make_shards
from dsfr.training.train import TASKS, Training, train

__all__ = ["TASKS", "Settings", "Shard", "Training", "make_shards", "train"]
