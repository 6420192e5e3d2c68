"""Differential privacy: its numbers are right, rows are bounded whatever they are, and nothing leaves without noise."""

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dsfr import (
    AutoSFRRegressor,
    Ensemble,
    FuzzyRules,
    InProcess,
    Policy,
    PolicyError,
    RangeScaling,
    RuleRegressor,
    SFRRegressor,
)
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.disclosure.noise import delta_of, discrete_gaussian, honest_owners, mu_of, noisy_triangle
from dsfr.disclosure.owner import ADMIT, STATE
from dsfr.disclosure.table import TABLE
from dsfr.training import TASKS, make_shards
from dsfr.training.solvers import PrivateSums
from dsfr.training.tasks.messages import scalar
from tests.disclosure.crypto import needs_cryptography
from tests.tables import SumsAlone

LOW, HIGH = np.zeros(3), np.full(3, 10.0)
RANGES = RangeScaling(lower=LOW, upper=HIGH, target_range=(0.0, 60.0))


@given(st.floats(0.05, 12.0), st.floats(0.05, 6.0))
def test_delta_is_that_of_the_gaussian_mechanism(epsilon, mu):
    """The hockey-stick divergence of two normal distributions that are ``mu`` apart, by integration."""

    def density(x):
        return math.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)

    end = mu + 12.0
    start = min(epsilon / mu + mu / 2.0, end)  # where both densities are equal: before, nothing counts
    found = quad(lambda x: density(x - mu) - math.exp(epsilon) * density(x), start, end, limit=400)[0]
    assert delta_of(epsilon, mu) == pytest.approx(found, abs=1e-7)


@given(st.floats(0.05, 20.0), st.floats(-12.0, -2.0))
def test_the_ratio_is_the_largest_that_keeps_both_numbers(epsilon, exponent):
    delta = 10.0**exponent
    mu = mu_of(epsilon, delta)
    assert delta_of(epsilon, mu) <= delta
    assert delta_of(epsilon, 1.001 * mu) > delta


@pytest.mark.parametrize("variance", [1, 4, 50])
def test_discrete_noise_has_the_probabilities_of_a_gaussian(variance):
    rng, n = random.Random(5), 20_000
    drawn = Counter(discrete_gaussian(variance, rng.randrange) for _ in range(n))
    ends = range(-12 * variance, 12 * variance + 1)
    weight = {k: math.exp(-k * k / (2 * variance)) for k in ends}
    for k in range(-3, 4):
        p = weight[k] / sum(weight.values())
        assert abs(drawn[k] / n - p) <= 5.0 * math.sqrt(p * (1 - p) / n)


def test_wide_discrete_noise_has_its_variance():
    rng = random.Random(6)
    drawn = np.array([discrete_gaussian(2**42, rng.randrange) for _ in range(3000)]) / 2.0**21
    assert abs(drawn.mean()) < 5.0 / math.sqrt(3000)
    assert abs(drawn.var() - 1.0) < 5.0 * math.sqrt(2.0 / 3000)


def test_shares_of_more_than_half_of_the_owners_are_enough_noise():
    """The variance that is stated is that of a share, and `honest_owners` of them are what the ratio asks for."""
    rng, bound, mu, n_owners = random.Random(7), 4.0, 0.5, 5
    drawn = [noisy_triangle(np.zeros(6), bound, mu, n_owners, rng.randrange) for _ in range(1500)]
    found = np.array([products for products, _ in drawn])
    variance = drawn[0][1]
    assert honest_owners(n_owners) * variance == pytest.approx(2.0 * (bound / mu) ** 2, rel=1e-4)
    expected = variance * np.array([1.0, 0.5, 0.5, 1.0, 0.5, 1.0])
    assert (np.abs(found.var(axis=0) / expected - 1.0) < 6.0 * math.sqrt(2.0 / 1500)).all()


@pytest.mark.parametrize("n_owners", range(1, 30))
def test_fewer_than_half_of_the_owners_cannot_subtract_the_noise(n_owners):
    assert n_owners - honest_owners(n_owners) < n_owners / 2


WILD = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=60)
@given(st.data())
def test_one_row_moves_a_sum_by_no_more_than_noise_is_made_for(data):
    """Over all rows, ranges and rules that a broadcast may have; the other rows cancel."""
    d, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    vectors = st.lists(WILD, min_size=d, max_size=d)
    sums = []
    rules = Rules(
        np.array(data.draw(st.lists(st.lists(st.floats(-3, 3), min_size=d, max_size=d), min_size=k, max_size=k))),
        np.array(data.draw(st.lists(st.lists(st.floats(1e-6, 9), min_size=d, max_size=d), min_size=k, max_size=k))),
    )
    low = np.array(data.draw(st.lists(st.floats(-9, 9), min_size=d, max_size=d)))
    ranges = {"low": low, "high": low + data.draw(st.floats(1e-3, 9))}
    asked = {**rules.arrays(), "target_mean": scalar(data.draw(st.floats(-5, 5))), "target_scale": scalar(0.3)}
    for _ in range(2):
        X, y = np.array([data.draw(vectors), low + 0.5]), np.array([data.draw(WILD), 1.0])
        (shard,) = make_shards(X, y, np.zeros(2)).values()
        memory, moments = TASKS["clipped_moments"](shard, {}, {"seed": np.asarray(0), **ranges})
        sums.append((moments["products"], TASKS["clipped_statistics"](shard, memory, asked)[1]["products"]))
    for task, one, other in zip(("clipped_moments", "clipped_statistics"), *sums, strict=True):
        size = int(np.sqrt(2 * len(one)))
        weight = np.where(np.equal(*np.triu_indices(size)), 1.0, 2.0)
        moved = math.sqrt(float(weight @ (one - other) ** 2))
        noise = TABLE[task].noise
        assert noise is not None
        assert moved <= math.sqrt(2.0) * noise.bound(d) * (1.0 + 1e-9)


def test_the_budgets_of_all_tasks_add_up():
    assert sum(rules.noise.budget for rules in TABLE.values() if rules.noise is not None) == pytest.approx(1.0)


def rows(n=1500, n_labels=1200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, (n, 3))
    y = 3.0 * X[:, 0] + np.where(X[:, 1] < 5.0, X[:, 1], 5.0) + rng.standard_normal(n)
    y[n_labels:] = np.nan
    return X, y, np.arange(n) % 5


def model(solver="private-sums", epsilon=3.0, masks=True, **options):
    where = InProcess(policy=Policy(epsilon=epsilon), masks=masks)
    told = {"n_rules": 3, "unlabeled": None, "rules": FuzzyRules(width_scale=3.0), "scaling": RANGES, "random_state": 0}
    return SFRRegressor(solver=solver, engine=where, **told | options)


def nrmse(fitted, X, y):
    known = ~np.isnan(y)
    return np.std(fitted.predict(X[known]) - y[known]) / np.std(y[known])


def test_a_private_fit_asks_two_sums_and_learns():
    needs_cryptography()
    X, y, owners = rows()
    fitted = model(epsilon=10.0).fit(X, y, agents=owners)
    asked = {task for task, _ in fitted.ledger_.entries}
    assert asked - {STATE, ADMIT} == {"clipped_moments", "clipped_statistics"}
    assert nrmse(fitted, X, y) < 0.8


def test_little_noise_gives_the_model_without_noise_and_much_noise_another_every_time():
    needs_cryptography()
    X, y, owners = rows()
    plain = SFRRegressor(
        solver=PrivateSums(),
        n_rules=3,
        unlabeled=None,
        rules=FuzzyRules(width_scale=3.0),
        scaling=RANGES,
        random_state=0,
    ).fit_over(lambda settings: SumsAlone(make_shards(X, y, owners), TASKS), ("a", "b", "c"), "y")
    close = model(epsilon=1e9).fit(X, y, agents=owners)
    assert np.abs(close.predict(X) - plain.model_.predict(X)).max() < 0.05 * np.nanstd(y)
    first, second = (model(epsilon=1.0).fit(X, y, agents=owners).predict(X) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.parametrize(
    ("changes", "n_labels", "match"),
    [
        ({}, 900, "900 labels of all owners, and with fewer than 1000 noise drowns"),
        ({"masks": False}, 1200, "contributions are not masked, and each has a share of the noise only"),
        ({"epsilon": None}, 1200, "it needs noise, and this owner's policy has no epsilon"),
        ({"solver": "sums"}, 1200, "this owner answers sums with noise alone"),
    ],
)
def test_what_would_not_be_private_is_refused(changes, n_labels, match):
    needs_cryptography()
    X, y, owners = rows(n_labels=n_labels)
    with pytest.raises(PolicyError, match=match):
        model(**changes).fit(X, y, agents=owners)


def test_automatic_models_and_plain_engines_are_refused():
    needs_cryptography()
    X, y, owners = rows()
    teacher = AutoSFRRegressor(scaling=RANGES, uncertainty=False, ensemble=Ensemble(max_weights_per_label=1 / 3))
    with pytest.raises(PolicyError, match="'epsilon'"):
        RuleRegressor(teacher=teacher, engine=model().engine).fit(X, y, agents=owners)
    with pytest.raises(ValueError, match="needs owners that add noise"):
        SFRRegressor(solver="private-sums", unlabeled=None, scaling=RANGES).fit(X, y, agents=owners)
    for options in ({"unlabeled": "icr"}, {"tune": "evidence"}):
        with pytest.raises(ValueError, match="two noisy sums, and nothing else"):
            model(**options).fit(X, y, agents=owners)


def test_a_noisy_sum_is_answered_once(tmp_path):
    """Asking again would average the noise away."""
    needs_cryptography()
    X, y, owners = rows()

    class Greedy(PrivateSums):
        shorthand = ""

        def agree_weights(self, problem):
            super().agree_weights(problem)
            return super().agree_weights(problem)

    with pytest.raises(PolicyError, match="epsilon=3 of this fit is spent: each noisy sum is answered once"):
        model(solver=Greedy()).fit(X, y, agents=owners)


@pytest.mark.parametrize(("ours", "is_looser"), [(None, True), (2.0, True), (1.0, False), (0.5, False)])
def test_a_smaller_epsilon_is_tighter(ours, is_looser):
    assert Policy(epsilon=ours).looser_than(Policy(epsilon=1.0)) == (["epsilon"] if is_looser else [])
    assert Policy(epsilon=ours).looser_than(Policy()) == []


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"epsilon": -1.0}, {"delta": 0.0}, {"delta": 0.5}])
def test_numbers_that_promise_nothing_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Policy(**wrong)
