"""Mixtures: one member is the member itself, several are their weighted average."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.distillation.tree import rules_of
from dsfr.core.features.bases import BASES, basis_of
from dsfr.core.features.effects import Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.scores import Scores
from tests.test_effect_members import effects_of
from tests.test_explain import average_of, model_of, predictor_of, rows_of
from tests.test_rule_card import random_tree

seeds = st.integers(0, 10_000)


def predictor_with(seed, kind):
    predictor = predictor_of(seed)
    if kind is Rules:
        return predictor
    rng = np.random.default_rng(seed)
    others = {
        Wavelets: lambda: Wavelets.draw(4, 3, rng),
        Effects: lambda: effects_of(seed),
        LinguisticRules: lambda: rules_of(random_tree(rng, 4, 3), 3),
    }
    basis = others[kind]()
    return replace(predictor, basis=basis, weights=rng.standard_normal(basis.n_outputs), shares=np.empty(0))


@given(seed=seeds, kind=st.sampled_from(BASES), fast=st.booleans())
def test_a_mixture_of_one_predicts_the_bits_of_its_member(seed, kind, fast):
    predictor = predictor_with(seed, kind)
    X = rows_of(seed, predictor)
    np.testing.assert_array_equal(Mixture.of(predictor).predict(X, fast=fast), predictor.predict(X, fast=fast))
    assert Mixture.of(predictor).strongest is predictor


@given(seed=seeds, kind=st.sampled_from(BASES))
def test_a_basis_is_read_back_from_its_arrays_among_others(seed, kind):
    basis = predictor_with(seed, kind).basis
    found = basis_of({"weights": np.ones(1), **basis.arrays()})
    assert type(found) is kind
    for array, same in zip(found.arrays().values(), basis.arrays().values(), strict=True):
        np.testing.assert_array_equal(array, same)
    assert found.locations.shape == found.scales.shape
    assert found.n_outputs == found.features(np.zeros((1, 3))).shape[1]
    assert found.n_rules == (len(found.locations) if kind in (Rules, LinguisticRules) else 0)


def test_arrays_of_no_basis_are_refused():
    with pytest.raises(ValueError, match="no basis has the arrays centers, low"):
        basis_of({"centers": np.ones((1, 1)), "low": np.ones(1)})


def test_without_uncertainty_there_are_no_deviations_even_of_no_rows():
    model = model_of(predictor_of(0))
    for X in (np.empty((0, 3)), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="the model has no uncertainty: train it with uncertainty=True"):
            model.deviations(X)
    with pytest.raises(ValueError, match="the model has no uncertainty"):
        model.half_width(0.5)
    assert model.half_widths([0.5]) == {}


@given(seed=seeds)
def test_half_widths_are_those_of_coverages_with_enough_labels(seed):
    model = average_of(seed)
    coverages = [0.5, 0.9, 0.96, 0.999]
    known = model.half_widths(coverages)
    assert list(known) == [0.5, 0.9, 0.96]  # of 30 labels, at least 1/31 lies outside
    assert all(half == model.half_width(coverage) for coverage, half in known.items())
    with pytest.raises(ValueError, match="needs at least 999 labelled rows"):
        model.half_width(0.999)


def test_the_strongest_is_the_one_with_the_largest_share():
    predictors = [predictor_of(seed) for seed in range(3)]
    shares = (0.2, 0.5, 0.3)
    mixture = Mixture(tuple(map(Member, predictors, shares)), Scores(np.ones(1), np.ones(1)))
    assert mixture.strongest is predictors[1]


@given(seed=seeds, n=st.integers(1, 500), deviation=st.floats(1e-3, 1e3), size=st.floats(1e-6, 1e2))
def test_caution_enlarges_small_errors_less_with_more_labels_and_never_beyond_the_deviation(seed, n, deviation, size):
    errors = np.sort(size * deviation * np.abs(np.random.default_rng(seed).normal(size=n)))
    scores = Scores(errors, np.arange(1.0, n + 1.0))
    more = Scores(errors, 10.0 * scores.counts)
    cautious = scores.cautious(deviation)
    if scores.deviation >= deviation:
        np.testing.assert_array_equal(cautious.thresholds, errors)
    else:
        assert scores.deviation <= more.cautious(deviation).deviation <= cautious.deviation <= deviation * (1 + 1e-9)


def test_errors_of_zero_stay_as_they_are():
    scores = Scores(np.zeros(3), np.array([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(scores.cautious(1.0).thresholds, 0.0)
