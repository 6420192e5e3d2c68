"""Scaled rows are kept while clusters are sought, of small tables alone, and never beyond."""

import numpy as np
import pytest

from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import InProcessEngine
from dsfr.training import scaled
from dsfr.training.settings import Settings
from dsfr.training.shard import make_shards
from dsfr.training.tasks.catalog import TASKS
from dsfr.training.train import train


def table(n=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.where(np.arange(n) < 40, X[:, 0] + 0.1 * rng.standard_normal(n), np.nan)


def trained(X, y):
    shards = make_shards(X, y, np.arange(len(y)) % 2)
    return shards, train(InProcessEngine(shards, TASKS), Settings()).predictor.predict(X)


def test_nothing_is_kept_after_training():
    shards, _ = trained(*table())
    assert all(shard.kept.scaled is None for shard in shards.values())


def test_the_model_does_not_depend_on_what_is_kept(monkeypatch: pytest.MonkeyPatch):
    X, y = table()
    kept = trained(X, y)[1]
    monkeypatch.setattr(scaled, "MOST_ENTRIES", 0)
    np.testing.assert_array_equal(trained(X, y)[1], kept)


def test_other_ranges_limits_or_rows_are_scaled_again():
    X, y = table()
    shard = make_shards(X, y, np.zeros(len(y)))["0.0"]
    wide, narrow = Ranges(np.full(3, -2.0), np.full(3, 2.0)), Ranges(np.full(3, -0.5), np.full(3, 0.5))
    known = {"limit_low": narrow.low, "limit_high": narrow.high, "target_limits": np.array([-1.0, 1.0])}
    for _ in range(2):
        np.testing.assert_array_equal(shard.scaled(wide), scale_features(X, wide))
        np.testing.assert_array_equal(shard.scaled(narrow), scale_features(X, narrow))
        limited = shard.within_limits(known)
        assert limited.scaled(wide) is shard.within_limits(known).scaled(wide)
        np.testing.assert_array_equal(limited.scaled(wide), scale_features(narrow.clip(X), wide))
        np.testing.assert_array_equal(shard.labeled().scaled(wide), scale_features(X[:40], wide))
