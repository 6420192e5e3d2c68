"""Owners whose values lie elsewhere, each with few rows where others have many: models still explain the target."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble, InProcess, Policy, PolicyError, RangeScaling, RuleRegressor
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.core.scaling.grid import grid
from dsfr.core.scaling.tails import MOST_MOVED, CellSums, tail_limits
from dsfr.disclosure import protect, protected_tasks
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards

N_OWNERS = 5
RANGES = RangeScaling(lower=(-30.0, 0.0, 0.0, 0.0), upper=(60.0, 100.0, 60.0, 23.0), target_range=(0.0, 120.0))


def climates(n_rows, seed, labeled=0.01):
    """Rows, targets without noise, known targets and owners, as in examples/make_sites.py."""
    rng, owners = np.random.default_rng(seed), np.arange(N_OWNERS * n_rows) % N_OWNERS
    n = len(owners)
    temperature = rng.normal(5.0 + 5.0 * owners, 6.0)
    humidity = np.clip(rng.normal(80.0 - 8.0 * owners, 12.0), 5.0, 100.0)
    wind, hour = rng.gamma(2.0, 2.0, n), rng.integers(0, 24, n).astype(float)
    full = 40.0 + (temperature - 18.0) ** 2 / 60.0 + 8.0 * np.sin((hour - 7.0) * np.pi / 12.0) + 0.05 * humidity
    full -= 0.3 * wind
    known = np.where(rng.random(n) < labeled, full + rng.normal(0.0, 1.0, n), np.nan)
    return np.column_stack([temperature, humidity, wind, hour]), full, known, owners


def error(policy, n_rows, seed, *, is_short=True):
    """Part of the target's deviation that short rules, or their teacher, do not explain."""
    X, full, y, owners = climates(n_rows, seed)
    where = InProcess(policy=policy)
    teacher = AutoSFRRegressor(scaling=RANGES, uncertainty=False, ensemble=Ensemble(max_weights_per_label=1 / 3))
    model = RuleRegressor(teacher=teacher, engine=where) if is_short else teacher.set_params(engine=where)
    return np.std(model.set_params(random_state=0).fit(X, y, agents=owners).predict(X) - full) / np.std(full)


@pytest.mark.parametrize(
    ("n_rows", "seed", "more"),
    [(2000, 0, 0.15), *(pytest.param(n, 1, more, marks=pytest.mark.slow) for n, more in ((2000, 0.15), (5000, 0.05)))],
)
@pytest.mark.filterwarnings("ignore:the clusters did not reach tol")  # owners refuse the last steps, as ADR 53 says
def test_short_rules_explain_the_target_under_a_policy_nearly_as_well_as_without(n_rows, seed, more):
    assert error(Policy(), n_rows, seed) <= error(None, n_rows, seed) + more


@pytest.mark.filterwarnings("ignore:the clusters did not reach tol")  # owners refuse the last steps, as ADR 53 says
def test_automatic_models_keep_their_curves_though_every_owner_has_few_rows_somewhere():
    assert error(Policy(), 4000, 0, is_short=False) <= 0.15


columns = st.one_of(
    st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=400),
    st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=400),
    st.builds(
        lambda seed, n, scale: np.random.default_rng(seed).normal(0.0, scale, n).tolist(),
        st.integers(0, 99),
        st.integers(1, 3000),
        st.sampled_from([0.01, 0.3, 3.0]),
    ),
)


@given(columns, st.sampled_from([1.0, 5.0, 18.0]))
def test_no_cell_at_an_end_has_a_few_rows_once_tails_are_moved(column, least):
    x, ranges = np.array(column), Ranges(np.array([-5.0]), np.array([5.0]))
    limits = tail_limits(ranges, [x[:, None]], least)
    moved = limits.clip(x[:, None])[:, 0]
    for is_beyond, limit in ((x < moved, limits.low[0]), (x > moved, limits.high[0])):
        assert np.count_nonzero(is_beyond) <= MOST_MOVED * len(x)
        assert is_beyond.any() or abs(limit) == LARGEST_FLOAT
    cells = CellSums.none(np.unique(grid(ranges)[0])).plus(moved)
    occupied = np.flatnonzero(cells.counts)
    for moved_here, cell in ((x < moved, occupied[0]), (x > moved, occupied[-1])):
        inner = 0 < cell < len(cells.values)
        masses = [cells.counts[cell], *([cells.positions[cell]] if inner else [])]
        assert not moved_here.any() or all(mass == 0.0 or mass >= least * 0.99 for mass in masses)


@pytest.mark.parametrize("seed", [0, 1])
def test_how_far_a_lone_value_lies_off_shows_in_no_sum(seed):
    X, _, y, owners = climates(1000, seed, labeled=0.05)
    assert (sums_of_a_fit(X, y, owners, 45.5) == sums_of_a_fit(X, y, owners, 59.0)) is True


def sums_of_a_fit(X, y, owners, value):
    """All sums that the coordinator sees, as bytes; the first row has this temperature."""
    rows, seen = X.copy(), []
    rows[0, 0] = value

    class Seen(InProcessEngine):
        def _run_round(self, task, verb, broadcast):
            contributions = super()._run_round(task, verb, broadcast)
            seen.extend((task, [array.tobytes() for array in part.values()]) for part in contributions)
            return contributions

    def engine_of(_):
        tasks = protected_tasks(TASKS, policy=Policy())
        return protect(Seen(make_shards(rows, y, owners), tasks), policy=True, masked=False)

    teacher = AutoSFRRegressor(scaling=RANGES, uncertainty=False, ensemble=Ensemble(max_weights_per_label=1 / 3))
    RuleRegressor(teacher=teacher, random_state=0).fit_over(engine_of, ["a", "b", "c", "d"])
    return seen


def test_nothing_is_answered_before_ranges_are_declared():
    X, _, y, owners = climates(200, 0, labeled=0.2)
    engine = protect(
        InProcessEngine(make_shards(X, y, owners), protected_tasks(TASKS, policy=Policy())), policy=True, masked=False
    )
    with pytest.raises(PolicyError, match="'value_sums' is refused: no declared ranges"):
        engine.sum("value_sums", {"low": np.array(RANGES.lower), "high": np.array(RANGES.upper)})
