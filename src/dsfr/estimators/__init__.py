"""scikit-learn estimators: thin shells around the training protocol."""

from dsfr.estimators.auto import AutoSFRRegressor
from dsfr.estimators.engines import Dask, InProcess
from dsfr.estimators.lapwnn import LapWNNRegressor
from dsfr.estimators.rules import RuleRegressor
from dsfr.estimators.sfr import SFRRegressor

__all__ = ["AutoSFRRegressor", "Dask", "InProcess", "LapWNNRegressor", "RuleRegressor", "SFRRegressor"]
