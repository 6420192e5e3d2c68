"""Trees of rules that are divided between levels of a category: in words, drawn, and with strengths that sum to 1."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from dsfr import RuleRegressor, plot
from dsfr.core.explain.tree_words import tree_in_words
from dsfr.model.frames import encode_frame
from dsfr.report.card_payload import payload_of_card
from tests.test_categories import houses
from tests.test_rule_card import teacher


def groups_table(seed=0, n=600):
    """Rows of which those with a large x have no level f, and slopes of two groups of the other levels."""
    rng = np.random.default_rng(seed)
    x, level = rng.uniform(size=n), rng.integers(6, size=n)
    level = np.where((x > 0.3) & (level == 5), rng.integers(5, size=n), level)
    slopes = np.where(np.isin(level, [0, 1]), 40.0, -40.0)
    y = np.where(x > 0.5, slopes * (x - 0.5), 5.0 * np.sin(6.0 * x)) + 0.1 * rng.normal(size=n)
    return pd.DataFrame({"x": x, "k": np.array(list("abcdef"))[level]}), y


@pytest.fixture(scope="module")
def grouped():
    X, y = groups_table()
    return RuleRegressor(random_state=0).fit(X, y), X, y


def test_strengths_sum_to_1_for_levels_that_do_not_occur_where_a_rule_is_divided(grouped):
    model, _, _ = grouped
    assert "AND k is" in str(model.rules_)
    rows = pd.DataFrame([(x, level) for x in np.linspace(0, 1, 11) for level in "abcdef"], columns=["x", "k"])
    strengths = model.rules_.rules.strengths(encode_frame(rows, model.model_.columns))
    np.testing.assert_allclose(strengths.sum(axis=1), 1.0, atol=1e-12)


def rows_reaching(node, rows, taken):
    """Number of the rule that the words of the tree lead every row to; rows between two words count as below."""
    if isinstance(node, int):
        yield from ((i, node) for i in taken)
        return
    column = rows[node.name].iloc[taken]
    if node.between:
        first = column.to_numpy() < float(node.between.split(" to ")[0])
    else:
        words = node.edges[0].removeprefix("is ")
        named = words.removeprefix("not ").split(" or ")
        first = column.isin(named).to_numpy() != words.startswith("not ")
    for part, own in zip(node.parts, (first, ~first), strict=True):
        yield from rows_reaching(part, rows, np.asarray(taken)[own])


def test_the_tree_in_words_leads_to_the_rule_that_fires(grouped):
    model, X, _ = grouped
    tree = tree_in_words(model.rules_)
    assert tree.n_leaves == len(model.rules_)
    strengths = model.rules_.rules.strengths(encode_frame(X, model.model_.columns))
    sure = np.flatnonzero(strengths.max(axis=1) == 1.0)
    assert len(sure) > 100
    found = dict(rows_reaching(tree, X, sure))
    assert [found[i] for i in sure] == strengths[sure].argmax(axis=1).tolist()


def test_trees_with_groups_of_levels_are_drawn(grouped):
    model, _, _ = grouped
    texts = [text.get_text() for text in plot.tree(model).texts]
    assert "is c or d or e" in texts
    assert "k" in texts
    plt.close("all")
    assert "is c or d or e" in json.dumps(payload_of_card(model.model_, model.rules_, None)["tree"])


@pytest.mark.parametrize("seed", range(4))
def test_every_card_with_categories_has_a_tree(seed):
    X, y = houses(seed, n=300)
    y = y + 50.0 * X["region"].isin(["north", "west"]) * X["rooms"]
    card = RuleRegressor(max_rules=8, teacher=teacher(), random_state=seed).fit(X, y).rules_
    tree = tree_in_words(card)
    assert tree == 0 if len(card) == 1 else tree.n_leaves == len(card)
