"""What `docs/privacy.md` says can be recovered from an agent's messages can be recovered."""

import numpy as np
import pytest

from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, make_shards
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.fixed_point import Iteration
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.tables import make_settings, make_table


class Eavesdropper(InProcessEngine):
    """A transport whose coordinator sees every contribution of the first agent."""

    def _contributions(self, task, verb, broadcast):
        contributions = super()._contributions(task, verb, broadcast)
        if task == "weight_consensus":
            self.heard.append((broadcast["consensus"], contributions[0]))
        if task.endswith("_gradient"):
            self.heard.append((broadcast.get("weights", np.zeros_like(contributions[0]["gradient"])), contributions[0]))
        return contributions


PLAIN_ADMM = {"solver": ADMM(acceleration=None, penalty=1.0)}


@pytest.fixture(params=[PLAIN_ADMM, {}], ids=["admm", "conjugate"])
def overheard(request):
    X, _, y = make_table(0, n_features=1)
    shards = make_shards(X, y, np.arange(len(y)) % 3)
    engine = Eavesdropper(list(shards.values()), TASKS, serialize=True)
    engine.heard = []
    told = make_settings(n_rules=2, ridge=1e-2, tol=1e-10, max_rounds=60, seed=0, **request.param)
    population = survey(engine, told)
    rules, _, _ = agree_rules(engine, told, population, lambda info: None)
    engine.heard = []
    agree_weights(engine, told, rules, population, lambda info: None)
    return engine


def secrets(engine):
    memory = engine._agents["0"]._memory
    return memory["curvature"], memory["moment"]


@pytest.mark.parametrize("overheard", [PLAIN_ADMM], indirect=True)
def test_a_coordinator_that_chooses_the_consensus_recovers_an_agent_s_statistics_exactly(overheard):
    A, b = secrets(overheard)
    p = len(b)
    overheard.heard = []
    message = {"penalty": np.asarray(1.0), "relaxation": np.asarray(1.0), **Iteration(0).message()}
    for z in np.vstack([np.zeros(p), np.eye(p)]):
        overheard.sum("weight_consensus", {"consensus": z, **message})
    answers = [contribution["gradient"] for _, contribution in overheard.heard]
    np.testing.assert_allclose(-answers[0], b, atol=1e-12)
    np.testing.assert_allclose(np.array(answers[1:]) - answers[0], A, atol=1e-12)


def test_a_passive_coordinator_recovers_them_at_small_size(overheard):
    A, b = secrets(overheard)
    Z = np.array([np.append(z, -1.0) for z, _ in overheard.heard])
    G = np.array([contribution["gradient"] for _, contribution in overheard.heard])
    found = np.linalg.lstsq(Z, G, rcond=1e-14)[0]
    scale = np.abs(A).max()
    np.testing.assert_allclose(found[:-1].T, A, atol=1e-3 * scale)
    np.testing.assert_allclose(found[-1], b, atol=1e-3 * scale)
