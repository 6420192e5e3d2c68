"""The paper's six data sets, partitions of rows between agents, and functions that hide labels."""

from dsfr.paper.datasets.artificial import make_artificial
from dsfr.paper.datasets.catalog import CATALOG, Dataset, DatasetError
from dsfr.paper.datasets.loading import NAMES, Location, Values, load, load_values, locate
from dsfr.paper.datasets.partitions import split_by_cluster, split_by_column, split_by_dirichlet, split_evenly
from dsfr.training.labels import hide_labels, hide_labels_by_agent

__all__ = [
    "CATALOG",
    "NAMES",
    "Dataset",
    "DatasetError",
    "Location",
    "Values",
    "hide_labels",
    "hide_labels_by_agent",
    "load",
    "load_values",
    "locate",
    "make_artificial",
    "split_by_cluster",
    "split_by_column",
    "split_by_dirichlet",
    "split_evenly",
]
