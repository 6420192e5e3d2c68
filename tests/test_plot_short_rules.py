"""Plots of short rules and of effects: drawn, or refused with what to use instead."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from dsfr import AutoSFRRegressor, Ensemble, RuleRegressor, SFRRegressor, plot


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 10, (200, 3)), columns=["dose", "$age$", "other"])
    y = pd.Series(np.where(X["dose"] < 5, X["dose"], 5 + X["$age$"]), name="risk")
    return X, y.where(np.arange(200) < 80)


@pytest.fixture(scope="module")
def short(rows):
    return RuleRegressor(random_state=0).fit(*rows)


@pytest.fixture(scope="module")
def effects(rows):
    return AutoSFRRegressor(ensemble=Ensemble(n_models=0), random_state=0).fit(*rows)


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


def texts(ax):
    ax.figure.canvas.draw()
    return [text.get_text() for text in ax.texts]


def test_the_tree_names_every_rule_and_the_inputs_of_its_conditions(short):
    for given in (short, short.model_):
        shown = texts(plot.tree(given))
        leaves = [text for text in shown if text.startswith("Rule ")]
        assert [int(text.split()[1]) for text in leaves] == list(range(1, len(short.rules_) + 1))
        card = short.rules_
        for k, text in enumerate(leaves):
            assert f"{card.predictor.shares[k]:.0%} of rows" in text
        used = {card.feature_names[int(j)].replace("$", r"\$") for j in card.rules.ramp_features}
        assert used <= set(shown)


def test_words_of_a_feature_sum_to_one_and_have_their_names(short, rows):
    card = short.rules_
    j = int(card.rules.ramp_features[0])
    ax = plot.memberships(short, j, rows[0])
    assert [line.get_label() for line in ax.lines] == list(card.terms[j])
    np.testing.assert_allclose(sum(line.get_ydata() for line in ax.lines), 1.0)
    assert plot.memberships(short, j) is not ax


def test_a_feature_without_conditions_is_refused_with_those_that_have_some(short):
    free = [j for j in range(3) if not short.rules_.rules.ramps_of(j)]
    assert free, "some feature must be without conditions"
    with pytest.raises(ValueError, match=r"no rule has a condition on .*: conditions are on dose"):
        plot.memberships(short, free[0])


def test_the_price_marks_the_number_of_rules(short):
    curve, mark = plot.price(short).lines
    np.testing.assert_allclose(curve.get_ydata(), [100 * entry["price"] for entry in short.curve_])
    assert mark.get_xdata()[0] == len(short.rules_)


def test_predictions_and_responses_take_short_rules_and_effects(short, effects, rows):
    X, y = rows
    for given in (short, effects, short.model_):
        assert plot.predictions(given, X, y).collections
        line = plot.response(given, "dose", at=X.iloc[0].tolist()).lines[-1]
        moved = X.iloc[[0] * 2].assign(dose=[line.get_xdata()[10], line.get_xdata()[-1]])
        np.testing.assert_allclose(line.get_ydata()[[10, -1]], given.predict(moved))
        assert plot.response(given, "dose").lines
        assert plot.response(given, "dose", X).lines


def test_what_cannot_be_drawn_is_refused_with_what_to_use(short, effects, rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"no centers to draw: plot\.tree"):
        plot.rule_map(short, X)
    for draw in (lambda: plot.memberships(effects, "dose"), lambda: plot.rule_map(effects, X)):
        with pytest.raises(ValueError, match="effects"):
            draw()
    for draw in (plot.tree, plot.price):
        with pytest.raises(ValueError, match="no short rules, which RuleRegressor makes"):
            draw(effects)
        with pytest.raises(ValueError, match="must be a Model or a fitted estimator"):
            draw(SFRRegressor())
    flat = RuleRegressor(max_rules=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="one rule without conditions"):
        plot.tree(flat)
    assert plt.get_fignums() == []


def test_a_training_is_plotted_from_its_estimator(rows):
    X, y = rows
    fitted = SFRRegressor(n_agents=2, random_state=0).fit(X, y)
    assert plot.convergence(fitted).lines
    assert plot.communication(fitted).patches
