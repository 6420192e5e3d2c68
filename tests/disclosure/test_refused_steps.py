"""Refusals of single steps: which of them end clustering early, and how many an honest fit can meet."""

import numpy as np
import pytest

from dsfr import AutoSFRRegressor, Ensemble, Policy, RuleRegressor, SFRRegressor
from dsfr.disclosure.history import differences
from dsfr.engines import RefusedError
from dsfr.training import TASKS, RangeScaling, make_shards
from dsfr.training.clustering.clusters import FEW_ROWS_APART
from dsfr.training.distillation.growth import MOST_MISSING, MOST_REFUSALS
from dsfr.training.ensemble.rule_bases import MOST_STEPS
from dsfr.training.settings import Settings
from tests.tables import SumsAlone, make_table

FEATURES = ("a", "b", "c")
SCALING = RangeScaling(lower=(2.0, -7.0, -97.0), upper=(4.0, 13.0, 103.0), target_range=(0.0, 100.0))


class Refusing(SumsAlone):
    """Refuses every step of clustering but the first few."""

    rule, answers = "", 0

    def sum(self, task, broadcast):
        if task == "cluster_sums":
            self.answers -= 1
            if self.answers < 0:
                raise RefusedError(f"agent '0': task {task!r} is refused by policy rule {self.rule!r}: 1 row")
        return super().sum(task, broadcast)


def fit(rule, answers):
    X, _, y = make_table(0, n_rows=360, n_labels=120)
    model = SFRRegressor(n_rules=3, solver="sums", scaling=SCALING, random_state=0)

    def engine(settings):
        made = Refusing(make_shards(X, y, np.arange(len(y)) % 3), TASKS)
        made.rule, made.answers = rule, answers
        return made

    return model.fit_over(engine, FEATURES, "y")


def test_a_step_that_differs_by_few_rows_keeps_the_centers_before_and_is_no_convergence():
    with pytest.warns(UserWarning, match=r"clusters did not reach tol.* refused the last steps, more rounds do not"):
        model = fit("differences", 2)
    assert model.termination_ == "max_rounds"
    assert sum(info.stage == "clusters" for info in model.history_) == 2


@pytest.mark.parametrize("rule", ["cluster_mass", "centers", "fuzzifier"])
def test_a_step_that_another_rule_refuses_is_refused(rule):
    with pytest.raises(RefusedError, match=rule):
        fit(rule, 2)


@pytest.mark.parametrize("rule", ["differences", "cluster_mass"])
def test_the_first_step_is_refused_by_every_rule(rule):
    with pytest.raises(RefusedError, match=rule):
        fit(rule, 0)


def test_the_rule_is_read_from_the_text():
    assert differences.__name__ == FEW_ROWS_APART
    assert RefusedError("a refuses: task 'x' is refused by policy rule 'differences': 1").rule == FEW_ROWS_APART
    assert RefusedError("a did not answer").rule == ""


def test_an_honest_fit_meets_fewer_refusals_than_end_it():
    """The teacher, and short rules that are grown from it."""
    bases = MOST_STEPS + 1  # the last step of clustering of each, and the refusal that ends them
    halved_rules = 2 * (Settings().n_rules.bit_length() - 1)
    halved_curves = (12).bit_length()  # 12, 6, 3 and 1
    assert bases + halved_rules + halved_curves + MOST_REFUSALS < Policy().max_refusals


class FeatureByFeature(SumsAlone):
    """Refuses sums along several features at once, and some features of parts of rules; keeps what it was asked for."""

    refused, asked = frozenset(), ()

    def sum(self, task, broadcast):
        if task == "split_sums":
            features, is_part = broadcast["candidates"].tolist(), len(broadcast["first_terms"]) > 1
            self.asked.append((is_part, features))
            if len(features) > 1 or (is_part and features[0] in self.refused):
                raise RefusedError(f"agent '0': task {task!r} is refused by policy rule 'bins': 1 row")
        return super().sum(task, broadcast)


def asked_features(refused=()):
    """Features that sums along were asked for: of all rows, and of parts of them. The target bends along the first."""
    X, _, y = make_table(0, n_rows=600, n_labels=240)
    teacher = AutoSFRRegressor(scaling=SCALING, uncertainty=False, ensemble=Ensemble(max_weights_per_label=1 / 3))
    asked = []

    def engine(settings):
        made = FeatureByFeature(make_shards(X, y, np.arange(len(y)) % 3), TASKS)
        made.refused, made.asked = frozenset(refused), asked
        return made

    RuleRegressor(teacher=teacher, random_state=0).fit_over(engine, FEATURES, "y")
    return [features for is_part, features in asked if not is_part], [found for is_part, found in asked if is_part]


def test_refusals_are_spent_on_features_that_promise_something():
    """Of a rule whose sums were given feature by feature, nobody asks for those of a part at once."""
    of_all, of_parts = asked_features()
    assert of_all == [[0, 1, 2], [0], [1], [2]]
    assert of_parts[0] == [0], "the feature along which the target bends"
    assert all(len(features) == 1 for features in of_parts)
    assert [2] not in of_parts


def test_a_part_of_which_agents_give_nothing_is_not_asked_for_long():
    """Two steps for each of the first features: their knots, and fewer of them."""
    _, of_parts = asked_features(refused=(0, 1, 2))
    assert len(of_parts) <= 2 * 2 * MOST_MISSING
