"""scikit-learn estimators: thin shells around the training protocol."""

from dsfr.estimators.lapwnn import LapWNNRegressor
from dsfr.estimators.sfr import SFRRegressor

__all__ = ["LapWNNRegressor", "SFRRegressor"]
