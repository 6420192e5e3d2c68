"""In the core, a silent overflow or invalid operation is a failure. Underflow to zero is harmless."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def loud_arithmetic():
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield
