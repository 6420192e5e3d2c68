"""The recipes of CONTRIBUTING.md carried out: a penalty on unlabelled rows and a solver, each in one class.

In the package each would be one new file and one import in the `__init__` of its folder; here it is a class in a test.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dsfr
from dsfr import ICR, AutoSFRRegressor, Decentralized, Ensemble, InProcess, SFRRegressor
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Quadratic, solve_weights
from dsfr.engines import InProcessEngine
from dsfr.pipeline.plan import make_plan, plan_links
from dsfr.training import TASKS, Settings, make_shards, train
from dsfr.training.component import count, parameter
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.solvers import IterativeSolver, Solver
from dsfr.training.tasks.declaration import at_least, number, optional
from dsfr.training.tasks.fields import PENALTY
from dsfr.training.tasks.messages import scalar, scaling_ranges
from dsfr.training.weights.problem import Solution
from tests.tables import make_table, owners_of

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()


@pytest.fixture
def small_predictions():
    """A toy: squared predictions on every n-th unlabelled row."""

    @dataclass(frozen=True, kw_only=True, repr=False)
    class SmallPredictions(UnlabeledPenalty):
        shorthand: ClassVar[str] = "small"
        key: ClassVar[str] = "small_every"
        default_weight: ClassVar[float] = 0.01
        fields: ClassVar[dict] = {"small_every": optional(number(at_least(1.0)))}

        every: int = parameter(1, count(1, "a whole number >= 1"))

        def message(self):
            return {"small_every": scalar(self.every)}

        @classmethod
        def from_message(cls, told):
            return cls(every=int(told["small_every"]))

        def gram(self, shard, memory, told, basis, repeat=0):
            total = np.zeros((basis.n_outputs, basis.n_outputs))
            for X, y in shard.batches():
                H = basis.features(scale_features(X[np.isnan(y)][:: self.every], scaling_ranges(memory, told)))
                total += H.T @ H
            return total

    yield SmallPredictions
    del UnlabeledPenalty.choices["small"], PENALTY["small_every"]


@pytest.fixture
def gradient_descent():
    """A toy: steps of a fixed length along the pooled gradient, which agents already know how to send."""

    @dataclass(frozen=True, kw_only=True, repr=False)
    class GradientDescent(IterativeSolver):
        shorthand: ClassVar[str] = "gradient-descent"
        usual_rounds: ClassVar[tuple[int, int]] = (10, 100)

        def agree_weights(self, problem):
            settings, engine = problem.settings, problem.engine
            told = {**problem.broadcast, "unlabeled_weight": scalar(settings.penalty.strength)}
            gradient = engine.sum("first_gradient", told)["gradient"]
            weights = np.zeros_like(gradient)
            for _ in range(self.max_rounds):
                if np.linalg.norm(gradient) <= self.tol * settings.ridge_value * np.linalg.norm(weights):
                    return Solution(weights)
                weights = weights - 0.005 * gradient
                sums = engine.sum("weight_gradient", {"weights": weights})
                gradient = sums["gradient"] + settings.ridge_value * weights
            return Solution(weights, converged=False)

        def weight_legs(self, shape, rounds) -> Iterator:
            yield shape.leg("first_gradient", 1, sent=shape.problem)
            yield shape.leg("weight_gradient", rounds - 1)

    yield GradientDescent
    del Solver.choices["gradient-descent"]


def test_a_penalty_in_one_class_works_with_every_solver(small_predictions, tmp_path):
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3, skew=10.0)
    told = {"unlabeled": small_predictions(every=2), "ridge": 1.0, "random_state": 0}
    exact = SFRRegressor(solver="sums", **told).fit(X, y, agents=owners)
    predictor = exact.model_.predictor
    shards = make_shards(X, y, owners).values()
    small = [scale_features(shard.rows.X[np.isnan(shard.rows.y)][::2], predictor.ranges) for shard in shards]
    H = predictor.basis.features(scale_features(X[~np.isnan(y)], predictor.ranges))
    targets = (y[~np.isnan(y)] - predictor.target_mean) / predictor.target_scale
    P = sum(rows.T @ rows for rows in map(predictor.basis.features, small))
    by_hand = solve_weights(Quadratic(H.T @ H + 0.01 * P, H.T @ targets, 0.0), 1.0)
    np.testing.assert_allclose(predictor.weights, by_hand, rtol=1e-6, atol=1e-9)
    for solver in ("conjugate", "admm", Decentralized(tol=1e-6)):
        ring = InProcess(topology="ring")
        other = SFRRegressor(solver=solver, engine=ring, **told).fit(X, y, agents=owners)
        np.testing.assert_allclose(other.predict(X), exact.predict(X), atol=0.05 * np.nanstd(y))
    other = SFRRegressor(**told | {"unlabeled": None}, solver="sums").fit(X, y, agents=owners)
    assert (other.predict(X) != exact.predict(X)).any()


def test_a_penalty_in_one_class_has_all_that_others_have(small_predictions):
    X, _, y = make_table(0)
    tuned = AutoSFRRegressor(ensemble=Ensemble(n_models=2), unlabeled="small", random_state=0).fit(X, y)
    assert tuned.tuned_["unlabeled_weight"] > 0.0
    model = SFRRegressor().set_params(unlabeled="small", unlabeled__weight=0.2)
    assert repr(model.unlabeled) == "SmallPredictions(weight=0.2)"
    with pytest.raises(ValueError, match="every=0 must be a whole number >= 1"):
        small_predictions(every=0)
    engine = InProcessEngine(make_shards(X, y, owners_of(0, len(y), 3)), TASKS)
    settings = Settings(unlabeled="small", solver="sums", n_rules=3)
    rounds = sum(info.stage == "clusters" for info in train(engine, settings).history)
    plan = make_plan(
        len(y), 3, plan_links(3, None, latency=0.0, bandwidth=1.0, seed=0), settings, cluster_rounds=rounds
    )
    assert plan.exact
    assert plan.bytes == engine.ledger.bytes


def test_a_solver_in_one_class_finds_the_pooled_solution(gradient_descent):
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3, skew=10.0)
    told = {"ridge": 1.0, "unlabeled": ICR(weight=0.1), "n_rules": 3, "random_state": 0}
    for engine in ("in-process", InProcess(topology="ring")):
        toy = SFRRegressor(solver="gradient-descent", engine=engine, **told).fit(X, y, agents=owners)
        exact = SFRRegressor(solver="sums", **told).fit(X, y, agents=owners)
        assert toy.termination_ == "converged"
        np.testing.assert_allclose(toy.predict(X), exact.predict(X), atol=1e-3 * np.nanstd(y))
    with pytest.warns(UserWarning, match="the weights did not reach tol=0.0001 within max_rounds=25"):
        toy.set_params(solver__max_rounds=25).fit(X, y, agents=owners)


def test_a_solver_in_one_class_has_all_that_others_have(gradient_descent):
    X, _, y = make_table(0)
    with pytest.raises(ValueError, match=r"solver=GradientDescent\(\) does not go with tune='evidence'.*solver='sums'"):
        SFRRegressor(solver="gradient-descent", tune="evidence").fit(X, y)
    with pytest.raises(ValueError, match=r"solver='magic' must be one of .*'gradient-descent'"):
        SFRRegressor(solver="magic").fit(X, y)
    links = plan_links(3, None, latency=0.0, bandwidth=1.0, seed=0)
    plan = make_plan(100, 3, links, Settings(solver="gradient-descent"))
    assert {each.task: each.rounds for each in plan.legs}["weight_gradient"] == 99
    assert dsfr.SFRRegressor(solver=gradient_descent(tol=1e-2)).component("solver").tol == 1e-2


@pytest.mark.parametrize("recipe", ["A penalty on unlabelled rows", "A solver"])
def test_the_recipes_name_what_the_toys_implement(recipe):
    text = TEXT[TEXT.index(f"**{recipe}.**") :].partition("\n\n**")[0]
    names = {
        "A penalty on unlabelled rows": ["UnlabeledPenalty", "key", "message", "from_message", "gram", "shorthand"],
        "A solver": ["IterativeSolver", "agree_weights", "weight_legs", "usual_rounds", "accepts", "shorthand"],
    }
    assert all(f"`{name}`" in text for name in names[recipe])
