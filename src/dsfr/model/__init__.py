"""The trained model: predict, explain, simplify, save, load."""

from dsfr.model.inputs import as_matrix
from dsfr.model.model import Model, load

__all__ = ["Model", "as_matrix", "load"]
