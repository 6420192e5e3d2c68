"""Distributed semi-supervised fuzzy regression.

Readable fuzzy-rule models from few labels and many unlabelled rows, on data that stays with its owners.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from dsfr.core.consensus.admm import RoundInfo as RoundInfo
    from dsfr.core.explain.rules import Rule as Rule
    from dsfr.core.solve.cholesky import SingularSystemError as SingularSystemError
    from dsfr.disclosure import Policy as Policy
    from dsfr.disclosure import PolicyError as PolicyError
    from dsfr.engines import Absence as Absence
    from dsfr.engines import Faults as Faults
    from dsfr.engines import InProcessEngine as InProcessEngine
    from dsfr.engines.checkpoint.engine import with_checkpoint as with_checkpoint
    from dsfr.engines.dask.engine import DaskEngine as DaskEngine
    from dsfr.engines.mpi.engine import MPIEngine as MPIEngine
    from dsfr.engines.mpi.gossip import MPIGossipEngine as MPIGossipEngine
    from dsfr.engines.mpi.network import MPINetworkEngine as MPINetworkEngine
    from dsfr.estimators import AutoSFRRegressor as AutoSFRRegressor
    from dsfr.estimators import Dask as Dask
    from dsfr.estimators import InProcess as InProcess
    from dsfr.estimators import LapWNNRegressor as LapWNNRegressor
    from dsfr.estimators import RuleRegressor as RuleRegressor
    from dsfr.estimators import SFRRegressor as SFRRegressor
    from dsfr.estimators.metrics import nrmse as nrmse
    from dsfr.estimators.metrics import nrmse_scorer as nrmse_scorer
    from dsfr.estimators.model_selection import LabeledKFold as LabeledKFold
    from dsfr.io import Scan as Scan
    from dsfr.io import scan as scan
    from dsfr.model.file import ModelFileError as ModelFileError
    from dsfr.model.model import Model as Model
    from dsfr.model.model import load as load
    from dsfr.training import ADMM as ADMM
    from dsfr.training import ICR as ICR
    from dsfr.training import TASKS as TASKS
    from dsfr.training import Conjugate as Conjugate
    from dsfr.training import Decentralized as Decentralized
    from dsfr.training import Ensemble as Ensemble
    from dsfr.training import FewRounds as FewRounds
    from dsfr.training import FuzzyRules as FuzzyRules
    from dsfr.training import Graph as Graph
    from dsfr.training import PrivateSums as PrivateSums
    from dsfr.training import RangeScaling as RangeScaling
    from dsfr.training import RobustScaling as RobustScaling
    from dsfr.training import Settings as Settings
    from dsfr.training import Sums as Sums
    from dsfr.training import make_shards as make_shards
    from dsfr.training import train as train

# Names are imported when first used: `import dsfr` and the command line start at once.
_HOME = {
    "ADMM": "dsfr.training",
    "Absence": "dsfr.engines",
    "AutoSFRRegressor": "dsfr.estimators",
    "Conjugate": "dsfr.training",
    "Dask": "dsfr.estimators",
    "DaskEngine": "dsfr.engines.dask.engine",
    "Decentralized": "dsfr.training",
    "Ensemble": "dsfr.training",
    "Faults": "dsfr.engines",
    "FewRounds": "dsfr.training",
    "FuzzyRules": "dsfr.training",
    "Graph": "dsfr.training",
    "ICR": "dsfr.training",
    "InProcess": "dsfr.estimators",
    "InProcessEngine": "dsfr.engines",
    "LabeledKFold": "dsfr.estimators.model_selection",
    "LapWNNRegressor": "dsfr.estimators",
    "MPIEngine": "dsfr.engines.mpi.engine",
    "MPIGossipEngine": "dsfr.engines.mpi.gossip",
    "MPINetworkEngine": "dsfr.engines.mpi.network",
    "Model": "dsfr.model.model",
    "ModelFileError": "dsfr.model.file",
    "Policy": "dsfr.disclosure",
    "PolicyError": "dsfr.disclosure",
    "PrivateSums": "dsfr.training",
    "RangeScaling": "dsfr.training",
    "RobustScaling": "dsfr.training",
    "RoundInfo": "dsfr.core.consensus.admm",
    "Rule": "dsfr.core.explain.rules",
    "RuleRegressor": "dsfr.estimators",
    "SFRRegressor": "dsfr.estimators",
    "Scan": "dsfr.io",
    "Settings": "dsfr.training",
    "SingularSystemError": "dsfr.core.solve.cholesky",
    "Sums": "dsfr.training",
    "TASKS": "dsfr.training",
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
