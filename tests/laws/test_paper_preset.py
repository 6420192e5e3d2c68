"""`SFRRegressor.paper` and `LapWNNRegressor.paper` compute what a plain numpy program of the paper's equations does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import ADMM, FuzzyRules, Graph, LapWNNRegressor, RangeScaling, SFRRegressor, Sums
from dsfr.engines import Absence, EngineError, Faults
from dsfr.estimators.engines import InProcess
from dsfr.estimators.methods import METHODS
from dsfr.estimators.parameters import training_seed
from dsfr.training.shard import Purpose, agent_key
from tests import paper_reference as paper
from tests.tables import make_table, owners_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SEED = 3


def parts(X, y, owners):
    """Names of the agents, and rows and targets of each."""
    names = sorted(set(owners))
    return names, [X[owners == name] for name in names], [y[owners == name] for name in names]


def draw(name, n_rows, repeat):
    """Pairs as an agent draws them, by plain numpy."""
    rng = np.random.default_rng([training_seed(SEED), agent_key(name), Purpose.PAIRS, repeat])
    first, second = rng.integers(n_rows, size=(2, n_rows))
    return first, second, rng.beta(0.75, 0.75, n_rows)


def reference(method, names, tables, targets, features, mu, weight, rho, tol, max_rounds):
    """Weights of the reference, for rows that are scaled already."""
    known = [~np.isnan(y) for y in targets]
    labeled = [(features(X[k]), y[k]) for X, y, k in zip(tables, targets, known, strict=True)]
    graphs = [paper.laplacian(features, X) for X in tables]

    def penalty_of(agent, round_number):
        if method in ("sfr-g", "lapwnn"):
            return graphs[agent]
        if method == "sfr-icr":
            U = tables[agent][~known[agent]]
            return paper.icr(features, U, *draw(names[agent], len(U), round_number))
        return 0.0

    if len(tables) == 1:
        return paper.closed_form(*labeled[0], penalty_of(0, 0), weight, mu), 1, True
    return paper.dicr(labeled, penalty_of, weight, mu, rho, tol, max_rounds)


def rounds_of(model, stage):
    return sum(info.stage == stage for info in model.history_)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    method=st.sampled_from(["fr", "s-sfr", "sfr-g", "sfr-icr"]),
    n_agents=st.integers(1, 4),
    n_rules=st.integers(1, 4),
    mu=st.floats(0.01, 1.0),
    weight=st.floats(1e-3, 1.0),
    rho=st.floats(0.1, 10.0),
    fuzzifier=st.sampled_from([1.1, 1.5, 2.0]),
    tol=st.sampled_from([1e-4, 1e-2, 1.0]),
    max_rounds=st.integers(1, 30),
)
def test_the_preset_is_the_paper(seed, method, n_agents, n_rules, mu, weight, rho, fuzzifier, tol, max_rounds):
    X, y, some = make_table(seed, n_features=2)
    targets = y if method == "fr" else some
    owners = owners_of(seed, len(y), n_agents)
    start = np.random.default_rng(seed).choice(X, n_rules, replace=False) + 0.01
    asked = {"ridge": mu, "n_rules": n_rules, "random_state": SEED, "rules__init": start, "rules__fuzzifier": fuzzifier}
    asked |= {"solver__penalty": rho, "solver__cluster_penalty": rho, "solver__tol": tol}
    asked |= {} if method in ("fr", "s-sfr") else {"unlabeled__weight": weight}
    # A single agent clusters until its centers rest; max_rounds is for several agents here.
    asked |= {"solver__max_rounds": max_rounds if n_agents > 1 else 10_000}
    model = METHODS[method].as_printed(**asked).fit(X, targets, agents=owners)

    names, raw, ys = parts(X, targets, owners)
    tables, scale = paper.scaled(raw)
    if n_agents == 1:
        centers = paper.fcm(tables[0], scale(start), fuzzifier, tol)
        widths, clustered = paper.average_widths(tables, [centers], fuzzifier), True
    else:
        centers, local, rounds, clustered = paper.dfcm(tables, scale(start), fuzzifier, rho, tol, max_rounds)
        widths = paper.average_widths(tables, local, fuzzifier)
        assert rounds_of(model, "clusters") == rounds
    predictor = model.model_.mixture.strongest
    np.testing.assert_allclose(predictor.basis.centers, centers, atol=1e-8)
    np.testing.assert_allclose(predictor.basis.widths, widths, atol=1e-8)

    def features(rows):
        return paper.hidden(rows, centers, widths)

    found, rounds, solved = reference(method, names, tables, ys, features, mu, weight, rho, tol, max_rounds)
    assert rounds_of(model, "weights") == rounds
    expected = features(scale(X)) @ found
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    ending = "converged" if n_agents == 1 else "paper_tests"
    assert model.termination_ == (ending if clustered and solved else "max_rounds")


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.floats(0.01, 1.0), st.floats(1e-3, 1.0), st.integers(1, 20))
def test_the_preset_of_the_baseline_is_the_paper(seed, n_agents, mu, weight, n_nodes):
    X, _, targets = make_table(seed, n_features=2)
    owners = owners_of(seed, len(X), n_agents)
    asked = {"ridge": mu, "unlabeled__weight": weight, "n_nodes": n_nodes, "random_state": SEED}
    model = LapWNNRegressor.paper(**asked).fit(X, targets, agents=owners)
    names, raw, ys = parts(X, targets, owners)
    tables, scale = paper.scaled(raw)
    nodes = model.model_.mixture.strongest.basis

    def features(rows):
        return paper.wavelets(rows, nodes.dilations, nodes.translations)

    found, rounds, _ = reference("lapwnn", names, tables, ys, features, mu, weight, 0.1, 1e-4, 300)
    assert rounds_of(model, "weights") == rounds
    expected = features(scale(X)) @ found
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6, atol=1e-6 * max(np.abs(expected).max(), 1e-3))


def test_every_switch_of_the_preset():
    model = SFRRegressor.paper()
    assert model.rules == FuzzyRules(init="random", cluster_rows="nearest", width_pooling="paper")
    assert model.scaling == RangeScaling(target="raw")
    assert model.solver == ADMM(
        acceleration=None,
        penalty=0.1,
        cluster_penalty=0.1,
        refresh_pairs=True,
        stopping="paper",
        max_rounds=300,
    )
    assert SFRRegressor.paper(unlabeled="graph").unlabeled == Graph(kernel="full")
    assert not SFRRegressor.paper(unlabeled="graph").solver.refresh_pairs
    assert LapWNNRegressor.paper().unlabeled == Graph(kernel="full")


def test_an_explicit_argument_wins_over_the_preset():
    model = SFRRegressor.paper(
        n_rules=3, solver=Sums(), rules__fuzzifier=2.0, scaling="robust", unlabeled=Graph(n_neighbors=3)
    )
    assert (model.n_rules, model.solver, model.scaling) == (3, Sums(), "robust")
    assert model.rules == FuzzyRules(init="random", cluster_rows="nearest", width_pooling="paper", fuzzifier=2.0)
    assert model.unlabeled == Graph(n_neighbors=3)


@given(st.integers(0, 10_000), st.integers(2, 5))
@settings(max_examples=10, deadline=None)
def test_a_random_start_takes_no_row_and_stays_within_the_ranges(seed, n_agents):
    X, _, y = make_table(seed)
    model = SFRRegressor(rules=FuzzyRules(init="random"), random_state=seed)
    model.fit(X, y, agents=owners_of(seed, len(y), n_agents))
    (entry,) = [entry for (task, _), entry in model.ledger_.entries.items() if task == "start_centers"]
    assert entry.bytes_up == 0
    drawn = model.rules.start(5, model.model_.mixture.strongest.ranges, seed)
    assert np.abs(drawn).max() <= 1.0
    assert (drawn != model.rules.start(5, model.model_.mixture.strongest.ranges, seed + 1)).any()


def test_given_start_centers_are_in_the_units_of_the_features():
    """Two groups, and starts on either side: the clusters come in the order of the starts."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(100.0, 1.0, (40, 1)), rng.normal(900.0, 1.0, (40, 1))])
    for start in ([[150.0], [850.0]], [[850.0], [150.0]]):
        model = SFRRegressor(2, rules=FuzzyRules(init=start), n_agents=2, random_state=0).fit(X, X[:, 0])
        predictor = model.model_.mixture.strongest
        centers = predictor.basis.centers * predictor.ranges.half_widths + predictor.ranges.midpoints
        np.testing.assert_allclose(centers, np.round((np.array(start) - 100) / 800) * 800 + 100, atol=5.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rules": FuzzyRules(init=[[0.0, 0.0, 0.0]])}, r"n_rules=5 \(accepted: 1, because init has as many rows\)"),
        ({"rules": FuzzyRules(init=[[0.0]] * 5)}, "init has centers of 1 features, and there are 3"),
        ({"rules": FuzzyRules(init="random"), "solver": "few-rounds"}, "a solver other than 'few-rounds'"),
        ({"scaling": RangeScaling(target="raw"), "tune": "evidence"}, "targets of deviation 1"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, message):
    X, _, y = make_table(0)
    with pytest.raises(ValueError, match=message):
        SFRRegressor(**arguments).fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FuzzyRules(init="rows"), "init='rows' must be 'k-means\\+\\+', 'random' or an array"),
        (lambda: FuzzyRules(init=[[np.nan]]), "finite start centers"),
        (lambda: FuzzyRules(cluster_rows="some"), "cluster_rows='some' must be one of 'all', 'nearest'"),
        (lambda: FuzzyRules(membership_exponent=0.0), "membership_exponent=0.0 must be a number > 0"),
        (lambda: RangeScaling(target="log"), "target='log' must be one of 'standard', 'raw'"),
        (lambda: ADMM(stopping="paper"), "must go with acceleration=None"),
        (lambda: ADMM(local_shift="ridge"), "local_shift='ridge' must go with stopping='paper'"),
    ],
)
def test_values_that_break_their_rule_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_paper_needs_every_agent_in_every_round():
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3)
    absent = Faults(absences=[Absence("site-1", 2, 4, "dfcm_round")])
    with pytest.raises(EngineError, match=r"2 of 3 agents answered \(missing: site-1\)"):
        SFRRegressor.paper(engine=InProcess(faults=absent), random_state=0).fit(X, y, agents=owners)


@pytest.mark.slow
def test_eq_37_as_printed_has_another_fixed_point_and_diverges_for_a_small_ridge():
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3)
    asked = {"random_state": 0, "solver__refresh_pairs": False, "solver__max_rounds": 2000, "solver__tol": 1e-12}
    asked |= {"rules__init": "k-means++", "scaling__target": "standard"}
    printed, derived = (
        SFRRegressor.paper(solver__local_shift=shift, ridge=1.0, **asked).fit(X, y, agents=owners).predict(X)
        for shift in ("ridge", "penalty")
    )
    assert np.abs(printed - derived).max() > 0.01 * np.abs(derived).max()
    with pytest.raises(EngineError, match="'consensus' is from"):
        SFRRegressor.paper(solver__local_shift="ridge", ridge=0.001, **asked).fit(X, y, agents=owners)
