"""Ever shorter lines: each is the best of its terms, and what is left out costs what it says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.distillation.lines import LineRules, fit_lines, penalties, shorter_lines
from dsfr.core.distillation.student import Stage, cheapest

seeds = st.integers(0, 10_000)


def sums_of(seed, p, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    U = np.column_stack([np.ones(n), X, X @ (rng.normal(size=p) * (rng.random(p) < 0.6)) + rng.normal(size=n)])
    return (U * rng.random(n)[:, None]).T @ U, rng.normal(size=p + 1)


def objective(sums, prior, line):
    diagonal = penalties(sums[0, 0], len(line), has_parent=True)
    fitted = line @ sums[:-1, :-1] @ line - 2.0 * line @ sums[:-1, -1]
    return fitted + diagonal @ (line - prior) ** 2


@given(seed=seeds, p=st.integers(1, 6), signed=st.booleans())
def test_each_line_has_one_term_less_and_costs_what_it_says(seed, p, signed):
    sums, prior = sums_of(seed, p)
    signs = tuple((j, 1 if j % 2 else -1) for j in range(1, p + 1)) if signed else ()
    path = shorter_lines(sums, prior, LineRules(signs=signs))
    assert len(path) == p + 1
    assert path[-1].n_terms == 0
    for entry in path:
        assert all(sign * entry.line[j] >= 0.0 for j, sign in signs)
        paid = objective(sums, prior, entry.line) - objective(sums, prior, path[0].line)
        np.testing.assert_allclose(entry.cost, paid, rtol=1e-6, atol=1e-6 * sums[0, 0])
    assert (np.diff([entry.cost for entry in path]) >= 0.0).all()
    if not signed:
        np.testing.assert_allclose(path[0].line, fit_lines(sums, prior)[0], rtol=1e-6, atol=1e-9)


@given(seed=seeds, most=st.integers(0, 4), without=st.integers(1, 5))
def test_lines_keep_to_what_they_may_have(seed, most, without):
    sums, prior = sums_of(seed, 5)
    path = shorter_lines(sums, prior, LineRules(max_terms=most, without=(without,)))
    assert path
    assert max(entry.n_terms for entry in path) <= most
    assert all(entry.line[without] == 0.0 for entry in path)


prices = st.lists(st.tuples(st.floats(0.0, 2.0), st.integers(1, 60)), min_size=1, max_size=12)


@given(prices, st.floats(0.0, 0.1), st.floats(0.0, 0.1))
def test_a_larger_tolerance_never_gives_more_to_read(found, one, other):
    stages = [Stage(np.zeros((1, 1)), 0.0, price, to_read) for price, to_read in found]
    lower, higher = sorted([one, other])
    assert cheapest(stages, higher).to_read <= cheapest(stages, lower).to_read
    assert cheapest(stages, 0.0).price <= min(price for price, _ in found) + 1e-8
