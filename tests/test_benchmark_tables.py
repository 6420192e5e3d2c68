"""Tables of the benchmarks: every one in one list, the same rows for every method, and honest summaries of scores."""

import itertools
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from benchmarks.accuracy import complexity, measure, scores, summary
from benchmarks.tables import DESIGN, GENERATED, JUDGED, REAL, TABLES, bundled, draw_rows, load
from benchmarks.tables.split import SEEN, draw_split, read_split
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

KINDS = {"real": REAL, "generated": GENERATED}


def test_every_table_is_either_for_design_or_for_judging():
    assert sorted([*DESIGN, *JUDGED]) == sorted(TABLES)
    assert len(set(TABLES)) == len(TABLES) >= 30


@pytest.mark.parametrize("kind", KINDS)
def test_both_lists_have_tables_of_both_kinds_and_judged_ones_were_never_looked_at(kind):
    assert len(JUDGED) >= 12
    assert len(set(KINDS[kind]) & set(JUDGED)) >= 5
    assert len(set(KINDS[kind]) & set(DESIGN)) >= 5
    assert not set(SEEN) & set(JUDGED)


def test_a_new_table_never_moves_a_stored_one():
    stored = read_split()
    fewer = {key: names[1:] for key, names in stored.items()}
    extended = draw_split(fewer)
    for key in stored:
        assert set(fewer[key]) <= set(extended[key])
    assert sorted([*extended["design"], *extended["judged"]]) == sorted(TABLES)


def test_tables_that_were_looked_at_are_never_drawn_for_judging():
    drawn = draw_split({"design": [], "judged": []})
    assert set(SEEN) <= set(drawn["design"])
    assert not set(drawn["design"]) & set(drawn["judged"])


@given(st.sampled_from(GENERATED))
def test_generated_tables_are_finite_and_the_same_every_time(name):
    X, y, names = load(name)
    assert np.isfinite(X).all()
    assert np.isfinite(y).all()
    assert len(names) == X.shape[1]
    again = load(name)
    assert np.array_equal(X, again[0])
    assert np.array_equal(y, again[1])


@given(st.sampled_from(GENERATED), st.sampled_from([20, 50, 200]), st.integers(0, 3))
def test_draws_share_rows_and_more_labels_include_fewer(name, labels, number):
    few, many = draw_rows(name, labels, number), draw_rows(name, "all", number)
    assert np.array_equal(few.X, many.X)
    assert np.array_equal(few.y_test, many.y_test)
    known = ~np.isnan(few.y)
    assert known.sum() == labels
    assert np.array_equal(few.y[known], many.y[known])
    assert not np.isnan(many.y).any()
    assert not {row.tobytes() for row in few.X_test} & {row.tobytes() for row in few.X} or name == "integer_codes"


def test_a_table_with_too_few_rows_has_no_draw():
    assert draw_rows("friedman1", 3001, 0) is None


def test_text_columns_of_two_levels_become_zero_and_one_and_others_are_left_out():
    frame = pd.DataFrame(
        {
            "size": [1, 2, 3, 4],
            "sex": ["m", "f", "f", "m"],
            "place": ["a", "b", "c", "a"],
            "weight": [0.5, np.nan, 1.0, 2.0],
        }
    )
    kept = bundled.numeric_columns(frame)
    assert list(kept) == ["size", "sex", "weight"]
    assert kept.sex.tolist() == [1.0, 0.0, 1.0]


def row(table, draw, method, nrmse, version="a 1"):
    return {"table": table, "labels": "50", "draw": draw, "method": method, "nrmse": nrmse, "version": version}


def test_scores_survive_storage_and_the_last_row_of_a_unit_counts(tmp_path):
    path = tmp_path / "scores.csv"
    assert scores.read_scores(path).empty
    for value in (0.5, 0.25):
        scores.append_score(path, row("boston", 0, "GP", value))
    found = scores.read_scores(path)
    assert found.nrmse.tolist() == [0.25]
    assert found.labels.tolist() == ["50"]


def test_units_of_another_version_run_again_and_failures_are_named(tmp_path, capsys):
    path, ran = tmp_path / "scores.csv", []
    scores.append_score(path, row("boxes", 0, "GP", 0.5, "x 1"))
    scores.append_score(path, row("ratios", 0, "GP", 0.5, "y 2"))

    def score(method, draw):
        ran.append(method)
        raise ArithmeticError("no")

    units = [("boxes", "50", 0, "GP"), ("ratios", "50", 0, "GP")]
    measure.run(units, path, score, lambda method: "z 2")
    assert ran == ["GP"]
    assert "boxes, 50 labels, draw 0, GP: ArithmeticError: no" in capsys.readouterr().out


@given(st.lists(st.floats(0.1, 2.0), min_size=12, max_size=12), st.integers(1, 2))
def test_peers_with_fewer_draws_are_compared_on_common_draws(errors, n_draws):
    values = iter(errors)
    ours = pd.DataFrame([row(t, d, "auto", next(values)) for t in "abc" for d in range(2)])
    peer = pd.DataFrame([row(t, d, "peer", next(values)) for t in "abc" for d in range(2) if d < n_draws])
    table = summary.ratios(ours, peer)
    for name in "abc":
        own = ours[(ours.table == name) & (ours.draw < n_draws)].nrmse.mean()
        assert table.peer[name] == pytest.approx(peer[peer.table == name].nrmse.mean() / own)


def test_bars_of_a_hand_made_comparison():
    table = pd.DataFrame({"p": [2.0, 0.5, 1.0], "q": [1.0, 4.0, 1.25]}, index=list("abc"))
    found = summary.bars(table.assign(partial=[0.9, np.nan, np.nan]))
    assert found["below the best single peer"] == pytest.approx(0.0)
    assert found["to the best peer of each table"] == pytest.approx((2 / 0.9) ** (1 / 3))
    assert found["share within 5% of the best peer"] == pytest.approx(1 / 3)
    assert found["worst table"] == pytest.approx(2.0)
    assert summary.mean_ranks(table)["ours"] == pytest.approx((1.5 + 2 + 1.5) / 3)


def test_intervals_are_scored_by_coverage_and_relative_width():
    y = np.array([0.0, 1.0, 2.0, 3.0])
    limits = np.column_stack([y - 1.0, y + np.array([1.0, 1.0, 1.0, -0.5])])
    found = scores.interval_measures(y, 90, limits)
    assert found["coverage90"] == 0.75
    assert found["width90"] == pytest.approx(1.625 / np.std(y, ddof=1))


@given(st.integers(2, 8), st.integers(0, 9))
def test_a_tree_has_one_leaf_more_than_splits(n_leaves, seed):
    rng = np.random.default_rng(seed)
    tree = DecisionTreeRegressor(max_leaf_nodes=n_leaves).fit(rng.uniform(size=(40, 2)), rng.uniform(size=40))
    assert complexity.measure_complexity("tree of 8 leaves", tree) == {"conditions": n_leaves - 1, "terms": n_leaves}


def test_steps_are_counted_where_values_change():
    assert complexity.of_steps(np.array([1.0, 1.0, 2.0, 2.0, 0.0])) == (2, 3)
    assert complexity.of_steps(np.array([[1.0, 1.0], [2.0, 2.0]])) == (1, 2)
    assert complexity.of_steps(np.array([[1.0, 3.0], [2.0, 2.0]])) == (2, 4)
    assert complexity.sum_of_steps([np.zeros(4), np.array([0.0, 1.0])]) == (1, 3)


def test_constants_of_lines_are_terms_as_in_other_linear_models():
    class Fitted:
        complexity_: ClassVar = {"rules": 3, "conditions": 4, "terms": 5}

    assert complexity.measure_complexity("rules", Fitted()) == {"conditions": 4, "terms": 8}


def test_methods_that_nobody_reads_have_no_complexity():
    assert list(itertools.chain(complexity.measure_complexity("GP", None))) == []
