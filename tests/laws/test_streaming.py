"""Rows that stream from files give the model of the same rows in memory, to the last bit."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsfr
from dsfr.core.arrays import SUM_ROWS
from dsfr.core.compiled import WORTHWHILE_ROWS, available
from dsfr.core.scaling.affine import Ranges
from dsfr.engines import InProcessEngine
from dsfr.io.agent_rows import AgentRows
from dsfr.io.spool import Spool, SpooledRows
from dsfr.training import TASKS, FuzzyRules, Shard, Sums, make_shards, train
from dsfr.training.changed_rows import LimitedRows
from dsfr.training.rows import ArrayRows, collect, pick
from dsfr.training.shard import agent_key
from dsfr.training.split import SPLIT_ROWS
from tests.tables import make_settings, make_table

seeds = st.integers(0, 10_000)


class Batches:
    """Rows of arrays in batches of a given length."""

    def __init__(self, X, y, batch_rows):
        self.rows, self.batch_rows = ArrayRows(X, y), batch_rows
        self.n_samples, self.n_features, self.n_labeled = len(y), X.shape[1], self.rows.n_labeled

    def batches(self):
        for start in range(0, self.n_samples, self.batch_rows):
            part = slice(start, start + self.batch_rows)
            yield self.rows.X[part], self.rows.y[part]


def long_table(seed, n_rows, n_features=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_features)) * 10.0 ** rng.integers(-2, 3, n_features)
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n_rows)
    return X, np.where(rng.random(n_rows) < 0.3, y, np.nan)


def arrays_of(training):
    predictor = training.predictor
    return np.concatenate([predictor.weights, *(array.ravel() for array in predictor.basis.arrays().values())])


def write_files(folder, X, y, owners=None, kind="parquet", n_files=3):
    """The table in several files of a folder, in order."""
    folder.mkdir()
    columns = {**{f"f{j}": X[:, j] for j in range(X.shape[1])}, "y": pa.array(y, mask=np.isnan(y))}
    table = pa.table(columns | ({} if owners is None else {"who": owners}))
    for i, part in enumerate(np.array_split(np.arange(len(y)), n_files)):
        here = table.take(part)
        if kind == "parquet":
            pa.parquet.write_table(here, folder / f"part-{i}.parquet", row_group_size=len(part) // 2 + 1)
        else:
            pa.csv.write_csv(here, folder / f"part-{i}.csv")
    return folder


def streamed_rows(*arguments, memory_bytes=0, **named):
    """A scan whose rows are kept in a temporary file, all but ``memory_bytes`` of them."""
    return replace(dsfr.scan(*arguments, **named), memory_bytes=memory_bytes)


@given(
    seeds,
    st.sampled_from(["icr", "graph", None]),
    st.sampled_from(["conjugate", "sums"]),
    st.integers(1, 3),
    st.sampled_from([0, 500, 2**26]),
)
def test_streamed_equals_in_memory(tmp_path_factory, seed, unlabeled, solver, n_agents, memory_bytes):
    X, _, y = make_table(seed, n_rows=60)
    folder = write_files(tmp_path_factory.mktemp("rows") / "table", X, y, kind=["parquet", "csv"][seed % 2])
    told = {
        "unlabeled": unlabeled,
        "solver": solver,
        "n_agents": n_agents,
        "n_rules": 3,
        "ridge": 0.5,
        "random_state": 1,
    }
    streamed = dsfr.SFRRegressor(**told).fit(streamed_rows(folder, target="y", memory_bytes=memory_bytes))
    in_memory = dsfr.SFRRegressor(**told).fit(X, y)
    np.testing.assert_array_equal(streamed.model_.predictor.weights, in_memory.model_.predictor.weights)
    np.testing.assert_array_equal(streamed.predict(dsfr.scan(folder)), in_memory.predict(X))
    assert streamed.ledger_.bytes == in_memory.ledger_.bytes


@pytest.mark.parametrize("tune", ["evidence", "loo"])
@pytest.mark.parametrize("n_agents", [1, 3])
def test_the_automatic_mode_streams_too(tmp_path, n_agents, tune):
    X, _, y = make_table(4, n_rows=120, n_labels=40)
    folder = write_files(tmp_path / "table", X, y)
    told = {"ensemble": dsfr.Ensemble(n_models=3), "tune": tune, "n_agents": n_agents, "random_state": 0}
    streamed = dsfr.AutoSFRRegressor(**told).fit(streamed_rows(folder, target="y"))
    in_memory = dsfr.AutoSFRRegressor(**told).fit(X, y)
    np.testing.assert_array_equal(streamed.predict(dsfr.scan(folder)), in_memory.predict(X))
    assert streamed.model_.half_width(0.8) == in_memory.model_.half_width(0.8)
    assert streamed.models_ == in_memory.models_
    expected = in_memory.predict(X, return_std=True)
    for found, same in zip(streamed.predict(dsfr.scan(folder), return_std=True), expected, strict=True):
        np.testing.assert_array_equal(found, same)


def test_rows_moved_to_limits_are_copied_a_few_at_a_time(monkeypatch):
    X, y = long_table(1, 4 * SUM_ROWS + 99)
    told = make_settings(solver="sums", scaling="robust", n_rules=3, max_rounds=2, ridge=0.5)
    whole = train(InProcessEngine([Shard(ArrayRows(X, y), agent_key("a"))], TASKS), told)
    monkeypatch.setattr("dsfr.training.rows.LIMITED_ROWS", SUM_ROWS)
    limited = LimitedRows(ArrayRows(X, y), Ranges.of(X[:99]), np.array([-0.5, 0.5]))
    assert [len(targets) for _, targets in limited.batches()] == [SUM_ROWS] * 4 + [99]
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in limited.batches()]), limited.limits.clip(X))
    np.testing.assert_array_equal(collect(limited)[1], np.clip(y, -0.5, 0.5))
    parts = train(InProcessEngine([Shard(ArrayRows(X, y), agent_key("a"))], TASKS), told)
    np.testing.assert_array_equal(arrays_of(whole), arrays_of(parts))


@pytest.mark.parametrize("memory_bytes", [0, 2**21, None])
@pytest.mark.parametrize("n_agents", [1, 3])
def test_streamed_equals_in_memory_over_many_batches(tmp_path, n_agents, memory_bytes):
    X, y = long_table(3, 2 * SPLIT_ROWS + 777)
    assert len(y) > WORTHWHILE_ROWS
    folder = write_files(tmp_path / "table", X, y, n_files=2)
    told = {"n_agents": n_agents, "n_rules": 3, "random_state": 0}
    told |= {"solver": Sums(max_rounds=6), "rules": FuzzyRules(fuzzifier=2.0)}
    with pytest.warns(UserWarning, match="max_rounds"):
        streamed = dsfr.SFRRegressor(**told).fit(streamed_rows(folder, target="y", memory_bytes=memory_bytes))
    with pytest.warns(UserWarning, match="max_rounds"):
        in_memory = dsfr.SFRRegressor(**told).fit(X, y)
    np.testing.assert_array_equal(streamed.model_.predictor.weights, in_memory.model_.predictor.weights)
    np.testing.assert_array_equal(streamed.predict(dsfr.scan(folder)), in_memory.predict(X))


def test_owners_in_a_column_are_the_agents(tmp_path):
    X, _, y = make_table(2, n_rows=90)
    owners = np.array(["north", "south", "east"])[np.arange(90) % 3]
    folder = write_files(tmp_path / "table", X, y, owners)
    told = {"n_rules": 3, "ridge": 0.5, "random_state": 0}
    streamed = dsfr.SFRRegressor(**told).fit(streamed_rows(folder, target="y", agent_column="who"))
    in_memory = dsfr.SFRRegressor(**told).fit(X, y, agents=owners)
    assert streamed.agents_ == in_memory.agents_ == ["east", "north", "south"]
    np.testing.assert_array_equal(streamed.model_.predictor.weights, in_memory.model_.predictor.weights)


def test_arrays_in_files_are_scanned_too(tmp_path):
    X, _, y = make_table(2, n_rows=80)
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    target = f"x{X.shape[1]}"
    told = {"n_rules": 2, "ridge": 0.5, "random_state": 0}
    streamed = dsfr.SFRRegressor(**told).fit(streamed_rows(tmp_path / "rows.npy", target=target))
    found = streamed.model_.predict(X)
    np.testing.assert_array_equal(found, dsfr.SFRRegressor(**told).fit(X, y).predict(X))
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    again = dsfr.SFRRegressor(**told).fit(mapped[:, :-1], mapped[:, -1])
    np.testing.assert_array_equal(found, again.predict(X))


@given(seeds, st.integers(1, 4), st.sampled_from([True, False]))
def test_the_size_of_batches_does_not_matter(seed, n_chunks, fast):
    X, y = long_table(seed, 5 * SUM_ROWS // 2)
    fast = fast and available()
    told = make_settings(solver="sums", n_rules=3, seed=seed, max_rounds=2, ridge=0.5)
    whole = train(InProcessEngine([Shard(ArrayRows(X, y), agent_key("a"), fast)], TASKS), told)
    parts = train(InProcessEngine([Shard(Batches(X, y, n_chunks * SUM_ROWS), agent_key("a"), fast)], TASKS), told)
    np.testing.assert_array_equal(arrays_of(whole), arrays_of(parts))


@given(seeds, st.integers(500, 3000))
def test_batches_of_any_size_give_the_same_to_rounding(seed, batch_rows):
    X, y = long_table(seed, 4000)
    told = make_settings(solver="sums", n_rules=3, seed=seed, max_rounds=2, ridge=0.5)
    whole = train(InProcessEngine([Shard(ArrayRows(X, y), agent_key("a"))], TASKS), told)
    parts = train(InProcessEngine([Shard(Batches(X, y, batch_rows), agent_key("a"))], TASKS), told)
    np.testing.assert_allclose(parts.predictor.predict(X), whole.predictor.predict(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "fast", [False, pytest.param(True, marks=pytest.mark.skipif(not available(), reason="no numba"))]
)
def test_the_number_of_threads_does_not_matter(monkeypatch, fast):
    X, y = long_table(1, 3 * SUM_ROWS + 99)
    told, found = make_settings(solver="sums", n_rules=4, max_rounds=5), []
    for threads in ("1", "2", "3", "8"):
        monkeypatch.setenv("DSFR_THREADS", threads)
        training = train(InProcessEngine([Shard(ArrayRows(X, y), agent_key("a"), fast)], TASKS), told)
        found.append(np.concatenate([arrays_of(training), training.predictor.predict(X, fast=fast)]))
    assert all((other == found[0]).all() for other in found)


@given(seeds, st.integers(1, 200), st.booleans())
def test_picked_rows_are_those_with_the_numbers(seed, batch_rows, unlabeled):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((150, 2)), np.where(rng.random(150) < 0.5, 1.0, np.nan)
    pool = X[np.isnan(y)] if unlabeled else X
    wanted = np.unique(rng.integers(len(pool), size=20))
    np.testing.assert_array_equal(pick(Batches(X, y, batch_rows), wanted, unlabeled=unlabeled), pool[wanted])


def test_a_spool_that_was_cut_short_is_an_error():
    spool = Spool()
    rows = SpooledRows(spool, 2)
    rows.append(np.ones((100, 2)), np.zeros(100))
    os.ftruncate(spool._file.fileno(), 1000)
    with pytest.raises(OSError, match=r"the temporary file of rows in .* ends 600 bytes early.*TMPDIR"):
        list(rows.batches())


@given(seeds, st.lists(st.integers(0, 40_000), min_size=1, max_size=8))
def test_a_spool_gives_back_what_was_put_in(seed, lengths):
    rng = np.random.default_rng(seed)
    tables = [(rng.standard_normal((n, 2)), np.where(rng.random(n) < 0.5, 1.0, np.nan)) for n in lengths]
    spool = Spool()
    rows, other = SpooledRows(spool, 2), SpooledRows(spool, 2)
    for X, y in tables:
        rows.append(X, y)
        other.append(-X, y)
    for sign, own in ((1.0, rows), (-1.0, other)):
        batches = list(own.batches())
        np.testing.assert_array_equal(
            np.concatenate([np.empty((0, 2)), *(X for X, _ in batches)]), sign * np.concatenate([X for X, _ in tables])
        )
        np.testing.assert_array_equal(
            np.concatenate([np.empty(0), *(y for _, y in batches)]), np.concatenate([y for _, y in tables])
        )
        assert all(len(y) % SUM_ROWS == 0 for _, y in batches[:-1])
        assert own.n_labeled == sum(int((~np.isnan(y)).sum()) for _, y in tables)


@given(
    seeds,
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 300)), min_size=1, max_size=12),
    st.integers(0, 20_000),
    st.sampled_from([np.float32, np.float64]),
)
def test_rows_of_agents_are_the_same_in_memory_and_in_a_file(seed, lengths, memory_bytes, dtype):
    rng = np.random.default_rng(seed)
    collected, expected = AgentRows(2, dtype, memory_bytes), {}
    for agent, n_rows in lengths:
        X, y = rng.standard_normal((n_rows, 2)), np.where(rng.random(n_rows) < 0.5, 1.0, np.nan)
        collected.append(agent, X, y)
        expected.setdefault(agent, []).append((X.astype(dtype), y))
    n_bytes = sum(n_rows for _, n_rows in lengths) * (2 * np.dtype(dtype).itemsize + 8)
    found = collected.rows()
    assert list(found) == sorted(expected)
    for agent, rows in found.items():
        assert isinstance(rows, ArrayRows if n_bytes <= memory_bytes else SpooledRows)
        for parts, same in zip(zip(*rows.batches(), strict=True), zip(*expected[agent], strict=True), strict=True):
            np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(same))
            assert parts[0].dtype == same[0].dtype
        assert rows.n_labeled == sum(int((~np.isnan(y)).sum()) for _, y in expected[agent])


def test_a_random_split_is_the_same_streamed_and_in_memory_and_even(tmp_path):
    X, y = long_table(0, SPLIT_ROWS + 1000, n_features=1)
    folder = write_files(tmp_path / "table", X, y)
    streamed = streamed_rows(folder, target="y").shards(7, seed=5)
    sizes = [shard.n_samples for shard in streamed.values()]
    assert max(sizes) - min(sizes) <= 1
    in_memory = make_shards(X, y, dsfr.training.split.split_rows(len(y), 7, 5))
    for name, shard in streamed.items():
        np.testing.assert_array_equal(np.concatenate([X for X, _ in shard.batches()]), in_memory[name].rows.X)


PEAK = """
import resource, sys, dsfr
rows = dsfr.scan(sys.argv[1], target="y")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
solver, rules = dsfr.Sums(max_rounds=2), dsfr.FuzzyRules(fuzzifier=2.0)
dsfr.SFRRegressor(n_rules=2, rules=rules, solver=solver, n_agents=2, random_state=0).fit(rows)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e3)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted in kilobytes on Linux")
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Four times the rows, the same peak: a copy of the longer table alone would take 80 MB."""
    peaks = []
    for n_rows in (300_000, 1_200_000):
        X, y = long_table(0, n_rows, n_features=8)
        folder = write_files(tmp_path / str(n_rows), X, y, n_files=n_rows // 150_000)
        told = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PEAK, str(folder)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "DSFR_THREADS": "1"},
        )
        peaks.append(float(told.stdout))
    assert peaks[1] < peaks[0] + 40.0
