"""Training as a conversation: what agents do in each named task, and what the coordinator makes of the reductions."""

from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Shard, make_shards
from dsfr.protocol.train import TASKS, Training, train

__all__ = ["TASKS", "Settings", "Shard", "Training", "make_shards", "train"]
