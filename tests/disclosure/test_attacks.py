"""Attacks that give rows away: each succeeds against plain sums, and fails against the protection."""

import numpy as np
import pytest

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.disclosure import Policy, PolicyError, protect, protected_tasks
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards
from dsfr.training.tasks.messages import scalar
from tests.disclosure.attacks import hard_clusters, hits, labeled_rows, rows_of_clusters
from tests.disclosure.crypto import needs_cryptography

D = 2
RANGES = {"low": -np.ones(D), "high": np.ones(D)}
SEED = np.asarray(0, dtype=np.int64)


def table(n_rows, n_labels, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, D))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n_rows)
    y[n_labels:] = np.nan
    return X, y


def shards_of(X, y, n_owners):
    return make_shards(X, y, np.arange(len(y)) % n_owners)


def rules_of(n_rules, seed=1):
    rng = np.random.default_rng(seed)
    return Rules(rng.uniform(-0.8, 0.8, (n_rules, D)), np.full((n_rules, D), 0.4))


def questions(rules):
    return {**rules.arrays(), "target_mean": scalar(0.0), "target_scale": scalar(1.0)}


def open_engine(shards, policy=None, masked=False):
    """An engine that has been told the ranges."""
    tasks = protected_tasks(TASKS, policy=policy, masked=masked) if policy or masked else TASKS
    engine = protect(InProcessEngine(shards, tasks), policy=policy is not None, masked=masked)
    engine.sum("row_moments", {"seed": SEED, **RANGES})
    return engine


class Wiretap(InProcessEngine):
    """A transport that keeps the contributions of every agent."""

    def _contributions(self, task, verb, broadcast):
        self.heard = super()._contributions(task, verb, broadcast)
        return self.heard


def test_one_owner_s_statistics_give_its_labelled_rows_away_and_masks_hide_them():
    needs_cryptography()
    X, y = table(180, 9)
    shards, rules = make_shards(X, y, np.repeat([0, 1, 2], 60)), rules_of(5)
    plain = Wiretap(shards, TASKS)
    plain.sum("row_moments", {"seed": SEED, **RANGES})
    plain.sum("statistics", questions(rules))
    rows, targets = labeled_rows(rules, plain.heard[0]["gram"], plain.heard[0]["moment"], 9, 60)
    assert hits(rows, X[:9]) == 9
    np.testing.assert_allclose(np.sort(targets), np.sort(y[:9]), atol=1e-5)

    wire = Wiretap(shards, protected_tasks(TASKS, masked=True))
    masked = protect(wire, policy=False, masked=True)
    masked.sum("row_moments", {"seed": SEED, **RANGES})
    masked.sum("statistics", questions(rules))
    seen = {name: _as_numbers(wire.heard[0][f"f_{name}"]) for name in ("gram", "moment")}
    rows, _ = labeled_rows(rules, seen["gram"], seen["moment"], 9, 20)
    assert hits(rows, X[:9]) == 0


def _as_numbers(parts):
    """What a wiretap makes of masked numbers without the keys."""
    return parts[..., 2].astype(np.float64) + parts[..., 1] / 2.0**32


def test_pooled_sums_give_labelled_rows_away_and_few_weights_hide_them():
    """What a coordinator sees even if nobody sees single contributions."""
    needs_cryptography()
    X, y = table(300, 20)
    shards, many, few = shards_of(X, y, 4), rules_of(8), rules_of(2)
    pooled = open_engine(shards, masked=True).sum("statistics", questions(many))
    rows, targets = labeled_rows(many, pooled["gram"], pooled["moment"], 20, 150)
    assert hits(rows, X[:20]) == 20
    assert max(np.abs(y[:20, None] - targets).min(axis=1)) < 1e-4

    guarded = open_engine(shards, Policy(), masked=True)
    with pytest.raises(
        PolicyError, match=r"'weights': 24 weights for 20 labels.*max_weights_per_label is 0.333: at most 6"
    ):
        guarded.sum("statistics", questions(many))
    allowed = guarded.sum("statistics", questions(few))
    rows, _ = labeled_rows(few, allowed["gram"], allowed["moment"], 20, 150)
    assert hits(rows, X[:20]) == 0


def test_a_coordinator_off_protocol_gets_rows_from_hard_clusters_and_a_policy_refuses():
    X, y = table(240, 30)
    shards = shards_of(X, y, 3)
    hard = {"starts": np.zeros((8, 1, D)), "fuzzifier": scalar(1.0 + 1e-13)}
    centers = hard_clusters(1500, D)
    engine = open_engine(shards)
    engine.sum("start_objectives", hard)
    sums = engine.sum("cluster_sums", {"centers": centers})
    assert hits(rows_of_clusters(sums["mass"], sums["total"]), X) > 150

    guarded = open_engine(shards, Policy())
    with pytest.raises(PolicyError, match=r"'fuzzifier': a fuzzifier of 1.0000000000001, and min_fuzzifier is 1.05"):
        guarded.sum("start_objectives", hard)
    guarded.sum("start_objectives", {**hard, "fuzzifier": scalar(1.05)})
    with pytest.raises(PolicyError, match="'centers': 1500 centers, and max_centers is 64"):
        guarded.sum("cluster_sums", {"centers": centers})
    with pytest.raises(PolicyError, match=r"'cluster_mass': a cluster with a mass of .* and min_mass is 5"):
        guarded.sum("cluster_sums", {"centers": hard_clusters(64, D)})


def largest_value(engine, rounds=14):
    """The largest value of the first column, by narrowing thresholds."""
    low, high = -1.0, 1.0
    for _ in range(rounds):
        grid = np.linspace(low, high, 33)
        thresholds = np.broadcast_to(grid, (2, D, 33)).copy()
        asked = {"thresholds": thresholds, "target_thresholds": np.broadcast_to(np.linspace(-9, 9, 33), (2, 33)).copy()}
        counted = engine.sum("count_below", asked)
        place = int((counted["counts"][0, 0] >= counted["n_samples"]).argmax())
        low, high = grid[max(place - 1, 0)], grid[place]
    return high


def test_thresholds_find_a_single_value_and_a_policy_refuses():
    X, y = table(240, 30)
    shards = shards_of(X, y, 3)
    assert abs(largest_value(open_engine(shards)) - X[:, 0].max()) < 1e-12
    with pytest.raises(PolicyError, match=r"'thresholds': thresholds that split off \d rows in .*, and min_split is 5"):
        largest_value(open_engine(shards, Policy()))


def test_a_rule_for_a_few_rows_is_refused():
    X, y = table(240, 60)
    engine = open_engine(shards_of(X, y, 3), Policy())
    corner = Rules(np.array([[0.8, 0.8], [0.99, 0.99]]), np.full((2, D), 0.05))
    with pytest.raises(PolicyError, match=r"'rule_mass': a rule with a mass of .* and min_mass is 5"):
        engine.sum("statistics", questions(corner))
