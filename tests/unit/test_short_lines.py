"""Ever shorter lines: each is the best of its terms, and no other step saves a number at a lower cost."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.distillation.lines import LineRules, fit_lines
from dsfr.core.distillation.shorter import LineSystem, Terms, shorter_lines
from dsfr.core.distillation.student import Stage, cheapest
from dsfr.core.prediction.shared_slopes import n_terms, shared_slopes

seeds = st.integers(0, 10_000)


def sums_of(seed, p, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    U = np.column_stack([np.ones(n), X, X @ (rng.normal(size=p) * (rng.random(p) < 0.6)) + rng.normal(size=n)])
    return (U * rng.random(n)[:, None]).T @ U, rng.normal(size=p + 1)


def system_of(seed, k, p):
    pairs = [sums_of(seed + rule, p) for rule in range(k)]
    return [sums for sums, _ in pairs], [prior for _, prior in pairs], LineSystem.of(*zip(*pairs, strict=True))


def objective(system, lines):
    return np.einsum("ki,kij,kj->", lines, system.blocks, lines) - 2.0 * (lines * system.target).sum()


def n_numbers(terms):
    return int(terms.present[:, ~terms.same].sum() + terms.same.sum())


def possible_steps(terms):
    """Terms after every step: a term out of one rule, out of all, or with one slope for all."""
    k, p = terms.present.shape
    for j in range(1, p):
        rules = np.flatnonzero(terms.present[:, j]).tolist()
        if len(rules):
            yield terms.without(rules, j)
        if not terms.same[j]:
            yield from (terms.without([rule], j) for rule in rules)
            if len(rules) == k > 1:
                yield terms.with_same(j)


@given(seed=seeds, k=st.integers(1, 3), p=st.integers(1, 4))
def test_each_step_saves_numbers_at_the_least_cost_for_each(seed, k, p):
    sums, priors, system = system_of(seed, k, p)
    path = list(shorter_lines(system, LineRules()))
    np.testing.assert_allclose(
        path[0][1], [fit_lines(one, prior)[0] for one, prior in zip(sums, priors, strict=True)], rtol=1e-6, atol=1e-9
    )
    assert n_numbers(path[-1][0]) == k
    for (terms, lines), (after, _) in pairwise(path):
        np.testing.assert_allclose(lines, system.solved(terms), rtol=1e-6, atol=1e-8)
        assert (lines[~terms.present] == 0.0).all()
        assert (lines[:, terms.same] == lines[0, terms.same]).all()
        least = objective(system, system.solved(terms))
        rates = [
            (objective(system, system.solved(step)) - least) / (n_numbers(terms) - n_numbers(step))
            for step in possible_steps(terms)
        ]
        taken = (objective(system, system.solved(after)) - least) / (n_numbers(terms) - n_numbers(after))
        assert taken <= min(rates) + 1e-6 * abs(least)


@given(seed=seeds, k=st.integers(1, 4), p=st.integers(1, 4))
def test_lines_solve_the_normal_equations_of_the_numbers_that_remain(seed, k, p):
    _, _, system = system_of(seed, k, p)
    rng = np.random.default_rng(seed)
    present, same = rng.random((k, p + 1)) < 0.7, rng.random(p + 1) < 0.4
    same[0], present[:, 0] = False, True
    present[:, same] = True
    numbers = [np.eye(k * (p + 1))[place] for place in np.flatnonzero((present & ~same).ravel())]
    numbers += [np.tile(np.eye(p + 1)[j], k) for j in np.flatnonzero(same)]
    E = np.array(numbers).T
    whole = np.zeros((k, p + 1, k, p + 1))
    whole[np.arange(k), :, np.arange(k)] = system.blocks
    inverse = E @ np.linalg.inv(E.T @ whole.reshape(len(E), -1) @ E) @ E.T
    lines, entries = system.solved_with_inverse(Terms(present, same))
    np.testing.assert_allclose(lines.ravel(), inverse @ system.target.ravel(), rtol=1e-6, atol=1e-8)
    expected = np.einsum("ajbj->jab", inverse.reshape(whole.shape))
    np.testing.assert_allclose(entries, expected, rtol=1e-6, atol=1e-9 * np.abs(inverse).max())


def near_copies(seed, n=300):
    """One rule without a parent, of three columns and nearly the same as two of them once more."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    X = np.column_stack([X, X[:, :2] + rng.normal(0.0, 1e-5, (n, 2))])
    U = np.column_stack([np.ones(n), X, X @ rng.normal(size=5) + rng.normal(0.0, 0.1, n)])
    return LineSystem.of([U.T @ U], [None])


@given(seed=seeds)
def test_columns_that_are_nearly_the_same_cost_no_digits(seed):
    system = near_copies(seed)
    path = list(shorter_lines(system, LineRules()))
    explained = abs(objective(system, system.solved(path[0][0])))
    for (terms, lines), (after, _) in pairwise(path):
        least = objective(system, system.solved(terms))
        assert abs(objective(system, lines) - least) <= 1e-6 * explained
        taken = objective(system, system.solved(after))
        assert taken <= min(objective(system, system.solved(step)) for step in possible_steps(terms)) + 1e-6 * explained


@given(seed=seeds, k=st.integers(1, 3), most=st.integers(0, 4), without=st.integers(1, 5), signed=st.booleans())
def test_lines_keep_to_what_they_may_have(seed, k, most, without, signed):
    _, _, system = system_of(seed, k, 5)
    signs = tuple((j, 1 if j % 2 else -1) for j in range(1, 6)) if signed else ()
    path = list(shorter_lines(system, LineRules(max_terms=most, signs=signs, without=(without,))))
    assert path
    for terms, lines in path:
        assert np.count_nonzero(lines[:, 1:], axis=1).max() <= most
        assert not lines[:, without].any()
        assert all((sign * lines[:, j] >= 0.0).all() for j, sign in signs)
        assert all((sign * system.solved(terms)[:, j] >= -1e-9).all() for j, sign in signs)


lines_of_rules = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from([0.0, 1.0, -2.5]), min_size=k, max_size=k), min_size=1, max_size=6)
)


@given(lines_of_rules)
def test_what_all_rules_share_is_read_once_where_that_saves_two_numbers(columns):
    lines = np.column_stack([np.ones(len(columns[0])), np.array(columns).T])
    equal = [column for column in columns if column[0] != 0.0 and len(set(column)) == 1]
    saved = len(equal) * (len(lines) - 1)
    assert shared_slopes(lines).sum() == (len(equal) if saved >= 2 else 0)
    assert n_terms(lines) == sum(np.count_nonzero(columns, axis=1)) - (saved if saved >= 2 else 0)


prices = st.lists(st.tuples(st.floats(0.0, 2.0), st.integers(1, 60)), min_size=1, max_size=12)


@given(prices, st.floats(0.0, 0.1), st.floats(0.0, 0.1))
def test_a_larger_tolerance_never_gives_more_to_read(found, one, other):
    stages = [Stage(np.zeros((1, 1)), 0.0, price, to_read) for price, to_read in found]
    lower, higher = sorted([one, other])
    assert cheapest(stages, higher).to_read <= cheapest(stages, lower).to_read
    assert cheapest(stages, 0.0).price <= min(price for price, _ in found) + 1e-8
