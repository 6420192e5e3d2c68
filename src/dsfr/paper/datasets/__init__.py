"""The paper's six data sets, and how a labelled table becomes its situation: few labels, several owners."""

from dsfr.paper.datasets.artificial import make_artificial
from dsfr.paper.datasets.catalog import CATALOG, DatasetError, Source
from dsfr.paper.datasets.loading import (
    NAMES,
    Place,
    Values,
    load,
    load_airfoil,
    load_artificial,
    load_ccpp,
    load_ch,
    load_kch,
    load_values,
    load_wmsl,
    locate,
)
from dsfr.paper.datasets.partitions import split_by_cluster, split_by_column, split_by_dirichlet, split_evenly
from dsfr.training.labels import hide_labels, hide_labels_by_agent

__all__ = [
    "CATALOG",
    "NAMES",
    "DatasetError",
    "Place",
    "Source",
    "Values",
    "hide_labels",
    "hide_labels_by_agent",
    "load",
    "load_airfoil",
    "load_artificial",
    "load_ccpp",
    "load_ch",
    "load_kch",
    "load_values",
    "load_wmsl",
    "locate",
    "make_artificial",
    "split_by_cluster",
    "split_by_column",
    "split_by_dirichlet",
    "split_evenly",
]
