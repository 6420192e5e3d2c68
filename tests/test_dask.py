"""Training on a real dask cluster of processes: the same model, workers that die, lazy predictions."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dsfr import SFRRegressor, load
from dsfr.cli import main
from dsfr.engines import EngineError, InProcessEngine
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.training import TASKS, make_shards, train
from tests.engine_contract import Killed
from tests.tables import make_settings, make_table, owners_of

distributed = pytest.importorskip("distributed", reason="the dask engine needs dask: pip install 'dsfr[dask]'")
import dask  # noqa: E402
import dask.dataframe as dd  # noqa: E402

from dsfr.engines.dask import cluster  # noqa: E402
from dsfr.engines.dask import engine as engine_module  # noqa: E402
from dsfr.engines.dask.engine import DaskEngine  # noqa: E402
from dsfr.io.dask_frames import make_shard, with_target  # noqa: E402
from dsfr.model.schema import Schema  # noqa: E402

KINDS = [
    {"solver": "conjugate"},
    {"solver": "admm", "width_pooling": "paper"},
    {"solver": "sums", "tune": "evidence"},
    {"solver": "few-rounds", "unlabeled": None},
    {"basis": "wavelets", "n_nodes": 8, "unlabeled": "graph"},
]


@pytest.fixture(scope="module")
def client():
    settings = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def shards_of(n_agents=3, seed=1):
    X, _, y = make_table(seed, n_rows=120)
    return X, make_shards(X, y, owners_of(seed, len(y), n_agents))


def engine_of(client, shards, tasks=TASKS):
    return DaskEngine(client, {name: dask.delayed(shard) for name, shard in shards.items()}, tasks)


@pytest.mark.parametrize("told", KINDS, ids=lambda told: "-".join(map(str, told.values())))
def test_every_kind_of_training_equals_the_one_in_process(client, told):
    X, shards = shards_of()
    local, spread = InProcessEngine(shards, TASKS), engine_of(client, shards)
    reference, trained = (train(engine, make_settings(seed=3, tol=1e-3, **told)) for engine in (local, spread))
    np.testing.assert_allclose(trained.predictor.predict(X), reference.predictor.predict(X), rtol=0, atol=1e-8)
    assert spread.ledger.bytes == local.ledger.bytes


def test_many_agents_are_reduced_in_a_tree(client):
    n_agents = engine_module.FAN_IN**2 + 1
    engine = engine_of(client, {str(number): number for number in range(n_agents)}, {"tell": tell})
    assert engine.sum("tell", {"x": np.ones(2)})["value"].tolist() == [n_agents * (n_agents - 1) / 2 + n_agents] * 2
    assert engine.max("tell", {"x": np.ones(2)})["value"].tolist() == [n_agents] * 2
    assert [float(part["value"][0]) for part in engine.gather("tell", {"x": np.zeros(1)})] == list(range(n_agents))
    assert [entry.reveals_single_contributions for entry in engine.ledger.entries.values()] == [False, False, True]


def tell(shard, memory, told):
    return memory, {"value": shard + told["x"]}


def test_an_error_names_the_agent(client):
    with pytest.raises(EngineError, match="agent '1': ZeroDivisionError: nothing"):
        engine_of(client, {"0": 0, "1": 1}, {"fail": fail}).sum("fail", {})


def fail(shard, memory, told):
    if shard:
        raise ZeroDivisionError("nothing")
    return memory, {"x": np.ones(1)}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 1.0], ids=["read again every round", "held"])
def test_a_worker_that_is_killed_does_not_change_the_model(client, monkeypatch, share):
    monkeypatch.setattr(engine_module, "HELD_SHARE", share)
    X, shards = shards_of()
    told, victims = make_settings(seed=3, solver="admm", tol=1e-3), []
    reference = train(InProcessEngine(shards, TASKS), told)

    def on_round(info):
        if info.stage == "clusters" and info.round in (4, 7):
            client.wait_for_workers(2, timeout=60)  # one that is just starting is not the one to kill
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[-1], signal.SIGKILL)

    trained = train(engine_of(client, shards), told, on_round)
    assert len(set(victims)) == 2
    np.testing.assert_allclose(trained.predictor.predict(X), reference.predictor.predict(X), rtol=0, atol=1e-8)
    client.wait_for_workers(2, timeout=60)


def test_a_training_whose_client_dies_is_resumed(client, tmp_path):
    X, shards = shards_of()
    told = make_settings(seed=3, solver="admm", tol=1e-3)

    def stop(info):
        if info.round == 8:
            raise Killed

    with pytest.raises(Killed):
        train(with_checkpoint(engine_of(client, shards), tmp_path, {}), told, stop)
    resumed = with_checkpoint(engine_of(client, shards), tmp_path, {}, resume=True)
    assert resumed.n_replayed > 8
    trained, reference = train(resumed, told), train(InProcessEngine(shards, TASKS), told)
    np.testing.assert_allclose(trained.predictor.predict(X), reference.predictor.predict(X), rtol=0, atol=1e-8)


@pytest.fixture(scope="module")
def frame():
    X, _, y = make_table(1, n_rows=130)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)


def test_partitions_are_agents_and_predictions_lazy(client, frame):
    lazy = dd.from_pandas(frame, npartitions=4)
    owners = np.concatenate([np.full(len(lazy.partitions[i]), i) for i in range(4)])
    features = ["a", "b", "c"]
    told = {"solver": "sums", "random_state": 0}
    reference = SFRRegressor(**told).fit(frame[features], frame["y"], agents=owners)
    with client.as_current():
        model = SFRRegressor(engine="dask", **told).fit(lazy[features], lazy["y"])
        found = model.predict(lazy[features])
        assert isinstance(found, dd.Series)
        values = found.compute()
    np.testing.assert_allclose(values, reference.predict(frame[features]), rtol=0, atol=1e-8)
    assert values.index.equals(frame.index)
    assert (model.agents_, model.model_.target_name) == (["0", "1", "2", "3"], "y")
    assert model.ledger_.bytes == reference.ledger_.bytes


def test_weights_of_labels_are_those_in_process(client, frame):
    weights = pd.Series(np.random.default_rng(0).uniform(0.0, 3.0, len(frame)).round(1), name="weight")
    lazy = dd.from_pandas(frame.assign(weight=weights.to_numpy()), npartitions=2)
    owners = np.concatenate([np.full(len(lazy.partitions[i]), i) for i in range(2)])
    told, features = {"tune": "evidence", "random_state": 0}, ["a", "b", "c"]
    with client.as_current():
        spread = SFRRegressor(3, engine="dask", **told).fit(lazy[features], lazy["y"], sample_weight=lazy["weight"])
        with pytest.raises(ValueError, match="sample_weight must be a dask series"):
            SFRRegressor(engine="dask").fit(lazy[features], lazy["y"], sample_weight=weights)
    together = SFRRegressor(3, **told).fit(frame[features], frame["y"], agents=owners, sample_weight=weights)
    np.testing.assert_allclose(spread.predict(frame[features]), together.predict(frame[features]), rtol=1e-6)
    with pytest.raises(ValueError, match="agent 'north': sample_weight must be a number >= 0"):
        make_shard("north", [with_target(frame[features], frame["y"], weights - 2.0)], Schema.of(features))


def test_partitions_are_grouped_into_agents(client, frame):
    lazy = dd.from_pandas(frame, npartitions=5)
    owners = np.concatenate([np.full(len(lazy.partitions[i]), [0, 0, 0, 1, 1][i]) for i in range(5)])
    told = {"solver": "few-rounds", "random_state": 0}
    reference = SFRRegressor(**told).fit(frame[["a"]], frame["y"], agents=owners)
    with client.as_current():
        model = SFRRegressor(engine="dask", n_agents=2, **told).fit(lazy[["a"]], lazy["y"])
    np.testing.assert_allclose(model.predict(frame[["a"]]), reference.predict(frame[["a"]]), rtol=0, atol=1e-8)


def test_columns_of_parquet_files_are_read_in_the_same_partitions(client, frame, tmp_path):
    """X and y alone are not: dask merges partitions of which few columns are needed."""
    wide = frame.assign(**{f"unused{j}": 1.0 for j in range(20)})
    for number in range(6):
        wide.iloc[number * 20 : number * 20 + 20].to_parquet(tmp_path / f"{number}.parquet", index=False)
    rows = dd.read_parquet(tmp_path)
    told = {"solver": "sums", "random_state": 0, "n_rules": 2}
    reference = SFRRegressor(**told).fit(frame[["a", "b"]][:120], frame["y"][:120], agents=np.repeat(range(6), 20))
    with client.as_current():
        model = SFRRegressor(engine="dask", **told).fit(rows[["a", "b"]], rows["y"])
    assert model.agents_ == list("012345")
    np.testing.assert_allclose(
        model.predict(frame[["a", "b"]]), reference.predict(frame[["a", "b"]]), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize(
    "prepare", [lambda d: d.persist(), lambda d: d.assign(a=d["a"].cumsum())], ids=["held", "shared"]
)
def test_partitions_that_are_held_or_made_together_can_be_trained_on(client, frame, prepare):
    told = {"solver": "few-rounds", "n_rules": 2, "random_state": 0}
    with client.as_current():
        lazy = prepare(dd.from_pandas(frame, npartitions=3))
        whole = lazy.compute()
        owners = np.concatenate([np.full(len(lazy.partitions[i]), i) for i in range(3)])
        model = SFRRegressor(engine="dask", **told).fit(lazy[["a", "b"]], lazy["y"])
    reference = SFRRegressor(**told).fit(whole[["a", "b"]], whole["y"], agents=owners)
    np.testing.assert_allclose(
        model.predict(frame[["a", "b"]]), reference.predict(frame[["a", "b"]]), rtol=0, atol=1e-8
    )


def test_an_empty_partition_does_not_matter(client, frame):
    frame = frame.assign(number=np.arange(len(frame)))
    lazy = dd.from_pandas(frame, npartitions=3)
    kept, whole = lazy[lazy["number"] >= 60], frame[frame["number"] >= 60]
    assert any(len(kept.partitions[i]) == 0 for i in range(3))
    with client.as_current():
        model = SFRRegressor(engine="dask", solver="few-rounds", n_rules=2, random_state=0).fit(kept[["b"]], kept["y"])
        assert len(model.predict(kept[["b"]]).compute()) == len(whole)
    assert model.model_.training["n_samples"] == len(whole)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda d: (d[["a"]], d["y"].repartition(npartitions=2)), "X has 3 partitions and y 2"),
        (lambda d: (d[["a"]].where(d["a"] < 3.5, float("inf")), d["y"]), "agent '.': X is infinite in a"),
        (lambda d: (d[["a"]], d["y"].mask(d["y"] > 50.0, np.inf)), "agent '.': y contains infinity"),
        (lambda d: (d[["a"]].compute(), d["y"].compute()), "trains on a dask data frame X and a dask series y"),
    ],
    ids=["partitions", "missing", "infinite", "pandas"],
)
def test_invalid_data_frames_are_errors(client, frame, spoil, complaint):
    X, y = spoil(dd.from_pandas(frame, npartitions=3))
    with client.as_current(), pytest.raises(ValueError, match=complaint):
        SFRRegressor(engine="dask").fit(X, y)


def test_more_agents_than_partitions_and_unknown_engines_are_refused(frame):
    lazy = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="n_agents=4 but there are 3 partitions"):
        SFRRegressor(engine="dask", n_agents=4).fit(lazy[["a"]], lazy["y"])
    with pytest.raises(ValueError, match="engine='ray' must be one of 'dask', 'in-process'"):
        SFRRegressor(engine="ray").fit(frame[["a"]], frame["y"])
    with pytest.raises(ValueError, match=r'train with SFRRegressor.engine="dask"'):
        SFRRegressor().fit(lazy[["a"]], lazy["y"])


def test_the_command_trains_on_the_cluster_at_an_address(client, frame, tmp_path):
    for number in range(3):
        frame.iloc[number::3].to_parquet(tmp_path / f"site-{number}.parquet", index=False)
    files = [str(tmp_path / "site-*.parquet"), "--target", "y", "--method", "sfr-icr", "--solver", "few-rounds", "-o"]
    models = {name: tmp_path / name for name in ("dask", "in-process")}
    address = ["--scheduler", client.scheduler.address]
    for name, path in models.items():
        where = ["--engine", name, *(address if name == "dask" else [])]
        done = CliRunner().invoke(main, ["fit", *where, *files, str(path)])
        assert done.exit_code == 0, done.output
    found, expected = (load(path).predict(frame[["a", "b", "c"]]) for path in models.values())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("held", [0.0, 1.0], ids=["read again every round", "held"])
def test_files_too_large_for_a_worker_are_read_in_batches(client, frame, tmp_path, monkeypatch, held):
    monkeypatch.setattr(cluster, "TASK_SHARE", 0.0)
    monkeypatch.setattr(engine_module, "HELD_SHARE", held)
    test_the_command_trains_on_the_cluster_at_an_address(client, frame, tmp_path)


def worker_info(status="paused", executing=0):
    return {"status": status, "metrics": {"task_counts": {"executing": executing}, "memory": 9}, "memory_limit": 5e8}


def test_workers_that_are_stuck_without_memory_are_an_error(client, monkeypatch):
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(cluster, "workers_of", lambda client: [worker_info(), worker_info()])
    never = client.submit(time.sleep, 3, pure=False)
    with pytest.raises(EngineError, match=r"all 2 workers are paused .* .the smallest has 500 MB."):
        cluster.wait_unless_stuck(client, never)
    never.cancel()


@pytest.mark.parametrize("other", [worker_info("running"), worker_info(executing=1)])
def test_workers_of_which_one_continues_are_not_stuck(client, monkeypatch, other):
    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(cluster, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(cluster, "workers_of", lambda client: [worker_info(), other])
    cluster.wait_unless_stuck(client, client.submit(time.sleep, 0.8, pure=False))


def test_an_address_without_a_scheduler_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1)
    start = time.perf_counter()
    with (
        pytest.raises(EngineError, match="no dask scheduler answers at"),
        cluster.cluster_client("tcp://127.0.0.1:9"),
    ):
        pass
    assert time.perf_counter() - start < 20
