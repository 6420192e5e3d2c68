"""Every engine keeps the contract: in process, over a graph, by gossip, dask, MPI; with and without checkpoints."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.disclosure import protect, protected_tasks
from dsfr.engines import BaseEngine, InProcessEngine
from dsfr.engines.agent import make_agents
from dsfr.engines.dask.engine import DaskEngine
from dsfr.engines.dask.worker import LazyShard
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.reduction import reduce_round
from dsfr.storage.bundles import payload_bytes
from tests import engine_contract as contract
from tests.disclosure.crypto import needs_cryptography
from tests.engine_contract import ALONG_TREE, BY_GOSSIP, LAWS, MASKED, N_AGENTS, PATH, TO_COORDINATOR, Kind, laws_of
from tests.mpi_jobs import MPIEXEC, TWO_MACHINES, program


class ThreadEngine(BaseEngine):
    """The toy of the recipe in CONTRIBUTING.md: all agents of a round run at the same time, in threads."""

    def __init__(self, shards, tasks):
        agents = make_agents(shards, tasks, serialize=True)
        super().__init__(list(agents), agents)

    def _run_round(self, task, verb, broadcast):
        with ThreadPoolExecutor() as pool:
            parts = list(pool.map(lambda agent: agent.run(task, broadcast), self._agents.values()))
        entry = self.ledger.open(task, verb)
        for name, part in zip(self.agents, parts, strict=True):
            entry.count_present(name)
            entry.count_message(None, name, payload_bytes(broadcast), up=False)
            entry.count_message(name, None, payload_bytes(part), up=True)
        return reduce_round(task, verb, parts)


@contextmanager
def dask_client():
    distributed = pytest.importorskip("distributed", reason="the dask engine needs dask: pip install 'dsfr[dask]'")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def dask_engine():
    with dask_client() as client:

        def make(shards, tasks):
            return DaskEngine(client, {name: LazyShard(same, shard) for name, shard in shards.items()}, tasks)

        yield make


def same(shard):
    return shard


def network(shards, tasks):
    """Over a path; the root is at one end of it."""
    return NetworkEngine(shards, tasks, PATH if shards else {})


def gossip(shards, tasks):
    """Over the same path, without a root."""
    return GossipEngine(shards, tasks, PATH if shards else {})


def masked(shards, tasks):
    """Pairwise masks over the messages of an in-process engine."""
    needs_cryptography()
    engine = InProcessEngine(shards, protected_tasks(tasks, masked=True), serialize=True)
    return protect(engine, policy=False, masked=True)


MAKERS = {
    "masked": (masked, MASKED),
    "in-process": (InProcessEngine, TO_COORDINATOR),
    "serialised": (lambda shards, tasks: InProcessEngine(shards, tasks, serialize=True), TO_COORDINATOR),
    "network": (network, ALONG_TREE),
    "gossip": (gossip, BY_GOSSIP),
    "threads (toy of the recipe)": (ThreadEngine, TO_COORDINATOR),
}
CASES = [
    pytest.param(name, checkpointed, law, id=f"{name}{', checkpointed' * checkpointed}-{law.__name__}")
    for name in (*MAKERS, "dask")
    for checkpointed in (False, True)
    for law in laws_of(gossip=name == "gossip", checkpointed=checkpointed)
]


def kind_of(name, checkpointed, folder, request=None):
    make, traffic = MAKERS[name] if name in MAKERS else (request.getfixturevalue("dask_engine"), TO_COORDINATOR)
    return Kind(make, folder, traffic, checkpointed, only_sums=name == "masked")


@pytest.mark.parametrize(("name", "checkpointed", "law"), CASES)
def test_the_engine_keeps_the_law(request, tmp_path, name, checkpointed, law):
    law(kind_of(name, checkpointed, tmp_path, request), 1)


LOCAL_LAWS = (*LAWS[:5], contract.killed_rounds_resume_where_they_were)


@settings(max_examples=25)
@given(st.sampled_from(sorted(MAKERS)), st.sampled_from(LOCAL_LAWS), st.integers(0, 10_000))
def test_laws_hold_for_all_numbers(tmp_path_factory, name, law, seed):
    law(kind_of(name, False, tmp_path_factory.mktemp("contract")), seed)


MPI_JOBS = {
    "sockets": ("mpi", {"n_cores": 1}),
    "Allreduce": ("mpi", {"launcher": TWO_MACHINES}),
    "network": ("mpi network", {}),
    "gossip": ("mpi gossip", {}),
}
"""Engines and launchers of MPI jobs. Ranks with a core each use `Allreduce`; here that takes two machines."""
IN_EVERY_RUN = "sockets"
"""The job of `make test`; a job takes its ranks some seconds each."""
MPI_CASES = [
    pytest.param(
        job,
        checkpointed,
        law.__name__,
        id=f"{job}{', checkpointed' * checkpointed}-{law.__name__}",
        marks=[] if job == IN_EVERY_RUN else [pytest.mark.slow],
    )
    for job in MPI_JOBS
    for checkpointed in (False, True)
    for law in laws_of(gossip=job == "gossip", checkpointed=checkpointed)
]


@pytest.fixture(scope="module")
def run_mpi_job(tmp_path_factory):
    """Runs all laws in an MPI job, once: errors of every law, empty if there are none."""
    pytest.importorskip("mpi4py", reason="the MPI engine needs mpi4py: pip install 'dsfr[mpi-wheel]'")
    if not MPIEXEC.exists():
        pytest.skip("no mpiexec beside this Python: pip install mpich")

    @cache
    def run(job):
        engine, options = MPI_JOBS[job]
        code, out, err, _ = program(N_AGENTS, "contract", engine, tmp_path_factory.mktemp("mpi"), **options)
        assert code == 0, err
        return json.loads(out)

    return run


@pytest.mark.parametrize(("job", "checkpointed", "law"), MPI_CASES)
def test_the_mpi_engine_keeps_the_law(run_mpi_job, job, checkpointed, law):
    assert run_mpi_job(job)["checkpointed" if checkpointed else "bare"][law] == ""


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="ranks with a core each need two cores")
def test_mpi_jobs_cover_sockets_and_allreduce(run_mpi_job):
    assert run_mpi_job("sockets")["oversubscribed"]
    assert not run_mpi_job("Allreduce")["oversubscribed"]


def test_a_single_agent_sends_nothing():
    engine = InProcessEngine(list(contract.shards_of(0, 1).values()), contract.TOYS)
    engine.sum("mixed", contract.FACTOR)
    assert (engine.ledger.rounds, engine.ledger.messages, engine.ledger.bytes) == (1, 0, 0)
    assert engine.ledger.agents["0"].rounds == 1
