"""What agents tell each other about their errors, so that they stop together and not too early."""

import numpy as np
import pytest

from dsfr.training import TASKS, make_shards
from dsfr.training.decentralized.gossip import HUGE, copy_round
from tests.tables import make_table

SETTLED = {
    "value": np.array([1.0, 2.0]),
    "dual": np.zeros(2),
    "around": np.array([4.0, 8.0]),  # d x + s with two neighbors that agree
    "neighbor_value": np.array([2.0, 4.0]),
    "n_links": np.asarray(2),
    "n_missing": np.asarray(0),
    "worst": np.asarray(0.25),
    "neighbor_worst": np.asarray(0.5),
}


def round_of(memory, **mark):
    broadcast = {name: np.asarray(1.0) for name in mark}

    def error(gradient, apart):
        return float(gradient.sum() + apart.sum())

    return copy_round(memory, broadcast, 3.0, lambda pull, n_links: pull / (2 * 3.0 * n_links), error)


def test_within_a_span_the_largest_error_heard_of_is_passed_on():
    memory, contribution = round_of(SETTLED)
    assert contribution["worst"] == memory["worst"] == 0.5
    _, own_is_larger = round_of(SETTLED | {"worst": np.asarray(0.75)})
    assert own_is_larger["worst"] == 0.75


def test_at_the_start_of_a_span_it_is_the_own_error_and_before_the_first_exchange_unknown():
    assert round_of(SETTLED, fresh=True)[1]["worst"] == 0.0
    assert round_of(SETTLED, first=True)[1]["worst"] == HUGE
    apart = round_of(SETTLED | {"neighbor_value": np.array([2.0, 5.0])}, fresh=True)[1]["worst"]
    assert apart == pytest.approx(0.5 + 3.0)  # half a unit from the neighbors' mean, and 3 (d x + s) has moved by 3
    drifting = round_of(SETTLED | {"around": np.array([4.0, 6.0])}, fresh=True)[1]["worst"]
    assert drifting == pytest.approx(3.0 * 2.0)


def test_at_rest_nothing_moves():
    memory, contribution = round_of(SETTLED, fresh=True)
    np.testing.assert_array_equal(contribution["value"], SETTLED["value"])
    np.testing.assert_array_equal(memory["dual"], 0.0)


def test_a_neighbor_that_is_not_heard_counts_as_if_it_agreed():
    half_heard = SETTLED | {
        "n_links": np.asarray(1),
        "n_missing": np.asarray(1),
        "neighbor_value": np.array([1.0, 2.0]),
    }
    memory, contribution = round_of(half_heard, fresh=True)
    np.testing.assert_array_equal(contribution["value"], SETTLED["value"])
    assert contribution["worst"] == 0.0
    np.testing.assert_array_equal(memory["dual"], 0.0)


@pytest.mark.parametrize("task", ["neighbor_centers", "average"])
@pytest.mark.parametrize("moves", [True, False])
def test_agents_that_agree_but_still_move_together_are_not_done(task, moves):
    """Equal copies are not enough: they may all be on their way."""
    X, _, y = make_table(0, n_features=2)
    shard = next(iter(make_shards(X, y, np.zeros(len(y))).values()))
    value = np.array([[0.1, 0.2], [-0.3, 0.4]])
    memory = {
        "value": value,
        "own": value,
        "dual": np.zeros_like(value),
        "around": 2.0 * value + (0.5 if moves else 0.0),
        "neighbor_value": value,
        "n_links": np.asarray(1),
        "n_missing": np.asarray(0),
        "worst": np.asarray(0.0),
        "neighbor_worst": np.asarray(0.0),
        "counts": np.array([60.0, 15.0, 0.0, 15.0]),
        "low": X.min(axis=0),
        "high": X.max(axis=0),
        "fuzzifier": np.asarray(2.0),
    }
    told = {"links_per_agent": 1.0, "diameter": 1, "stiffness": 1.0, "fresh": 1.0}
    _, contribution = TASKS[task](shard, memory, {name: np.asarray(number) for name, number in told.items()})
    assert (contribution["worst"] > 0.1) == moves
