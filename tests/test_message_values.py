import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.solve.statistics import Statistics
from dsfr.training.tasks.messages import pack_statistics, symmetric, unpack_statistics, upper_triangle


@given(st.integers(0, 1000), st.integers(1, 8))
def test_a_triangle_holds_the_whole_matrix(seed, p):
    A = np.random.default_rng(seed).standard_normal((p, p))
    assert upper_triangle(A + A.T).shape == (p * (p + 1) // 2,)
    np.testing.assert_array_equal(symmetric(upper_triangle(A + A.T), p), A + A.T)


@given(st.integers(0, 1000), st.integers(1, 6), st.booleans())
def test_statistics_come_back_from_their_bundle(seed, p, with_penalty):
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((2, p, p))
    penalty = B @ B.T * with_penalty
    sent = Statistics(A @ A.T, rng.standard_normal(p), rng.standard_normal(p), penalty, 3.0, 0.5, 2.0)
    bundle = pack_statistics(sent, with_penalty=with_penalty)
    back = unpack_statistics(bundle)
    for name in Statistics.__slots__:
        np.testing.assert_allclose(getattr(back, name), getattr(sent, name), atol=1e-15)
    assert ("unlabeled_gram" in bundle) is with_penalty
