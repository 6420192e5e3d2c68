"""Errors in deviations of the target: the same in any unit, and known only where targets differ."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr import nrmse
from dsfr.estimators.metrics import RunningError

units = st.sampled_from([1e-300, 1e-200, 1e-3, 1e160, 1e300])


@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), unit=units)
def test_the_unit_of_the_target_does_not_matter(seed, n, unit):
    true, predicted = np.random.default_rng(seed).normal(size=(2, n))
    assert nrmse(unit * true, unit * predicted) == pytest.approx(nrmse(true, predicted), rel=1e-9)


@given(seed=st.integers(0, 10_000), n=st.integers(2, 40), cut=st.integers(0, 40), unit=units)
def test_an_error_of_batches_is_that_of_all_rows(seed, n, cut, unit):
    true, predicted = unit * np.random.default_rng(seed).normal(size=(2, n))
    running = RunningError()
    for part in (slice(None, cut), slice(cut, None)):
        running.add(true[part], predicted[part])
    assert running.is_known
    assert running.nrmse == pytest.approx(nrmse(true, predicted), rel=1e-9)
