"""Samples of rows: chosen by values alone, with enough different rows, and no more of them in memory than stated."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr.core.sampling import SAMPLE_ROWS, effective_rows, highest_hash, in_sample, sample_share
from dsfr.core.scaling.affine import Ranges
from dsfr.training import make_shards, train
from dsfr.training.changed_rows import LimitedRows, LogRows
from dsfr.training.rows import ArrayRows, DistinctRows, labeled_only, weighted
from dsfr.training.shard import Shard
from tests.tables import Listener, make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)


def test_samples_depend_on_values_alone():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20_000, 3))
    chosen = X[in_sample(X, highest_hash(0.25))]
    assert len(chosen) / len(X) == pytest.approx(0.25, abs=0.02)
    order = rng.permutation(len(X))
    parts = [part[in_sample(part, highest_hash(0.25))] for part in np.array_split(X[order], 7)]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts), axis=0), np.sort(chosen, axis=0))


@given(st.floats(1.0, 1e12))
def test_a_sample_has_enough_rows_and_less_than_twice_as_many(n):
    share = sample_share(n)
    assert share == 1.0 or SAMPLE_ROWS <= share * n < 2 * SAMPLE_ROWS
    assert np.log2(share) == np.round(np.log2(share))


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_equal_rows_are_worth_as_much_as_there_are_kinds_of_them(kinds, copies):
    n = kinds * copies
    assert effective_rows(n, kinds * copies * (copies - 1) / 2) == pytest.approx(kinds)


def test_a_table_of_few_different_rows_is_not_sampled():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (2000, 4)).astype(np.float64)
    y = np.where(np.arange(2000) < 60, X @ [3.0, 1.0, 0.5, 0.0] + 0.1 * rng.standard_normal(2000), np.nan)
    told = make_settings(n_models=2, tune="evidence", relevance="evidence", n_rules=2, solver="sums", tol=1e-2)
    with patch("dsfr.core.sampling.SAMPLE_ROWS", 100):
        sampled, whole = (train(Listener(make_shards(rows, y, np.zeros(2000))), told) for rows in (_spread(X), X))
    assert sampled.sample < 1.0
    assert whole.sample == 1.0


def _spread(X):
    return X + 1e-3 * np.random.default_rng(1).standard_normal(X.shape)


@settings(max_examples=10)
@given(seeds, st.integers(2, 4))
def test_shards_of_a_split_have_the_rows_of_the_sample_of_the_whole(seed, n_agents):
    X, _, y = make_table(seed, n_rows=300)
    whole = make_shards(X, y, np.zeros(len(y)))["0.0"].sampled(0.5)
    parts = [shard.sampled(0.5) for shard in make_shards(X, y, owners_of(seed, len(y), n_agents)).values()]
    together = np.concatenate([part.rows.X for part in parts])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(whole.rows.X, axis=0))


def test_a_sample_is_found_once_and_again_where_rows_or_share_change():
    X, _, y = make_table(0)
    shard = make_shards(X, y, np.zeros(len(y)))["0.0"]
    known = {"limit_low": X.min(axis=0), "limit_high": X.mean(axis=0), "target_limits": np.array([0.0, 1e3])}
    first, limited = shard.sampled(0.5), shard.within_limits(known).sampled(0.5)
    assert limited.rows.rows is first.rows
    np.testing.assert_array_equal(limited.collected()[0], np.minimum(first.rows.X, X.mean(axis=0)))
    assert shard.sampled(0.25).n_samples < first.n_samples
    notes = {"kept_rows": np.packbits(np.arange(len(y)) > 9), "kept_counts": np.array([len(y) - 10, 0])}
    fewer = shard.without_duplicates(notes)
    again = fewer.sampled(0.5)
    assert again.n_samples < first.n_samples
    assert shard.without_duplicates(notes).sampled(0.5).rows is again.rows
    assert shard.sampled(1.0) is shard


def test_a_sample_never_takes_more_memory_than_stated():
    X, _, _ = make_table(0, n_rows=500)
    copies = np.concatenate([X, X[:1].repeat(300, axis=0)])
    shard = Shard(ArrayRows(copies, np.full(800, np.nan)), 0)
    with patch("dsfr.training.sample.MOST_SAMPLED", 40):
        found = shard.sampled(0.9)
        order = np.random.default_rng(0).permutation(800)
        same = Shard(ArrayRows(copies[order], np.full(800, np.nan)), 0).sampled(0.9)
    assert 0 < found.n_samples <= 40
    np.testing.assert_array_equal(np.sort(found.rows.X, axis=0), np.sort(same.rows.X, axis=0))


@settings(max_examples=30)
@given(seeds, st.floats(0.0, 1.0), st.booleans())
def test_labelled_rows_are_those_of_a_pass_over_all(seed, share, weighty):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 90))
    X, y = rng.standard_normal((n, 2)), np.where(rng.random(n) < share, rng.uniform(-1.0, 3.0, n), np.nan)
    source = ArrayRows(X, y, rng.uniform(0.5, 2.0, n) if weighty else None)
    kept = rng.random(n) < 0.8
    distinct = DistinctRows(source, np.packbits(kept), int(kept.sum()), int((kept & ~np.isnan(y)).sum()))
    rows = LimitedRows(LogRows(distinct), Ranges(np.full(2, -0.5), np.full(2, 0.5)), np.array([-1.0, 0.5]))
    found, expected = _together(labeled_only(rows)), _together(rows)
    labeled = ~np.isnan(expected[1])
    for ours, plain in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, plain[labeled])
    assert labeled_only(rows).n_samples == labeled.sum()


def _together(rows):
    batches = [(np.empty((0, 2)), np.empty(0), np.empty(0))]
    batches += [(X, y, np.ones(len(y)) if weights is None else weights) for X, y, weights in weighted(rows)]
    return [np.concatenate(part) for part in zip(*batches, strict=True)]


def test_short_rules_and_their_teacher_from_a_sample_are_nearly_those_of_all_rows():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1.0, 1.0, (1000, 2))
    truth = np.sin(2.0 * X[:, 0]) + X[:, 1]
    y = np.where(np.arange(1000) < 50, truth + 0.05 * rng.standard_normal(1000), np.nan)
    ours = dsfr.RuleRegressor(teacher=dsfr.AutoSFRRegressor(ensemble=dsfr.Ensemble(n_models=2)), random_state=0)
    whole = dsfr.nrmse(truth, ours.fit(X, y).predict(X))
    with patch("dsfr.core.sampling.SAMPLE_ROWS", 300):
        sampled = dsfr.nrmse(truth, ours.fit(X, y).predict(X))
    assert sampled != whole
    assert 0.8 < sampled / whole < 1.25


def test_clusters_of_several_owners_are_found_over_the_sample():
    X, _, y = make_table(3, n_rows=800, n_labels=60)
    told = make_settings(n_models=2, tune="evidence", relevance="evidence", n_rules=2, solver="sums", tol=1e-2)
    with patch("dsfr.core.sampling.SAMPLE_ROWS", 100):
        engine = Listener(make_shards(X, y, owners_of(3, len(y), 3)))
        trained = train(engine, told)
    assert trained.sample == 0.125
    asked = [float(broadcast["sample"]) for broadcast, _ in engine.heard["cluster_sums"]]
    assert set(asked) == {0.125}
