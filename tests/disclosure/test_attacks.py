"""Attacks that give rows away: each succeeds against plain sums, and fails against the protection."""

import numpy as np
import pytest

from dsfr.core.distillation.knots import padded
from dsfr.core.features.effects import Effects
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.link import Link
from dsfr.core.solve.effect_priors import single_effects
from dsfr.disclosure import Policy, PolicyError, function_rules, protect, protected_tasks
from dsfr.disclosure.rules import Request
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards
from dsfr.training.ensemble.teacher import link_arrays
from dsfr.training.tasks.messages import scalar, symmetric
from tests.disclosure.attacks import effects_rows, hard_clusters, hits, labeled_rows, rows_of_clusters
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
    hard = {"starts": np.zeros((8, 1, D)), "fuzzifier": scalar(1.0 + 1e-13), "least": scalar(5.0)}
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
    with pytest.raises(PolicyError, match="task 'count_below' is refused: its thresholds can be anywhere"):
        largest_value(open_engine(shards, Policy()))


def test_counts_on_the_grid_show_no_few_rows():
    """Not even to whoever sees one contribution."""
    X, y = table(240, 30)
    wire = Wiretap(shards_of(X, y, 3), protected_tasks(TASKS, policy=Policy()))
    engine = protect(wire, policy=True, masked=False)
    engine.sum("row_moments", {"seed": SEED, **RANGES})
    engine.sum("grid_counts", {**RANGES, "least": scalar(5.0)})
    for heard in wire.heard:
        steps = np.diff(heard["counts"], axis=1, prepend=0.0, append=heard["n_samples"])
        assert ((steps == 0.0) | (steps >= 5.0)).all()
    with pytest.raises(PolicyError, match="'grid_cells': counts that split off fewer rows than min_split, 5"):
        engine.sum("grid_counts", {**RANGES, "least": scalar(1.0)})


def student(ramp):
    """Two short rules along the first feature."""
    start, end = ramp
    return {
        "first_terms": np.array([[0.0, 0.0], [1.0, 0.0]]),
        "last_terms": np.array([[0.0, 0.0], [1.0, 0.0]]),
        "ramp_features": np.zeros(1),
        "ramp_starts": np.array([start]),
        "ramp_ends": np.array([end]),
    }


def teach(engine, link=Link()):  # noqa: B008
    """Owners keep the predictions of a model."""
    rules, target = rules_of(1), {"target_mean": scalar(0.0), "target_scale": scalar(1.0)}
    member = {f"{name}_0": array for name, array in rules.arrays().items()} | {"weights_0": np.ones(D + 1)}
    engine.sum("keep_teacher", {**RANGES, **target, **member, "shares": np.ones(1), **link_arrays(link, 0.0, 1.0)})


def rows_below(engine, threshold):
    """Number of rows whose first feature is below a threshold, from the masses of two short rules."""
    asked = {"student_weights": np.zeros(2 * (D + 1)), "target_mean": scalar(0.0), "target_scale": scalar(1.0)}
    asked |= {**student((threshold, threshold + 1e-12)), **RANGES, "masses_alone": scalar(1.0)}
    return float(engine.sum("measure_student", asked)["masses"][0])


def nearest_value_above(engine, value, rounds=36):
    """The smallest first feature above a value, by bisection on the masses of short rules."""
    low, high, before = value, 1.0, rows_below(engine, value)
    for _ in range(rounds):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rows_below(engine, middle) - before < 0.5 else (low, middle)
    return high


def test_ramps_of_short_rules_find_a_single_value_and_the_grid_stops_them():
    X, y = table(240, 60)
    shards = shards_of(X, y, 3)
    plain = open_engine(shards)
    teach(plain)
    wanted = np.sort(X[:, 0])[np.searchsorted(np.sort(X[:, 0]), 0.0)]
    assert abs(nearest_value_above(plain, 0.0) - wanted) < 1e-9
    guarded = open_engine(shards, Policy())
    teach(guarded)
    with pytest.raises(PolicyError, match="'ramps': values of column 0 that are not on the grid"):
        nearest_value_above(guarded, 0.0)


def test_limits_of_predictions_are_refused():
    X, y = table(240, 60)
    with pytest.raises(PolicyError, match="'link': limits or logarithms of predictions"):
        teach(open_engine(shards_of(X, y, 3), Policy()), Link(low=0.1))


def test_short_ranges_make_a_threshold_and_a_policy_refuses():
    X, y = table(240, 60)
    short = {"low": np.full(D, 0.3 - 1e-9), "high": np.full(D, 0.3 + 1e-9)}
    with pytest.raises(PolicyError, match="'ranges': other ranges than those that were declared, or shorter ones"):
        open_engine(shards_of(X, y, 3), Policy()).sum("row_moments", {"seed": SEED, **short})


def split_question(knots):
    one = {name: np.zeros((1, D)) for name in ("first_terms", "last_terms")}
    none = {name: np.empty(0) for name in ("ramp_features", "ramp_starts", "ramp_ends")}
    numbers = {"evaluated": np.array([0]), "candidates": np.array([0]), "line_features": np.arange(D)}
    return {**one, **none, **numbers, **RANGES, "knots": padded(np.array(knots))[None]}


def test_bins_of_one_row_give_it_away_and_columns_few_against_rows_do_not():
    X, y = table(240, 60)
    shards = shards_of(X, y, 3)
    plain = open_engine(shards)
    teach(plain)
    ends = np.sort(X[:, 0])
    bins = plain.sum("split_sums", split_question([(ends[119] + ends[120]) / 2.0, (ends[120] + ends[121]) / 2.0]))
    alone = bins["bins"][0, 0, 1]  # products of 1, both features and the prediction, over a single row
    assert hits(alone[None, 1 : D + 1], X) == 1
    guarded = open_engine(shards, Policy())
    teach(guarded)
    with pytest.raises(PolicyError, match="'bin_edges': values of column 0 that are not on the grid"):
        guarded.sum("split_sums", split_question([ends[119], ends[121]]))
    with pytest.raises(
        PolicyError, match=r"'bins': a bin of 4 columns with a mass of \d+ of the own rows, and the least .* is 12"
    ):
        guarded.sum("split_sums", split_question([0.0, 0.1]))
    allowed = guarded.sum("split_sums", split_question([-0.5, 0.5]))["bins"][0, 0]
    for part in allowed[allowed[:, 0] > 0.0]:
        # Rows are where (1, x) lies in the range of the products; few columns leave no other place out.
        assert np.linalg.matrix_rank(symmetric(part, D + 2)[: D + 1, : D + 1], tol=1e-6) == D + 1
        assert hits(part[None, 1 : D + 1] / part[0], X) == 0


def curves_of(n_knots, n_curves):
    """Triangular sets of both features, on the grid of [-1, 1]."""
    knots = np.repeat(np.linspace(-1.0, 1.0, n_knots)[:, None], D, axis=1)
    curves = np.repeat(np.eye(n_knots)[:, None, :n_curves], D, axis=1)
    return Effects(knots, curves, single_effects(D, n_curves), np.empty((0, 4), dtype=np.int64))


def test_pooled_sums_of_curves_give_labelled_rows_away_and_few_weights_hide_them():
    needs_cryptography()
    X, y = table(300, 12)
    shards = shards_of(X, y, 3)
    many = curves_of(11, 9)
    pooled = open_engine(shards, masked=True).sum("statistics", {**questions(many), **RANGES})
    assert hits(effects_rows(many, pooled["gram"], 12), X[:12]) >= 6
    X, y = table(900, 36)
    guarded = open_engine(shards_of(X, y, 3), Policy(), masked=True)
    with pytest.raises(PolicyError, match=r"'weights': 21 weights for 30 labels.* at most 10"):
        guarded.sum("statistics", {**questions(many), **RANGES})
    few = curves_of(5, 3)
    allowed = guarded.sum("statistics", {**questions(few), **RANGES})
    assert hits(effects_rows(few, allowed["gram"], few.n_outputs), X[:36]) == 0


@pytest.mark.parametrize("suffix", ["", "_0"])
def test_levels_and_products_of_three_and_of_curves_are_refused(suffix):
    knots, curves = np.repeat(np.linspace(-1.0, 1.0, 3)[:, None], 3, axis=1), np.zeros((3, 3, 1))
    lines = np.array([[0, 0, 1, 0]])
    X, y = table(240, 60)

    def problem(pairs, triples, *levels):
        levels = np.array(levels, dtype=np.int64).reshape(-1, 3)
        effects = Effects(knots, curves, single_effects(3, 1), pairs, triples, levels)
        broadcast = {f"{name}{suffix}": array for name, array in effects.arrays().items()}
        return function_rules.effects(Request(Policy(), next(iter(shards_of(X, y, 3).values())), {}, broadcast, 60, {}))

    assert problem(lines, np.empty((0, 6), dtype=np.int64)) == function_rules.NO_RANGES
    assert "products of two curves" in problem(lines + np.array([0, 1, 0, 0]), np.empty((0, 6), dtype=np.int64))
    assert "products of three features" in problem(lines, np.array([[0, 0, 1, 0, 2, 0]]))
    assert "levels" in problem(lines, np.empty((0, 6), dtype=np.int64), (0, 1, 1))


def test_a_sample_of_few_rows_is_refused():
    X, y = table(240, 60)
    engine = open_engine(shards_of(X, y, 3), Policy())
    member = {f"{name}_0": array for name, array in rules_of(1).arrays().items()} | {"weights_0": np.ones(D + 1)}
    asked = {**RANGES, "target_mean": scalar(0.0), "target_scale": scalar(1.0), **member, "shares": np.ones(1)}
    engine.sum("compare", {**asked, "sample": scalar(1.0)})
    with pytest.raises(PolicyError, match="'sample': a sample of fewer own rows than min_rows, 50"):
        engine.sum("compare", {**asked, "sample": scalar(0.02)})


@pytest.mark.parametrize("n_pairs", [2, -1])
def test_few_pairs_are_refused(n_pairs):
    X, y = table(240, 60)
    engine = open_engine(shards_of(X, y, 3), Policy())
    few = {"n_pairs": np.asarray(n_pairs), "most_pairs": np.asarray(2), "mix_concentration": scalar(0.75)}
    with pytest.raises(PolicyError, match="'pairs': 2 pairs of unlabelled rows for 6 weights, and at least 18"):
        engine.sum("statistics", {**questions(rules_of(2)), **few})


def test_a_rule_for_a_few_rows_is_refused():
    X, y = table(240, 60)
    engine = open_engine(shards_of(X, y, 3), Policy())
    corner = Rules(np.array([[0.8, 0.8], [0.99, 0.99]]), np.full((2, D), 0.05))
    with pytest.raises(PolicyError, match=r"'rule_mass': a rule with a mass of .* and min_mass is 5"):
        engine.sum("statistics", questions(corner))
