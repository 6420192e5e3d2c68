"""Splits of rules: parts without rows are no candidates."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.distillation.split_sums import Candidates, SplitSums, bin_positions, triangle_products
from dsfr.core.distillation.tree import Growth, Tree


@given(seed=st.integers(0, 2**32 - 1), empty=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_knots_beyond_all_rows_make_no_split_and_no_error(seed, empty):
    """Sums of a part without rows are rounding errors of any sign: no line can be fitted to them."""
    rng = np.random.default_rng(seed)
    n = 60
    X = rng.uniform(0.0, 1.0, (n, 1))
    U = np.column_stack([np.ones(n), X, 3.0 * X, np.abs(X - 0.5)])
    knots = np.concatenate([[0.25, 0.5, 0.75], 2.0 + np.arange(empty)])[None]
    inside, within = bin_positions(X, knots)
    products = triangle_products(U)
    q = knots.shape[1]
    bins = (inside.T @ products).reshape(1, q + 1, -1)
    bins[0, -1] = 1e-17 * rng.choice([-1.0, 1.0])  # equal entries: singular
    sums = SplitSums(bins, (within.T @ products).reshape(1, q - 1, -1))
    candidates = Candidates(np.array([0]), knots, {})
    growth = Growth(candidates, max_conditions=3, least_mass=1.0, least_gain=0.0)
    split = Tree.root().with_sums([0], [sums], candidates).best_split(growth)
    assert split is not None
    assert split.parts[0][0][1][0] < 1.0
    heavy = Growth(candidates, max_conditions=3, least_mass=n, least_gain=0.0)
    assert Tree.root().with_sums([0], [sums], candidates).best_split(heavy) is None
