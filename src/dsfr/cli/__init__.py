"""The command line: commands read, call, write and print; each imports only what it needs."""

from dsfr.cli import demo, explaining, federated, federation, paper, planning, predicting, reporting, training
from dsfr.cli.group import main
from dsfr.cli.training import METHOD_NAMES

__all__ = [
    "METHOD_NAMES",
    "demo",
    "explaining",
    "federated",
    "federation",
    "main",
    "paper",
    "planning",
    "predicting",
    "reporting",
    "training",
]
