"""Shared fixtures: hypothesis profiles, small tables, engines that serialise every message."""

import os
import signal

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, so that a failure is not gone tomorrow; "search" looks for new ones.
settings.register_profile(
    "default", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A shell starts background jobs with SIGINT ignored, and programs inherit that: tests could not interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng():
    return np.random.default_rng(int(os.environ.get("DSFR_TEST_SEED", "42")))
