"""Attacks by several allowed questions whose answers differ by a few rows: owners remember what they have answered."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.arrays import BLOCK_ROWS
from dsfr.core.distillation.knots import N_KNOTS
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.link import Link
from dsfr.disclosure import Policy, PolicyError, history, protect, protected_tasks
from dsfr.disclosure import owner as owner_side
from dsfr.disclosure.combinations import combinations, largest_leverage
from dsfr.disclosure.differences import BinnedPair, effective_rows, fewest_rows
from dsfr.disclosure.history import cells, differences, knots, once, together
from dsfr.disclosure.kept_weights import KeptWeights
from dsfr.disclosure.rules import MOST_STARTS
from dsfr.disclosure.table import TABLE
from dsfr.engines import EngineError, InProcessEngine
from dsfr.training import TASKS
from dsfr.training.ensemble.teacher import link_arrays
from dsfr.training.tasks.messages import scalar, symmetric
from tests.disclosure.attacks import hits
from tests.disclosure.test_attacks import (
    RANGES,
    SEED,
    D,
    curves_of,
    open_engine,
    questions,
    shards_of,
    split_question,
    student,
    teach,
)

LONE = np.array([0.35, 0.123456789])
"""The only row of all owners with a first feature from 0.2 to 0.45."""
START = {"starts": np.zeros((8, 1, D)), "fuzzifier": scalar(1.05), "least": scalar(5.0)}
TARGET = {"target_mean": scalar(0.0), "target_scale": scalar(1.0)}


def owners_of_a_lone_row(n_rows=800):
    """Three owners; one of them has the lone row."""
    rng, n = np.random.default_rng(0), 3 * n_rows
    X = rng.uniform(-1.0, 1.0, (n, D))
    inside = (X[:, 0] > 0.2) & (X[:, 0] < 0.45)
    X[inside, 0] -= 0.3
    X[0] = LONE
    y = np.where(np.arange(n) % 4 == 0, X[:, 0] + X[:, 1], np.nan)
    return shards_of(X, y, 3)


@pytest.fixture
def shards():
    return owners_of_a_lone_row()


@pytest.fixture(params=[False, True], ids=["without memory", "with memory"])
def engine(request, shards, monkeypatch):
    """Owners with the default policy; the first ones without the rules of this page."""
    if not request.param:
        monkeypatch.setattr(owner_side, "TABLE", {name: _forgetful(rules) for name, rules in TABLE.items()})
    engine = open_engine(shards, Policy())
    engine.remembers = request.param
    return engine


def _forgetful(rules):
    remembering = (cells, combinations, differences, knots, once)
    kept = ([rule for rule in part if rule not in remembering] for part in (rules.before, rules.after))
    return replace(rules, before=tuple(next(kept)), after=tuple(next(kept)))


def expect(engine, attack, rule):
    """The lone row is found without memory, and refused by the rule with it."""
    if engine.remembers:
        with pytest.raises(PolicyError, match=rule):
            attack(engine)
    else:
        assert hits(attack(engine)[None], LONE[None]) == 1


def lone_row(difference):
    """The features in a difference of products, of which the first are with the constant."""
    return difference[1 : D + 1] / difference[0]


def bins_at_neighboring_values(engine):
    teach(engine)
    below = [engine.sum("split_sums", split_question([end]))["bins"][0, 0, 0] for end in (0.3, 0.4)]
    return lone_row(below[1] - below[0])


def test_bins_that_end_at_neighboring_values(engine):
    expect(
        engine, bins_at_neighboring_values, r"'cells': values of column 0 that part 1 of the own rows.*min_split is 5"
    )


def test_an_earlier_memory_does_not_make_owners_forget_what_they_have_answered(shards, tmp_path):
    """A coordinator says when memories are saved and restored."""
    engine = open_engine(shards, Policy())
    teach(engine)
    engine.save_memories(tmp_path.joinpath)
    engine.sum("split_sums", split_question([0.3]))
    engine.load_memories(tmp_path.joinpath)
    with pytest.raises(PolicyError, match="'cells': values of column 0 that part 1 of the own rows"):
        engine.sum("split_sums", split_question([0.4]))


def test_an_earlier_memory_does_not_make_owners_forget_the_ranges(shards, tmp_path):
    """Other ranges have another grid."""
    tasks = protected_tasks(TASKS, policy=Policy())
    engine = protect(InProcessEngine(shards, tasks), policy=True, masked=False)
    engine.save_memories(tmp_path.joinpath)
    engine.sum("row_moments", {"seed": SEED, **RANGES})
    engine.load_memories(tmp_path.joinpath)
    with pytest.raises(PolicyError, match="ranges"):
        engine.sum("row_moments", {"seed": SEED, "low": RANGES["low"] - 0.5, "high": RANGES["high"]})


def rules_of_neighboring_ramps(engine):
    teach(engine)
    totals = []
    for ramp in ((0.2, 0.3), (0.3, 0.4)):
        summed = engine.sum("rule_sums", {**student(ramp), **RANGES, "line_features": np.arange(D)})
        totals.append(summed["products"][: D + 1])
    return lone_row(totals[1] - totals[0])


def test_rules_of_neighboring_ramps(engine):
    expect(engine, rules_of_neighboring_ramps, "'cells': values of column 0 that part 1 of the own rows")


def test_limits_of_lines_are_refused(shards):
    """They are thresholds anywhere, and products of pieces between them are of few rows."""
    guarded = open_engine(shards, Policy())
    teach(guarded)
    asked = {**student((0.2, 0.3)), **RANGES, "line_features": np.arange(D)}
    limits = {"line_low": RANGES["low"], "line_high": RANGES["high"]}
    with pytest.raises(EngineError, match="limits of features, which are thresholds anywhere"):
        guarded.sum("rule_sums", {**asked, **limits})
    with pytest.raises(EngineError, match="parts of two features"):
        guarded.sum("piece_sums", {**asked, "line_knots": np.tile(np.linspace(-0.8, 0.8, N_KNOTS), (D, 1))})


def steep_rules(middle):
    """Two rules that part the rows at a value of the first feature."""
    return Rules(np.array([[middle - 0.02, 0.0], [middle + 0.02, 0.0]]), np.array([[0.004, 50.0]] * 2))


def teacher_that_sees_a_slice(engine):
    """Two members, each of rules with many rows; their difference is not 0 on the lone row alone."""
    ones = {"shares": np.full(2, 0.5), **TARGET, **RANGES, **link_arrays(Link(), 0.0, 1.0)}
    for number, (middle, sign) in enumerate(((0.25, 2.0), (0.42, -2.0))):
        ones |= {f"{name}_{number}": array for name, array in steep_rules(middle).arrays().items()}
        ones[f"weights_{number}"] = np.array([0.0, 0.0, 0.0, sign, 0.0, 0.0])
    products = engine.sum("keep_teacher", ones)["products"]
    with_prediction = products[[D + 1, 2 * D + 2, 3 * D + 2]]  # of 1, and of each feature, with the prediction
    return with_prediction[1:] / with_prediction[0]


def test_two_members_of_one_teacher(engine):
    expect(engine, teacher_that_sees_a_slice, r"'differences': rules that differ.* by 1 of the own rows.*min_mass is 5")


def statistics_of_two_rule_bases(engine):
    """Labelled rows: the lone one has a label."""
    found = [engine.sum("statistics", questions(steep_rules(middle)))["feature_sum"] for middle in (0.25, 0.42)]
    return lone_row((found[0] - found[1])[D + 1 :])


def test_statistics_of_two_rule_bases(engine):
    expect(engine, statistics_of_two_rule_bases, "'differences': rules that differ .* by 1 of the own rows")


STEEP = {"far": 50.0, "x": 0.05, "y": 0.001}
"""Widths of rules with sharp ends."""


def three_rules(value, level, sign):
    """Rows beyond a level of the second feature, as two rules on both sides of a value of the first; the others as one.

    The level decides first: its sets are narrower by far. ``sign`` says which side of it is parted.
    """
    sides = [(value - 1.0, level + sign), (value + 1.0, level + sign), (value, level - sign)]
    widths = [(STEEP["x"], STEEP["y"])] * 2 + [(STEEP["far"], STEEP["y"])]
    return Rules(np.array(sides), np.array(widths))


def three_rule_bases(engine):
    """Beyond 0.25, without what is above 0.5 beyond 0.25, and without what is below 0.5 beyond 0.42: the lone row."""
    two = Rules(np.array([[-0.75, 0.0], [1.25, 0.0]]), np.array([[STEEP["x"], STEEP["far"]]] * 2))
    bases = two, three_rules(0.25, 0.5, 1.0), three_rules(0.42, 0.5, -1.0)
    found = [engine.sum("statistics", questions(base))["feature_sum"].reshape(-1, D + 1)[1] for base in bases]
    return lone_row(found[0] - found[1] - found[2])


def test_a_combination_of_three_rule_bases(engine):
    """No two of them differ by few rows."""
    expect(
        engine,
        three_rule_bases,
        r"'combinations': rules of which a combination.* is about 1 of the own rows, and min_mass is 5",
    )


def test_the_same_rules_may_be_asked_for_again(shards):
    engine = open_engine(shards, Policy())
    for _ in range(2):
        engine.sum("statistics", questions(three_rules(0.25, 0.5, 1.0)))


@given(st.integers(0, 999), st.integers(5, 40), st.integers(1, 4))
def test_a_leverage_is_the_largest_part_of_a_row_in_any_combination(seed, n_rows, k):
    """No combination gives a row more, and one of them gives as much; columns may repeat and be of two questions."""
    rng = np.random.default_rng(seed)
    W = rng.random((n_rows, k)) * rng.choice([0.0, 1.0], (n_rows, 1), p=[0.3, 0.7])
    W = np.hstack([W, W[:, :1]])
    if not W.any():
        return
    rows = np.arange(n_rows)
    columns = [lambda X: W[X, :1], lambda X: W[X, 1:]]
    found = largest_leverage(columns, lambda: iter([rows[: n_rows // 3], rows[n_rows // 3 :]]))
    combined = W @ rng.standard_normal((k + 1, 50))
    squares = combined**2 / np.maximum((combined**2).sum(axis=0), 1e-300)
    assert squares.max() <= found * (1.0 + 1e-9)
    best = W @ np.linalg.pinv(W)  # column i gives row i as much as any can
    assert found == pytest.approx((best**2 / np.maximum((best**2).sum(axis=0), 1e-300)).diagonal().max(), rel=1e-6)


def clusters_about_moved_centers(engine):
    """Pairs of clusters on both sides of a value of the first feature; the lower ones lose a row."""
    engine.sum("start_objectives", START)
    found = []
    for middle in (0.27, 0.4):
        centers = [(middle + side, strip) for side in (-0.8, 0.8) for strip in (-0.5, 0.5)]
        sums = engine.sum("cluster_sums", {"centers": np.array(centers)})
        found.append(np.column_stack([sums["mass"], sums["total"]])[:2].sum(axis=0))
    return lone_row(found[1] - found[0])


def test_clusters_about_moved_centers(engine):
    if engine.remembers:
        with pytest.raises(
            PolicyError, match=r"'differences': clusters that differ .* by 1 of the own rows, and min_mass"
        ):
            clusters_about_moved_centers(engine)
    else:  # memberships are not quite 0 or 1
        np.testing.assert_allclose(clusters_about_moved_centers(engine), LONE, atol=0.03)


def test_a_known_limit_clusters_of_owners_with_few_rows_may_differ_by_one():
    """The last steps of honest clustering do; docs/privacy.md says what covers the row: those of the other owners."""
    few = owners_of_a_lone_row(n_rows=390)
    np.testing.assert_allclose(clusters_about_moved_centers(open_engine(few, Policy())), LONE, atol=0.03)


def test_curves_with_knots_at_neighboring_values(shards):
    engine = open_engine(shards, Policy())
    one = curves_of(5, 3)
    engine.sum("statistics", {**questions(one), **RANGES})
    moved = replace(one, knots=one.knots + np.array([0.0, 0.0, 0.3, 0.0, 0.0])[:, None])
    other = replace(one, knots=one.knots + np.array([0.0, 0.0, 0.4, 0.0, 0.0])[:, None])
    engine.sum("statistics", {**questions(moved), **RANGES})
    with pytest.raises(
        PolicyError, match="'knots': a set of column 0, between all knots of this fit, with a mass of 3"
    ):
        engine.sum("statistics", {**questions(other), **RANGES})


def member(weights):
    rules = Rules(np.zeros((1, D)), np.ones((1, D)))
    return {f"{name}_0": array for name, array in rules.arrays().items()} | {"weights_0": np.array(weights)}


def test_two_teachers(shards):
    """Sums of two predictions differ by whatever function a coordinator likes."""
    engine = open_engine(shards, Policy())
    teach(engine)
    asked = {**RANGES, **TARGET, **member([1.0, 1.0, 0.0]), "shares": np.ones(1), **link_arrays(Link(), 0.0, 1.0)}
    with pytest.raises(PolicyError, match="'once': another teacher than an earlier question of this fit: 1 is allowed"):
        engine.sum("keep_teacher", asked)


def test_two_samples_of_the_rows(shards):
    engine = open_engine(shards, Policy())
    asked = {**RANGES, **TARGET, **member([1.0, 1.0, 0.0]), "shares": np.ones(1)}
    engine.sum("compare", {**asked, "sample": scalar(0.5)})
    engine.sum("compare", {**asked, "sample": scalar(0.5)})
    with pytest.raises(PolicyError, match="'once': another sample of the rows than an earlier question"):
        engine.sum("compare", {**asked, "sample": scalar(0.501)})


def test_start_centers_about_few_rows_tell_nothing_but_that_they_are_few(shards):
    """In a corner; without the rule, objectives are the distances of a row or two to a center of their own."""
    engine, found = open_engine(shards, Policy()), []
    for corner in (1.9, 1.95):
        starts = np.stack([np.array([[0.0, 0.0], [corner, corner]])] * 8)
        found.append(engine.sum("start_objectives", {**START, "starts": starts, "least": scalar(0.0)})["objectives"])
    np.testing.assert_array_equal(*found)


def test_start_centers_are_not_tried_often(shards):
    """Whatever the number of refusals that a policy allows."""
    engine = open_engine(shards, Policy(max_refusals=1))
    for place in np.arange(MOST_STARTS) / 100.0:
        engine.sum("start_objectives", {**START, "starts": np.full((8, 1, D), place)})
    with pytest.raises(PolicyError, match="'starts': 40 questions about start centers, and no more than 40 are"):
        engine.sum("start_objectives", {**START, "starts": np.full((8, 1, D), 0.9)})


def test_the_strongest_rule_alone_is_not_summed_over(shards):
    """A rule can be the strongest one on few rows, and a steep line would show these."""
    engine = open_engine(shards, Policy())
    teach(engine)
    asked = {**TARGET, **student((-0.5, 0.0)), **RANGES, "masses_alone": scalar(1.0)}
    found = engine.sum("measure_student", {**asked, "student_weights": np.array([0.0, 1e6, 0.0, 0.0, 0.0, 0.0])})
    assert found["strongest_distance"] == found["distance"]


@pytest.fixture(params=[0.0, 5.0], ids=["labels in all", "labels by rule"])
def few_labels(request):
    """Three owners of 400 rows, a label in twenty of them, and one of all beyond 0.7; by the least labels of a rule."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (1200, D))
    y = np.where((np.arange(1200) % 20 == 0) & (X[:, 0] < 0.7), X[:, 0] + X[:, 1], np.nan)
    X[1], y[1] = LABELED, 5.0
    engine = open_engine(shards_of(X, y, 3), Policy(min_label_mass=request.param))
    engine.is_guarded = request.param > 0.0
    return engine


LABELED = np.array([0.9, 0.2])


def label_of_a_rule(engine):
    found = engine.sum("statistics", questions(steep_rules(0.8)))
    return lone_row(found["feature_sum"][D + 1 :]), found["moment"][D + 1] / found["feature_sum"][D + 1]


def label_of_a_curve(engine):
    """The last set of the first feature, and products of it with the lines of both."""
    one = curves_of(5, 1)
    knots, last = one.knots.copy(), np.eye(5)[:, None, [4]].repeat(D, axis=1)
    knots[:, 0] = [-1.0, -0.5, 0.0, 0.7, 1.0]
    asked = replace(one, knots=knots, curves=last, singles=np.array([[0, 0], [0, 1], [1, 0]]))
    found = engine.sum("statistics", {**questions(asked), **RANGES})
    products = symmetric(found["gram"], asked.n_outputs)[2]
    return products[[1, 3]] / products[0], found["moment"][2] / found["feature_sum"][2]


def test_two_rule_bases_that_differ_by_a_label(few_labels):
    """Each rule has enough labels, and between the middles there is one label; tell them apart by the rows alone."""
    few_labels.sum("statistics", questions(steep_rules(-0.3)))
    if few_labels.is_guarded:
        with pytest.raises(PolicyError, match=r"'label_mass': rules that differ .* by \d of the own labels"):
            few_labels.sum("statistics", questions(steep_rules(-0.26)))
    else:
        few_labels.sum("statistics", questions(steep_rules(-0.26)))


@pytest.mark.parametrize("attack", [label_of_a_rule, label_of_a_curve])
def test_a_label_alone_in_a_rule_of_many_rows(few_labels, attack):
    """Rules have enough rows of every owner, and labels are counted in all unless the owner's policy asks for more."""
    if few_labels.is_guarded:
        with pytest.raises(PolicyError, match=r"'label_mass': a rule or a set of a curve with 1 of the own labels"):
            attack(few_labels)
    else:
        row, target = attack(few_labels)
        assert hits(row[None], LABELED[None]) == 1
        assert abs(target - 5.0) < 1e-6


def compared(after, before, **options):
    """Fewest rows that columns of two arrays differ by; rows are numbers of rows, in two blocks."""
    rows = np.arange(len(after))
    blocks = (rows[: len(rows) // 3], rows[len(rows) // 3 :])
    return fewest_rows([after.__getitem__], [part.__getitem__ for part in before], lambda: iter(blocks), **options)


@given(st.integers(0, 999), st.integers(20, 60), st.integers(1, 4), st.integers(1, 3), st.sampled_from([5.0, np.inf]))
def test_a_difference_is_of_the_fewest_rows_over_all_pairs_of_columns(seed, n_rows, k, n_before, least):
    """Against every pair, column by column; some columns differ in a few rows by equal amounts."""
    rng = np.random.default_rng(seed)
    after, before = rng.random((n_rows, k)), [rng.random((n_rows, rng.integers(1, 4))) for _ in range(n_before)]
    for part in before:
        for j in range(part.shape[1]):
            if rng.random() < 0.7:
                part[:, j] = after[:, rng.integers(k)]
                rows = rng.choice(n_rows, rng.integers(0, 10), replace=False)
                part[rows, j] += np.where(part[rows, j] > 0.5, -0.3, 0.3)
    aparts = [np.abs(after[:, i] - part[:, j]) for part in before for i in range(k) for j in range(part.shape[1])]
    expected = min(float(effective_rows(apart.sum(), apart.max())) for apart in aparts)
    found = compared(after, before, least=least)
    assert found == pytest.approx(expected) if expected < least else found >= least


def test_the_nearest_column_is_not_the_one_that_differs_by_the_fewest_rows():
    first = np.where(np.arange(800) < 400, 0.5, 0.0)
    without = np.where(np.arange(800) == 0, 0.0, first)
    near = without + np.where(np.arange(800) < 400, 0.01, 0.0)
    assert compared(without[:, None], [np.stack([first, near], axis=1)]) == pytest.approx(1.0)


def test_columns_of_the_same_question_are_not_compared():
    weights = np.array([[0.5, 0.5], [0.5, 0.4]]).__getitem__
    assert fewest_rows([weights], [weights], lambda: iter([np.arange(2)])) == np.inf


def test_owners_hold_blocks_of_rows_and_not_the_weights_of_all(monkeypatch):
    """Whatever the number of rows and of earlier questions."""
    sizes = []
    weights_of = history._weights
    monkeypatch.setattr(history, "_weights", lambda question, X: sizes.append(len(X)) or weights_of(question, X))
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (9000, D))
    engine = open_engine(shards_of(X, np.where(np.arange(9000) % 4 == 0, X[:, 0], np.nan), 3), Policy())
    for middle in (-0.3, 0.3):
        engine.sum("statistics", questions(steep_rules(middle)))
    assert 0 < max(sizes) <= BLOCK_ROWS


def test_questions_that_are_far_apart_are_told_apart_by_an_eighth_of_a_block():
    asked, rows = [], np.arange(800)
    far = np.where(rows % 2 == 0, 1.0, 0.0)[:, None]

    def weights(X):
        asked.append(len(X))
        return far[X] * 0.0

    assert fewest_rows([far.__getitem__], [weights], lambda: iter([rows, rows]), 5.0) == np.inf
    assert asked == [100]


@given(st.integers(0, 99), st.integers(0, 3000))
def test_kept_weights_are_those_that_would_be_made(seed, most_bytes):
    """Of changed rows and other questions too, and however little is kept."""
    rng, kept = np.random.default_rng(seed), KeptWeights(most_bytes)
    blocks = [rng.integers(0, 2, (rng.integers(1, 4), 2)).astype(float) for _ in range(4)]
    for number in rng.integers(0, 4, 40):
        X = blocks[number] if rng.random() < 0.7 else blocks[number].copy()
        factor = float(rng.integers(1, 3))
        found = kept.get(b"%d" % factor, X, lambda X=X, factor=factor: factor * X)
        np.testing.assert_array_equal(found, factor * X)
        assert kept._n_bytes == sum(array.nbytes for array in kept._kept.values()) <= max(most_bytes, found.nbytes)


def test_weights_are_computed_once_for_a_question(shards, monkeypatch):
    monkeypatch.setattr(history, "_KEPT", KeptWeights())
    engine, calls, weights_of = open_engine(shards, Policy()), [], history._weights
    monkeypatch.setattr(history, "_weights", lambda question, X: calls.append(len(X)) or weights_of(question, X))
    for _ in range(4):
        engine.sum("statistics", questions(steep_rules(-0.3)))
    assert 0 < sum(calls) <= 2400


@given(st.integers(0, 999))
def test_questions_about_the_same_rules_are_compared_together(seed):
    """As each of them alone."""
    rng = np.random.default_rng(seed)
    X, first, second = rng.random((40, 3)), rng.choice([0.0, 0.5, 1.0], 40), rng.choice([0.0, 0.5, 1.0], 40)

    def question():
        columns = rng.choice(3, rng.integers(0, 3), replace=False)
        bins = {f"bins_{j}": np.sort(rng.choice(np.linspace(0.1, 0.9, 5), 2, replace=False)) for j in columns}
        return {"evaluated": np.array([rng.integers(2)]), **bins}

    def fewest(own, others):
        pair = BinnedPair(history._bins(own), history._bins(others))
        pair.add(first, second if others["evaluated"] else 1.0 - second, X)
        return pair.fewest_rows(1e9)

    own, earlier = question(), [question() for _ in range(6)]
    merged = together(earlier)
    assert len(merged) <= len(earlier)
    assert min(fewest(own, one) for one in merged) == pytest.approx(min(fewest(own, one) for one in earlier))


@given(st.integers(0, 999), st.integers(1, 4), st.integers(1, 4))
def test_differences_of_bins_are_those_of_all_pairs_of_runs(seed, n_own, n_others):
    """Against every pair of runs of bins, row by row."""
    rng = np.random.default_rng(seed)
    x, grid = rng.random((40, 1)), np.linspace(0.1, 0.9, 9)
    own, others = (np.sort(rng.choice(grid, n, replace=False)) for n in (n_own, n_others))
    first = rng.choice([0.0, 0.5, 1.0], 40)
    second = first if seed % 2 else rng.choice([0.0, 0.5, 1.0], 40)
    expected = np.inf
    for low, high in runs(own):
        for lower, higher in runs(others):
            apart = np.abs(first * inside(x, low, high) - second * inside(x, lower, higher))
            expected = min(expected, float(effective_rows(apart.sum(), apart.max())))
    least = 1e9
    pair = BinnedPair({0: own}, {0: others})
    for block in (slice(0, 15), slice(15, 40)):
        pair.add(first[block], second[block], x[block])
    found = pair.fewest_rows(least)
    assert found == pytest.approx(expected) or found == expected


def runs(ends):
    edges = [-np.inf, *ends, np.inf]
    return [(low, high) for i, low in enumerate(edges) for high in edges[i + 1 :]]


def inside(x, low, high):
    return (x[:, 0] >= low) & (x[:, 0] < high)
