"""Distributed semi-supervised fuzzy regression.

Readable fuzzy-rule models from few labels and many unlabelled rows, on data that stays with its owners.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dsfr.core.consensus.admm import RoundInfo as RoundInfo
    from dsfr.core.explain.rules import Rule as Rule
    from dsfr.core.solve.cholesky import SingularSystemError as SingularSystemError
    from dsfr.engines import Absence as Absence
    from dsfr.engines import Faults as Faults
    from dsfr.engines import InProcessEngine as InProcessEngine
    from dsfr.engines.checkpoint.engine import with_checkpoint as with_checkpoint
    from dsfr.engines.dask.engine import DaskEngine as DaskEngine
    from dsfr.engines.mpi.engine import MPIEngine as MPIEngine
    from dsfr.engines.mpi.gossip import MPIGossipEngine as MPIGossipEngine
    from dsfr.engines.mpi.network import MPINetworkEngine as MPINetworkEngine
    from dsfr.estimators import LapWNNRegressor as LapWNNRegressor
    from dsfr.estimators import SFRRegressor as SFRRegressor
    from dsfr.estimators.metrics import nrmse as nrmse
    from dsfr.estimators.metrics import nrmse_scorer as nrmse_scorer
    from dsfr.io import Scan as Scan
    from dsfr.io import scan as scan
    from dsfr.model.file import ModelFileError as ModelFileError
    from dsfr.model.model import Model as Model
    from dsfr.model.model import load as load
    from dsfr.training import TASKS as TASKS
    from dsfr.training import Settings as Settings
    from dsfr.training import make_shards as make_shards
    from dsfr.training import train as train

# Names are imported when first used: `import dsfr` and the command line start at once.
_HOME = {
    "Absence": "dsfr.engines",
    "DaskEngine": "dsfr.engines.dask.engine",
    "Faults": "dsfr.engines",
    "InProcessEngine": "dsfr.engines",
    "LapWNNRegressor": "dsfr.estimators",
    "MPIEngine": "dsfr.engines.mpi.engine",
    "MPIGossipEngine": "dsfr.engines.mpi.gossip",
    "MPINetworkEngine": "dsfr.engines.mpi.network",
    "Model": "dsfr.model.model",
    "ModelFileError": "dsfr.model.file",
    "RoundInfo": "dsfr.core.consensus.admm",
    "Rule": "dsfr.core.explain.rules",
    "SFRRegressor": "dsfr.estimators",
    "TASKS": "dsfr.training",
    "Scan": "dsfr.io",
    "Settings": "dsfr.training",
    "SingularSystemError": "dsfr.core.solve.cholesky",
    "load": "dsfr.model.model",
    "make_shards": "dsfr.training",
    "nrmse": "dsfr.estimators.metrics",
    "nrmse_scorer": "dsfr.estimators.metrics",
    "scan": "dsfr.io",
    "train": "dsfr.training",
    "with_checkpoint": "dsfr.engines.checkpoint.engine",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dsfr' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
