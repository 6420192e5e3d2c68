"""Distributed semi-supervised fuzzy regression.

Readable fuzzy-rule models from few labels and many unlabelled rows, on data that stays with its owners.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from dsfr.core.consensus import RoundInfo as RoundInfo
    from dsfr.core.explain import Rule as Rule
    from dsfr.core.linear import SingularSystemError as SingularSystemError
    from dsfr.engines import Absence as Absence
    from dsfr.engines import Faults as Faults
    from dsfr.engines import InProcessEngine as InProcessEngine
    from dsfr.engines.checkpoint import with_checkpoint as with_checkpoint
    from dsfr.engines.dask import DaskEngine as DaskEngine
    from dsfr.engines.mpi import MPIEngine as MPIEngine
    from dsfr.engines.mpi_network import MPINetworkEngine as MPINetworkEngine
    from dsfr.estimators import LapWNNRegressor as LapWNNRegressor
    from dsfr.estimators import SFRRegressor as SFRRegressor
    from dsfr.metrics import nrmse as nrmse
    from dsfr.metrics import nrmse_scorer as nrmse_scorer
    from dsfr.model import Model as Model
    from dsfr.model import load as load
    from dsfr.modelfile import ModelFileError as ModelFileError
    from dsfr.protocol import TASKS as TASKS
    from dsfr.protocol import Settings as Settings
    from dsfr.protocol import make_shards as make_shards
    from dsfr.protocol import train as train
    from dsfr.streaming import Scan as Scan
    from dsfr.streaming import scan as scan

# Names are imported when first used: `import dsfr` and the command line start at once.
_HOME = {
    "Absence": "dsfr.engines",
    "DaskEngine": "dsfr.engines.dask",
    "Faults": "dsfr.engines",
    "InProcessEngine": "dsfr.engines",
    "LapWNNRegressor": "dsfr.estimators",
    "MPIEngine": "dsfr.engines.mpi",
    "MPINetworkEngine": "dsfr.engines.mpi_network",
    "Model": "dsfr.model",
    "ModelFileError": "dsfr.modelfile",
    "RoundInfo": "dsfr.core.consensus",
    "Rule": "dsfr.core.explain",
    "SFRRegressor": "dsfr.estimators",
    "TASKS": "dsfr.protocol",
    "Scan": "dsfr.streaming",
    "Settings": "dsfr.protocol",
    "SingularSystemError": "dsfr.core.linear",
    "load": "dsfr.model",
    "make_shards": "dsfr.protocol",
    "nrmse": "dsfr.metrics",
    "nrmse_scorer": "dsfr.metrics",
    "scan": "dsfr.streaming",
    "train": "dsfr.protocol",
    "with_checkpoint": "dsfr.engines.checkpoint",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dsfr' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
