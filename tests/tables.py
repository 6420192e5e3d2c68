"""Small tables and engines for tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, Settings, make_shards, train
from dsfr.training.settings import FAMILIES


def make_table(seed: int, n_rows: int = 120, n_features: int = 3, n_labels: int = 30, noise: float = 0.1):
    """A bent surface with a few labels; raw units differ from column to column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, n_features)) * 10.0 ** np.arange(n_features) + 3.0
    Z = (X - 3.0) / 10.0 ** np.arange(n_features)
    y = 50.0 + 20.0 * np.sin(2.0 * Z[:, 0]) + 5.0 * Z.sum(axis=1) + noise * rng.standard_normal(n_rows)
    hidden = y.copy()
    hidden[rng.permutation(n_rows)[n_labels:]] = np.nan
    return X, y, hidden


def owners_of(seed: int, n_rows: int, n_agents: int, skew: float = 1.0):
    """Names of owners; every owner has at least one row, shares follow a Dirichlet draw."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_agents, skew))
    owners = np.concatenate([np.arange(n_agents), rng.choice(n_agents, n_rows - n_agents, p=shares)])
    return np.array([f"site-{owner}" for owner in rng.permutation(owners)])


def make_settings(**told):
    """Settings from flat hyperparameters, such as laws draw: each goes to the component that has it, if any does.

    ``weight`` is that of the penalty, ``tol`` that of the solver and so on.
    """
    own = {name: told.pop(name) for name in list(told) if name in Settings.__dataclass_fields__}
    settings = Settings(**own)
    changed = {}
    for name in FAMILIES:
        component = getattr(settings, name)
        if component is not None:
            arguments = {key: value for key, value in told.items() if key in component.get_params()}
            changed[name] = component.changed_by(arguments)
    return replace(settings, **changed)


def train_on(X, y, owners, *, serialize: bool = True, **settings):
    """Train in-process with every message serialised; returns the training and its engine."""
    shards = make_shards(X, y, np.asarray(owners))
    engine = InProcessEngine(list(shards.values()), TASKS, serialize=serialize)
    return train(engine, make_settings(**settings)), engine


class SumsAlone(InProcessEngine):
    """The reference of engines on which sums alone leave the agents."""

    only_sums = True

    @property
    def stated_labels(self):
        """As owners with the default policy state them."""
        return sum(agent.shard.n_labeled // 5 * 5 for agent in self._agents.values())


class Listener(InProcessEngine):
    """Keeps what was asked and answered in every sum."""

    def __init__(self, shards):
        super().__init__(shards, TASKS)
        self.heard = {}

    def sum(self, task, broadcast):
        result = super().sum(task, broadcast)
        self.heard.setdefault(task, []).append((broadcast, result))
        return result
