"""Several rule bases: what sets them apart, which features they learn to look at, and how many there are."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dsfr.core.prediction.stacking import LeftOut
from dsfr.core.relevance.slope_shrinkage import Shrinkage
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.evidence import maximize_evidence
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards, train
from dsfr.training.clustering.clusters import Variation, agree_rules
from dsfr.training.ensemble.rule_bases import _steps
from dsfr.training.scaling.robust import agree_scaling
from dsfr.training.tasks.messages import unpack, unpack_statistics
from tests.laws.test_averaging import AUTO
from tests.tables import Listener, make_settings, make_table, owners_of


def listened(X, y, n_agents=3, seed=0, **told):
    engine = Listener(make_shards(X, y, owners_of(seed, len(y), n_agents)))
    return train(engine, make_settings(**AUTO | told, seed=seed)), engine


def test_a_single_model_is_the_best_of_three_as_relevances_settle():
    X, _, y = make_table(0)
    training, engine = listened(X, y, n_models=1)
    evidences = []
    for told, summed in engine.heard["statistics"]:
        total = unpack_statistics(summed)
        if "stretch" in told:
            total = total.mapped(Shrinkage.of(told["stretch"], len(told["centers"])).times)
        evidences.append(maximize_evidence(total).log_evidence)
    assert len(evidences) == 3
    assert training.tuned.log_evidence == max(evidences)


def test_features_that_do_not_matter_stop_spreading_the_clusters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.where(np.arange(400) < 100, np.sin(2.0 * X[:, 1]), np.nan)
    for relevance, ratio in ((None, (0.0, 2.0)), ("slopes", (4.0, np.inf)), ("evidence", (4.0, np.inf))):
        training, _ = listened(X, y, n_models=1, relevance=relevance, n_rules=6)
        spread = training.predictor.basis.centers.std(axis=0)
        assert ratio[0] < spread[1] / np.delete(spread, 1).max() < ratio[1]


def test_a_stretched_rule_base_is_that_of_stretched_columns():
    X, _, y = make_table(1)
    stretch = np.linspace(0.2, 1.0, X.shape[1])
    shards, told = make_shards(X, y, np.zeros(len(y))), make_settings(solver="sums", n_rules=3, tol=1e-6)
    ranges = Ranges.of(X)
    found = []
    for variation in (Variation(1, stretch), Variation(1)):
        engine = InProcessEngine(shards, TASKS)
        population = agree_scaling(engine, told)
        ranged = population if variation.stretch is not None else replace(population, ranges=ranges.stretched(stretch))
        found.append(agree_rules(engine, told, ranged, lambda _: None, variation)[0])
    np.testing.assert_allclose(found[0].centers * stretch, found[1].centers, atol=1e-9)
    np.testing.assert_allclose(found[0].widths * stretch, found[1].widths, rtol=1e-9)


def test_firing_by_the_mean_widens_sets_by_the_root_of_the_number_of_features():
    X, _, y = make_table(1)
    told = {"relevance": None, "n_models": 1}
    by_sum, by_mean = (listened(X, y, firing=firing, **told)[0].predictor.basis for firing in ("sum", "mean"))
    np.testing.assert_array_equal(by_mean.centers, by_sum.centers)
    np.testing.assert_allclose(by_mean.widths, np.sqrt(X.shape[1]) * by_sum.widths)


def test_models_differ_in_rules_widths_and_kinds_of_pairs():
    X, _, y = make_table(1)
    training, engine = listened(X, y, n_models=4)
    assert [told["n_rules"] for told in training.models] == [3, 3, 6, 6]
    assert [told["width_scale"] for told in training.models] == [1.0, 2.25, 1.0, 2.25]
    assert [told["near_pairs"] for told in training.models] == [0.0, 1.0, 0.0, 1.0]
    assert ["near" in broadcast for broadcast, _ in engine.heard["statistics"]] == [False, True, False, True]


def test_the_penalty_of_near_pairs_is_as_large_as_that_of_random_ones():
    X, _, y = make_table(1, n_rows=400)
    sizes = []
    for pairs in ("random", "local"):
        _, engine = listened(X, y, n_models=1, relevance=None, pairs=pairs)
        [(_, summed)] = engine.heard["statistics"]
        sizes.append(np.trace(unpack_statistics(summed).unlabeled_gram))
    assert 0.2 < sizes[1] / sizes[0] < 5.0


def test_shares_are_stacked_when_tuned_by_leave_one_out():
    X, _, y = make_table(1)
    training, engine = listened(X, y, n_models=4, tune="loo")
    [(_, summed)] = engine.heard["stack"]
    shares = unpack(LeftOut, summed).shares()
    np.testing.assert_allclose([told["share"] for told in training.models], shares[shares > 0.0], atol=1e-6)


@pytest.mark.parametrize(
    ("scores", "n_features", "expected"),
    [
        ([0.0] * 12, 3, [5, 5, 10, 10, 20, 20]),
        ([1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 2.0], 3, [5, 5, 10, 10, 20, 20, 40, 40]),
        (list(range(12)), 1, [5, 5, 10, 10, 20, 20, 40, 40, 80, 80, 160, 160]),
        (list(range(12)), 40, [5, 5, 10, 10]),
        (list(range(12)), 200, [5, 5]),
    ],
)
def test_more_rules_are_tried_while_they_help_and_can_be_afforded(scores, n_features, expected):
    trained, tried = [], []
    population = SimpleNamespace(ranges=SimpleNamespace(low=np.zeros(n_features)), stated_labels=50.0)
    for step in _steps(make_settings(n_models="auto", tune="evidence"), population, trained):
        trained.append(SimpleNamespace(score=scores[len(trained)]))
        tried.append(step.n_rules)
    assert tried == expected


@pytest.mark.parametrize(("cap", "expected"), [(1.0, [5, 5, 10, 10]), (0.5, [5, 5]), (0.2, [2, 2]), (0.07, [])])
def test_rule_bases_stay_within_the_weights_that_labels_allow(cap, expected):
    settings = make_settings(n_models="auto", tune="evidence", max_weights_per_label=cap)
    population = SimpleNamespace(ranges=SimpleNamespace(low=np.zeros(3)), stated_labels=50.0)
    tried = [step.n_rules for step in _steps(settings, population, [SimpleNamespace(score=0.0)] * 12)]
    assert tried == expected
    assert all(n_rules * 4 <= cap * 50 for n_rules in tried)
