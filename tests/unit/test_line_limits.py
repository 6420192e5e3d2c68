"""Limits of the features of lines: sums of pieces give those of any limits, and what explains most is taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.distillation.limits import Limits, chosen_limits, piece_columns, possible_spans
from dsfr.core.distillation.lines import fit_lines

seeds = st.integers(0, 10_000)


def knots_of(rng, u, q, n_distinct):
    """Ascending, the last one repeated where there are fewer."""
    distinct = np.sort(rng.normal(size=(u, n_distinct)), axis=1)
    return np.column_stack([distinct, np.repeat(distinct[:, -1:], q - n_distinct, axis=1)])


def case(seed, u=2, q=5, n_distinct=5, k=1, n=80):
    """Columns, strengths of rules, the teacher, knots and the sums of pieces."""
    rng = np.random.default_rng(seed)
    Z, W = rng.normal(size=(n, u)), rng.dirichlet(np.ones(k), n)
    t = np.clip(Z, -0.5, 0.8) @ rng.normal(size=u) + 0.1 * rng.normal(size=n)
    knots = knots_of(rng, u, q, n_distinct)
    H = np.column_stack([np.ones(n), piece_columns(Z, knots), t])
    return Z, W, t, knots, np.einsum("nk,ni,nj->kij", W, H, H)


def within(Z, limits):
    """Columns within limits."""
    ends = [limits.ends(column) for column in range(Z.shape[1])]
    clipped = (
        np.clip(z, low, high) if (low, high) != (None, None) else z for z, (low, high) in zip(Z.T, ends, strict=True)
    )
    return np.column_stack(list(clipped))


def sums_of(Z, w, t):
    U = np.column_stack([np.ones(len(t)), Z, t])
    return (w[:, None] * U).T @ U


def penalised(sums, prior):
    """The least penalised squared distance of a line, from the normal equations."""
    line, distance = fit_lines(sums, prior)
    weights = sums[0, 0] * np.where(np.arange(len(line)) > 0, 0.01 if prior is not None else 1e-9, 1e-9)
    return distance + weights @ (line - (0.0 if prior is None else prior)) ** 2


@given(seeds, st.integers(1, 3), st.integers(3, 6), st.integers(0, 3), st.integers(1, 3))
def test_sums_of_pieces_give_those_of_all_limits(seed, u, q, n_repeated, k):
    Z, W, t, knots, pieces = case(seed, u, q, max(q - n_repeated, 2), k)
    for span in possible_spans(knots[0]):
        limits = Limits.none(knots).with_span(0, span)
        expected = np.stack([sums_of(within(Z, limits), w, t) for w in W.T])
        np.testing.assert_allclose(limits.sums(pieces), expected, rtol=1e-9, atol=1e-9)


@given(seeds, st.integers(1, 3), st.sampled_from([0.0, 0.1, 3.0]), st.booleans())
def test_the_limits_of_one_column_are_those_that_explain_most(seed, k, worth, has_parents):
    Z, W, t, knots, pieces = case(seed, u=1, k=k)
    priors = [np.random.default_rng(seed + i).normal(size=2) if has_parents else None for i in range(k)]
    possible = [possible_spans(knots[0])]

    def expense(span):
        limits = Limits.none(knots).with_span(0, span)
        columns, n_limits = within(Z, limits), (span[0] > 0) + (span[1] < knots.shape[1])
        fits = (penalised(sums_of(columns, w, t), prior) for w, prior in zip(W.T, priors, strict=True))
        return sum(fits) + worth * n_limits

    found = chosen_limits(pieces, priors, knots, possible, worth)
    assert expense(found.spans[0]) == pytest.approx(min(map(expense, possible[0])), rel=1e-7, abs=1e-9)


@given(seeds, st.integers(1, 7), st.data())
def test_limits_leave_something_of_a_feature_and_all_that_conditions_use(seed, n_distinct, data):
    knots = knots_of(np.random.default_rng(seed), 1, 7, n_distinct)
    low, high = sorted(data.draw(st.tuples(*[st.sampled_from(knots[0].tolist())] * 2)))
    whole, *others = possible_spans(knots[0], (low, high))
    assert Limits.none(knots).with_span(0, whole).ends(0) == (None, None)
    for span in others:
        lower, upper = Limits.none(knots).with_span(0, span).ends(0)
        assert lower is None or lower <= low
        assert upper is None or upper >= high
        assert upper is None or (knots[0, 0] if lower is None else lower) < upper
        assert lower is None or lower < knots[0, -1]
    if n_distinct < 3:
        assert not others


@given(seeds, st.integers(1, 3))
def test_lines_that_are_followed_everywhere_have_no_limits(seed, k):
    rng = np.random.default_rng(seed)
    Z, W, _, knots, _ = case(seed, u=3, k=k)
    H = np.column_stack([np.ones(len(Z)), piece_columns(Z, knots), 1.0 + Z @ rng.normal(size=3)])
    pieces = np.einsum("nk,ni,nj->kij", W, H, H)
    found = chosen_limits(pieces, [None] * k, knots, [possible_spans(own) for own in knots], 1e-6)
    assert found.spans == Limits.none(knots).spans
