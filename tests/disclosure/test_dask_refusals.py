"""Refusals by owners on workers of dask: the coordinator asks for less, and nothing of a memory is taken back."""

from dataclasses import replace

import numpy as np
import pytest

from dsfr import Policy, PolicyError
from dsfr.disclosure import protect, protected_tasks
from dsfr.engines import RefusedError
from dsfr.training import TASKS
from tests.disclosure.test_attacks import RANGES, SEED, split_question, teach
from tests.disclosure.test_automatic_models import fitted, guarded
from tests.disclosure.test_differences import owners_of_a_lone_row
from tests.tables import make_table

distributed = pytest.importorskip("distributed", reason="the dask engine needs dask: pip install 'dsfr[dask]'")
import dask  # noqa: E402

from dsfr.engines.dask.engine import DaskEngine  # noqa: E402


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


class Noting(DaskEngine):
    """Notes which rules have refused a question."""

    def _run_round(self, task, verb, broadcast):
        try:
            return super()._run_round(task, verb, broadcast)
        except RefusedError as refusal:
            self.refused.append(refusal.rule)
            raise


def over_dask(client, shards, policy, refused=None):
    lazy = {name: dask.delayed(shard) for name, shard in shards.items()}
    engine = Noting(client, lazy, protected_tasks(TASKS, policy=policy))
    engine.refused = [] if refused is None else refused
    return protect(engine, policy=True, masked=False)


def test_refusals_make_the_same_smaller_model(client):
    X, _, y = make_table(0, n_rows=300, n_labels=90)
    policy, refused = Policy(min_mass=30.0), []
    here = fitted("auto", X, y, 3, guarded(policy))
    there = fitted("auto", X, y, 3, lambda shards: over_dask(client, shards, policy, refused))
    assert "cluster_mass" in refused
    np.testing.assert_allclose(there.model_.predict(X), here.model_.predict(X), rtol=0, atol=1e-8)


def test_an_earlier_memory_takes_no_answer_back(client, tmp_path):
    engine = over_dask(client, owners_of_a_lone_row(), Policy())
    engine.sum("row_moments", {"seed": SEED, **RANGES})
    teach(engine)
    engine.save_memories(tmp_path.joinpath)
    engine.sum("split_sums", split_question([0.3]))
    engine.load_memories(tmp_path.joinpath)
    with pytest.raises(RefusedError, match="'cells': values of column 0 that part 1 of the own rows"):
        engine.sum("split_sums", split_question([0.4]))


def test_rounds_are_counted_on(client, tmp_path):
    policy = replace(Policy(), max_rounds=2)
    engine = over_dask(client, owners_of_a_lone_row(), policy)
    engine.save_memories(tmp_path.joinpath)
    for _ in range(2):
        engine.sum("row_moments", {"seed": SEED, **RANGES})
        engine.load_memories(tmp_path.joinpath)
    with pytest.raises(PolicyError, match="'rounds': this is round 3 of the fit, and max_rounds is 2"):
        engine.sum("row_moments", {"seed": SEED, **RANGES})
