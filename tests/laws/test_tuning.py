"""Tuning by evidence: from sums alone, the same for any agents, and never by held-out labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import LapWNNRegressor, SFRRegressor, load, nrmse
from dsfr.core.solve.evidence import LOG_RIDGE, LOG_WEIGHT, maximize_evidence
from dsfr.core.solve.statistics import solve_weights
from dsfr.engines import InProcessEngine
from dsfr.training import ICR, TASKS, Graph, Settings, make_shards, train
from dsfr.training.tasks.messages import unpack_statistics
from tests.tables import make_settings, make_table, owners_of, train_on


class Listener(InProcessEngine):
    def sum(self, task, broadcast):
        result = super().sum(task, broadcast)
        if task == "statistics":
            self.heard = unpack_statistics(result)
        return result


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.sampled_from(["icr", "graph", None]),
    st.sampled_from(["rules", "wavelets"]),
    st.sampled_from(["sums", "few-rounds"]),
)
def test_weights_are_those_of_the_values_that_the_summed_statistics_speak_for(seed, n_agents, unlabeled, basis, solver):
    X, _, y = make_table(seed, n_rows=80)
    shards = make_shards(X, y, owners_of(seed, len(y), n_agents))
    engine = Listener(shards, TASKS)
    told = make_settings(
        tune="evidence",
        unlabeled=unlabeled,
        basis=basis,
        solver=solver,
        n_rules=3,
        n_nodes=8,
        seed=seed,
    )
    found = train(engine, told)
    tuned = maximize_evidence(engine.heard)
    assert found.tuned == tuned
    expected = solve_weights(engine.heard.quadratic(tuned.unlabeled_weight), tuned.ridge)
    np.testing.assert_array_equal(found.predictor.weights, expected)
    assert (tuned.unlabeled_weight == 0.0) == (unlabeled is None)
    assert engine.ledger.entries["statistics", "sum"].rounds == 1


def test_tuning_sends_nothing_more_but_counts_of_equal_rows():
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3)
    _, tuned = train_on(X, y, owners, solver="sums", tune="evidence")
    _, fixed = train_on(X, y, owners, solver="sums")
    about_duplicates = {"count_duplicates", "weigh_duplicates", "mark_labels", "drop_matched"}
    entries = {name: entry for name, entry in tuned.ledger.entries.items() if name[0] not in about_duplicates}
    assert {name[0] for name in tuned.ledger.entries if name not in entries} == about_duplicates
    # The first message asks for rows that count once, by one number for each of three agents.
    measured = entries["measure", "max"]
    assert measured.bytes_down == fixed.ledger.entries["measure", "max"].bytes_down + 3 * 8
    others = {name: entry for name, entry in fixed.ledger.entries.items() if name[0] != "measure"}
    assert {name: entry for name, entry in entries.items() if name[0] != "measure"} == others


def test_more_noise_is_met_with_more_ridge_and_known_as_noise():
    chosen = []
    for noise in (0.1, 20.0):
        X, _, y = make_table(0, n_rows=400, n_labels=200, noise=noise)
        chosen.append(SFRRegressor(tune="evidence", random_state=0).fit(X, y).tuned_)
    assert chosen[1]["ridge"] > chosen[0]["ridge"]
    assert chosen[1]["noise"] == pytest.approx(20.0, rel=0.2)


@pytest.mark.parametrize("wrong", [1e-5, 1e3])
def test_it_is_better_than_values_that_are_far_off(wrong):
    X, truth, y = make_table(0, n_rows=400, n_labels=15, noise=3.0)
    tuned = SFRRegressor(tune="evidence", random_state=0).fit(X, y)
    fixed = SFRRegressor(ridge=wrong, unlabeled=ICR(weight=wrong), random_state=0).fit(X, y)
    assert nrmse(truth, tuned.predict(X)) < 0.7 * nrmse(truth, fixed.predict(X))


@pytest.mark.parametrize(
    ("estimator", "weight"),
    [
        (SFRRegressor(tune="evidence"), "unlabeled_weight"),
        (SFRRegressor(tune="evidence", unlabeled="graph"), "unlabeled_weight"),
        (SFRRegressor(tune="evidence", unlabeled=None), None),
        (LapWNNRegressor(tune="evidence"), "unlabeled_weight"),
    ],
)
def test_what_was_chosen_is_told_and_kept(estimator, weight, tmp_path):
    X, _, y = make_table(0)
    estimator.set_params(random_state=0).fit(X, y)
    assert set(estimator.tuned_) == {"ridge", "noise", "log_evidence"} | ({weight} if weight else set())
    kept = load(estimator.save(tmp_path / "model.dsfr")).training["tuned"]
    assert kept == estimator.tuned_
    assert not hasattr(estimator.set_params(tune=None).fit(X, y), "tuned_")


def test_labels_that_do_not_vary_leave_the_usual_values():
    X, _, y = make_table(0)
    y = np.where(np.isnan(y), y, 7.0)
    model = SFRRegressor(tune="evidence", random_state=0).fit(X, y)
    assert model.tuned_ == {"ridge": 0.1, "unlabeled_weight": 0.1}
    np.testing.assert_allclose(model.predict(X), 7.0)


@pytest.mark.parametrize("solver", ["admm", "conjugate"])
def test_tuning_needs_sums(solver):
    with pytest.raises(ValueError, match=r"solver=.* does not go with tune='evidence' .*or take solver='sums'"):
        make_settings(tune="evidence", solver=solver)


@pytest.mark.parametrize("given", [{"ridge": 0.1}, {"unlabeled": ICR(weight=0.1)}, {"unlabeled": Graph(weight=1.0)}])
def test_what_tuning_chooses_cannot_be_given(given):
    with pytest.raises(ValueError, match=r"tune='loo' does not go with (ridge|unlabeled.weight)=.*chooses it"):
        Settings(tune="loo", **given)


def test_other_ways_to_tune_are_refused():
    with pytest.raises(ValueError, match="tune='magic' must be one of 'evidence', 'loo', None"):
        make_settings(tune="magic")


@settings(max_examples=25)
@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.sampled_from(["icr", None]),
    st.sampled_from(["line", "noise", "bent"]),
)
def test_leave_one_out_stays_within_its_bounds(seed, n_agents, unlabeled, kind):
    X, _, y = make_table(seed, n_rows=60)
    line = X @ np.arange(1.0, 4.0)  # without noise: the smaller the ridge, the better
    noise = np.random.default_rng(seed).standard_normal(len(y))
    y = {"line": line, "noise": noise, "bent": y}[kind]
    found, _ = train_on(
        X, y, owners_of(seed, len(y), n_agents), solver="sums", tune="loo", unlabeled=unlabeled, n_rules=2
    )
    for value, bounds in ((found.tuned.ridge, LOG_RIDGE), (found.tuned.unlabeled_weight or 1.0, LOG_WEIGHT)):
        assert 10.0 ** bounds[0] * (1.0 - 1e-12) <= value <= 10.0 ** bounds[1] * (1.0 + 1e-12)
