"""Attacks by several allowed questions whose answers differ by a few rows: owners remember what they have answered."""

from dataclasses import replace

import numpy as np
import pytest

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.link import Link
from dsfr.disclosure import Policy, PolicyError
from dsfr.disclosure import owner as owner_side
from dsfr.disclosure.history import cells, differences, knots, once
from dsfr.disclosure.table import TABLE
from dsfr.training.ensemble.teacher import link_arrays
from dsfr.training.tasks.messages import scalar
from tests.disclosure.attacks import hits
from tests.disclosure.test_attacks import (
    RANGES,
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


@pytest.fixture
def shards():
    """Three owners of 800 rows; one of them has the lone row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (2400, D))
    inside = (X[:, 0] > 0.2) & (X[:, 0] < 0.45)
    X[inside, 0] -= 0.3
    X[0] = LONE
    y = np.where(np.arange(2400) % 4 == 0, X[:, 0] + X[:, 1], np.nan)
    return shards_of(X, y, 3)


@pytest.fixture(params=[False, True], ids=["without memory", "with memory"])
def engine(request, shards, monkeypatch):
    """Owners with the default policy; the first ones without the rules of this page."""
    if not request.param:
        monkeypatch.setattr(owner_side, "TABLE", {name: _forgetful(rules) for name, rules in TABLE.items()})
    engine = open_engine(shards, Policy())
    engine.remembers = request.param
    return engine


def _forgetful(rules):
    remembering = (cells, differences, knots, once)
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


def rules_of_neighboring_ramps(engine):
    teach(engine)
    totals = []
    for ramp in ((0.2, 0.3), (0.3, 0.4)):
        summed = engine.sum("rule_sums", {**student(ramp), **RANGES, "line_features": np.arange(D)})
        totals.append(summed["products"][: D + 1])
    return lone_row(totals[1] - totals[0])


def test_rules_of_neighboring_ramps(engine):
    expect(engine, rules_of_neighboring_ramps, "'cells': values of column 0 that part 1 of the own rows")


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
            PolicyError, match="'differences': clusters that differ .* by 1 of the own rows, and min_mass"
        ):
            clusters_about_moved_centers(engine)
    else:  # memberships are not quite 0 or 1
        np.testing.assert_allclose(clusters_about_moved_centers(engine), LONE, atol=0.03)


def test_curves_with_knots_at_neighboring_values(shards):
    engine = open_engine(shards, Policy())
    one = curves_of(5, 3)
    engine.sum("statistics", {**questions(one), **RANGES})
    moved = replace(one, knots=one.knots + np.array([0.0, 0.0, 0.3, 0.0, 0.0])[:, None])
    other = replace(one, knots=one.knots + np.array([0.0, 0.0, 0.4, 0.0, 0.0])[:, None])
    with pytest.raises(
        PolicyError, match="'knots': a set of column 0, between all knots of this fit, with a mass of 3"
    ):
        for effects in (moved, other):
            engine.sum("statistics", {**questions(effects), **RANGES})


def member(weights):
    rules = Rules(np.zeros((1, D)), np.ones((1, D)))
    return {f"{name}_0": array for name, array in rules.arrays().items()} | {"weights_0": np.array(weights)}


def test_two_teachers(shards):
    """Sums of two predictions differ by whatever function a coordinator likes."""
    engine = open_engine(shards, Policy())
    teach(engine)
    with pytest.raises(PolicyError, match="'once': another teacher than an earlier question of this fit: 1 is allowed"):
        asked = {**RANGES, **TARGET, **member([1.0, 1.0, 0.0]), "shares": np.ones(1)}
        engine.sum("keep_teacher", {**asked, **link_arrays(Link(), 0.0, 1.0)})


def test_two_samples_of_the_rows(shards):
    engine = open_engine(shards, Policy())
    asked = {**RANGES, **TARGET, **member([1.0, 1.0, 0.0]), "shares": np.ones(1)}
    engine.sum("compare", {**asked, "sample": scalar(0.5)})
    engine.sum("compare", {**asked, "sample": scalar(0.5)})
    with pytest.raises(PolicyError, match="'once': another sample of the rows than an earlier question"):
        engine.sum("compare", {**asked, "sample": scalar(0.501)})
