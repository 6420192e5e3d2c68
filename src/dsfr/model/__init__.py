"""The trained model: predict, explain, simplify, save, load."""

from dsfr.model.model import Model, as_matrix, load

__all__ = ["Model", "as_matrix", "load"]
