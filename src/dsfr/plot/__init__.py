"""Plots of models and trainings with matplotlib; every function takes ``ax`` and returns the axes it drew on."""

from dsfr.plot.fit import predictions, response
from dsfr.plot.rules import memberships, rule_map
from dsfr.plot.short_rules import price, tree
from dsfr.plot.training import communication, convergence

__all__ = ["communication", "convergence", "memberships", "predictions", "price", "response", "rule_map", "tree"]
