"""What an agent remembers of an iteration, and what it does about rounds that it has missed."""

import numpy as np

from dsfr.training.fixed_point import Iteration, keep_image, recall
from dsfr.training.tasks.registry import forget

ONE, TWO, FAR = np.array([1.0, 0.0]), np.array([0.0, 2.0]), np.array([8.0, 8.0])


def told(number, *mix):
    return {"round": np.asarray(number), "mix": np.array(mix)}


def after_two_rounds():
    memory, _ = keep_image({}, told(1, 1.0), np.zeros(2), ONE)
    return keep_image(memory, told(2, 1.0), ONE, TWO)


def test_it_goes_on_from_the_combination_that_it_is_told():
    memory, products = after_two_rounds()
    np.testing.assert_array_equal(recall(memory, told(3, 0.25, 0.75)), 0.25 * ONE + 0.75 * TWO)
    gaps = np.array([ONE, TWO - ONE])
    np.testing.assert_array_equal(products, gaps @ gaps[1])


def test_who_has_no_state_has_nothing_to_recall():
    assert recall({}, told(1, 1.0)) is None


def test_who_was_away_goes_on_from_the_last_image_and_combines_nothing():
    memory, _ = after_two_rounds()
    back = told(5, 0.25, 0.75)
    np.testing.assert_array_equal(recall(memory, back), TWO)
    memory, products = keep_image(memory, back, TWO, FAR)
    np.testing.assert_array_equal(memory["images"], [FAR])
    np.testing.assert_array_equal(products, [0.0, 0.0, np.sum((FAR - TWO) ** 2)])


def test_who_remembers_less_than_it_is_told_to_combine_goes_on_from_the_last_image():
    memory, _ = after_two_rounds()
    np.testing.assert_array_equal(recall(memory, told(3, 0.2, 0.3, 0.5)), TWO)


def test_forgetting_leaves_nothing_of_the_iteration():
    memory, _ = after_two_rounds()
    assert forget(
        {**memory, "cluster_penalty": ONE, "weight_penalty": ONE, "weight_factor": ONE, "seed": TWO}
    ).keys() == {"seed"}


def test_combining_starts_anew_when_somebody_leaves_or_returns():
    iteration = Iteration(5)
    sums = {"products": np.array([1.0]), "image": ONE}
    np.testing.assert_array_equal(iteration.receive(sums, ["a", "b"]), ONE)
    iteration.receive({"products": np.array([0.5, 1.0]), "image": TWO}, ["a", "b"])
    assert len(iteration.mix) == 2
    np.testing.assert_array_equal(iteration.receive({"products": np.array([0.1, 0.1, 1.0]), "image": FAR}, ["a"]), FAR)
    assert len(iteration.mix) == 1
    assert iteration.n_present == 1
