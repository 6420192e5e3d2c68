"""Parameters and components: whatever is given reaches the training, or is refused; nothing is overridden silently."""

import inspect
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import dsfr
from dsfr import (
    ADMM,
    ICR,
    AutoSFRRegressor,
    Conjugate,
    Dask,
    Decentralized,
    Ensemble,
    FewRounds,
    FuzzyRules,
    Graph,
    InProcess,
    LapWNNRegressor,
    RangeScaling,
    RobustScaling,
    SFRRegressor,
    Sums,
    nrmse_scorer,
)
from dsfr.engines import Faults
from dsfr.estimators.parameters import COMPONENTS, NOT_SETTINGS, read_parameters
from dsfr.training import Settings, train
from dsfr.training.component import as_record
from tests.tables import make_table

ESTIMATORS = [SFRRegressor, AutoSFRRegressor, LapWNNRegressor]
positive = st.floats(1e-3, 1e3)
components = st.one_of(
    st.builds(
        ICR,
        weight=st.none() | positive,
        n_pairs=st.none() | st.integers(1, 99),
        most_pairs=st.integers(1, 999),
        pairs=st.sampled_from(["random", "local"]),
        mix_concentration=positive,
    ),
    st.builds(
        Graph,
        weight=st.none() | positive,
        n_neighbors=st.integers(1, 30),
        kernel=st.sampled_from(["neighbors", "full"]),
    ),
    st.builds(Sums, tol=positive, max_rounds=st.integers(1, 99), acceleration=st.sampled_from(["l-bfgs", None])),
    st.builds(Conjugate, tol=positive, max_rounds=st.integers(1, 99)),
    st.builds(
        ADMM,
        penalty=st.none() | positive | st.just("balanced"),
        cluster_penalty=st.none() | positive,
        relaxation=st.floats(0.1, 1.9),
        acceleration=st.sampled_from(["anderson", None]),
        refresh_pairs=st.booleans(),
        tol=positive,
        max_rounds=st.integers(1, 99),
    ),
    st.builds(
        ADMM,
        penalty=positive,
        cluster_penalty=positive,
        acceleration=st.none(),
        stopping=st.just("paper"),
        local_shift=st.sampled_from(["penalty", "ridge"]),
    ),
    st.builds(FewRounds, tol=positive),
    st.builds(Decentralized, tol=positive, max_rounds=st.integers(1, 99)),
    st.builds(
        FuzzyRules,
        fuzzifier=st.floats(1.01, 3.0),
        width_scale=positive,
        firing=st.sampled_from(["sum", "mean"]),
        width_pooling=st.sampled_from(["exact", "paper"]),
        membership=st.sampled_from(["gaussian", "bell"]),
        init=st.sampled_from(["k-means++", "random"]) | st.builds(lambda low: [[low, 0.0], [1.0, low]], positive),
        cluster_rows=st.sampled_from(["all", "nearest"]),
        membership_exponent=st.none() | positive,
    ),
    st.builds(
        lambda low, size, target: RangeScaling(lower=[low, 0.0], upper=[low + size, 1.0], target=target),
        positive,
        positive,
        st.sampled_from(["standard", "raw"]),
    ),
    st.just(RobustScaling()),
    st.builds(
        InProcess,
        topology=st.sampled_from([None, "ring", (("a", "b"), ("b", "c"))]),
        faults=st.none() | st.builds(Faults, loss=st.floats(0.0, 0.9), seed=st.integers(0, 9)),
        min_agents=st.integers(1, 9),
    ),
    st.just(Dask()),
)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_there_are_few_parameters(estimator):
    assert len(inspect.signature(estimator).parameters) <= 15


@given(components)
def test_a_component_is_its_repr_its_clone_and_its_record(component):
    names = {name: getattr(dsfr, name) for name in dsfr.__all__ if name[0].isupper()}
    assert eval(repr(component), names) == component  # noqa: S307
    assert clone(component) == component
    assert type(component)(**component.get_params()) == component
    assert read_parameters({component.argument: as_record(component)}) == {component.argument: component}


def test_a_repr_names_what_is_not_at_its_default():
    assert repr(ADMM()) == "ADMM()"
    assert repr(ADMM(penalty=0.1, tol=1e-4)) == "ADMM(penalty=0.1)"
    assert repr(SFRRegressor(unlabeled=ICR(weight=0.2))) == "SFRRegressor(unlabeled=ICR(weight=0.2))"


def test_a_component_is_frozen():
    with pytest.raises(AttributeError):
        ICR().weight = 3.0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_shorthand_stands_for_its_class_with_default_arguments(estimator):
    for name, family in COMPONENTS.items():
        for shorthand, kind in family.choices.items() if name in estimator().get_params() else ():
            assert estimator(**{name: shorthand}).component(name) == kind()


OTHER = {
    "n_rules": 3,
    "n_nodes": 7,
    "ensemble": Ensemble(n_models=2),
    "ensemble__n_models": 2,
    "ensemble__relevance": None,
    "ensemble__effects": "single",
    "ensemble__max_weights_per_label": 0.5,
    "target": None,
    "ridge": 0.3,
    "tune": "loo",
    "uncertainty": True,
    "rules": FuzzyRules(fuzzifier=1.7),
    "rules__fuzzifier": 1.7,
    "rules__width_scale": 1.9,
    "rules__firing": "mean",
    "rules__width_pooling": "paper",
    "rules__membership": "bell",
    "rules__init": "random",
    "rules__cluster_rows": "nearest",
    "rules__membership_exponent": 1.5,
    "unlabeled": Graph(n_neighbors=3),
    "unlabeled__weight": 0.7,
    "unlabeled__n_pairs": 77,
    "unlabeled__most_pairs": 55,
    "unlabeled__pairs": "local",
    "unlabeled__mix_concentration": 0.5,
    "unlabeled__n_neighbors": 4,
    "unlabeled__kernel": "full",
    "scaling": RangeScaling(lower=[-100.0] * 3, upper=[200.0] * 3),
    "scaling__lower": [-100.0] * 3,
    "scaling__upper": [200.0] * 3,
    "scaling__target": "raw",
    "scaling__target_range": [0.0, 100.0],
    "solver": Sums(tol=0.5, max_rounds=77),
    "solver__tol": 0.02,
    "solver__max_rounds": 4321,
    "solver__acceleration": None,
}
"""A value of every parameter that is no default."""
INSTEAD = {
    AutoSFRRegressor: {
        "n_rules": 4,
        "uncertainty": False,
        "rules__firing": "sum",
        "unlabeled__pairs": "random",
        "solver__tol": 1e-4,  # the default of Sums, and not of the automatic mode
    }
}
"""Values for estimators whose defaults are those above, or that are worth a test because others have them."""
NEEDED = {
    "ridge": {"tune": None, "ensemble__n_models": 1, "uncertainty": False},
    "unlabeled__weight": {"tune": None, "ensemble__n_models": 1, "uncertainty": False},
    "scaling__lower": {"scaling": "range", "scaling__upper": [200.0] * 3},
    "scaling__upper": {"scaling": "range", "scaling__lower": [-100.0] * 3},
    "scaling__target": {
        "scaling": "range",
        "tune": None,
        "ensemble": Ensemble(n_models=1, relevance=None),
        "uncertainty": False,
    },
    "rules__init": {"ensemble": Ensemble(n_models=1, relevance=None)},
}
"""What must be given along with a parameter."""


def nested(settings, name):
    first, _, argument = name.partition("__")
    if first == "ensemble" and isinstance(settings, Settings):  # settings have its arguments one by one
        arguments = {entry: getattr(settings, entry) for entry in Ensemble().get_params()}
        return arguments[argument] if argument else Ensemble(**arguments | {"effects": "auto"})
    return getattr(getattr(settings, first), argument) if argument else getattr(settings, first)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_explicit_argument_always_wins(estimator, monkeypatch):
    """Every parameter, one by one: a value that is given is what the training gets, and what the model remembers."""
    X, _, y = make_table(0)
    params = estimator().get_params()
    names = [name for name in params if name.partition("__")[0] not in NOT_SETTINGS]
    names += [] if "scaling__lower" in params else ["scaling__lower", "scaling__upper"]
    used = []
    monkeypatch.setattr("dsfr.estimators.base.train", recording(used))
    for name in names:
        value = INSTEAD.get(estimator, {}).get(name, OTHER[name])
        along = {key: entry for key, entry in NEEDED.get(name, {}).items() if key.partition("__")[0] in params}
        model = estimator(random_state=0).set_params(**along | {name: value})
        assert name not in params or params[name] != value, f"{name}={value} is the default: the test shows nothing"
        model.fit(X, y)
        expected = tuple(value) if isinstance(value, list) else value
        assert nested(used[-1], name) == expected
        stored = read_parameters(model.model_.settings)
        assert nested(type("Stored", (), stored), name) == expected


def recording(used):
    def record(engine, settings, on_round=None):
        used.append(settings)
        return train(engine, settings, on_round)

    return record


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("solver", ["admm", "conjugate", "few-rounds", "decentralized"])
def test_a_solver_that_is_asked_for_runs_or_is_refused(estimator, solver):
    X, _, y = make_table(0)
    model = estimator(solver=solver, n_agents=3, engine=InProcess(topology="ring"), random_state=0)
    if estimator is AutoSFRRegressor and solver != "decentralized":
        with pytest.raises(ValueError, match=r"solver=.* does not go with .*take solver='sums'"):
            model.fit(X, y)
        model.set_params(tune=None, ensemble__n_models=1, uncertainty=False)
        if solver == "few-rounds":
            model.set_params(ensemble__relevance=None, scaling="range", rules="gaussian")
    tasks = {task for task, _ in model.fit(X, y).ledger_.entries}
    typical = {
        "admm": "weight_consensus",
        "conjugate": "first_gradient",
        "few-rounds": "statistics",
        "decentralized": "learn_links",
    }
    assert typical[solver] in tasks


@pytest.mark.parametrize("given", [{"ridge": 0.5}, {"unlabeled": ICR(weight=0.5)}, {"unlabeled__weight": 0.5}])
def test_what_the_automatic_mode_tunes_cannot_be_given_unless_tuning_is_switched_off(given):
    X, _, y = make_table(0)
    with pytest.raises(ValueError, match=r"tune='evidence' does not go with .*because tune='evidence' chooses it"):
        AutoSFRRegressor().set_params(**given).fit(X, y)


@pytest.mark.parametrize("present", ["conjugate", Conjugate(), "auto"])
def test_a_search_reaches_into_components_whatever_stands_for_them(present):
    X, _, y = make_table(0)
    grid = {"solver__tol": np.array([1e-2, 1e-5]), "unlabeled__weight": [0.01, 1.0]}
    grid["rules"] = ["gaussian", FuzzyRules(fuzzifier=2.0)]
    estimator = SFRRegressor(solver=present, n_agents=2, random_state=0)
    search = GridSearchCV(estimator, grid, scoring=nrmse_scorer, cv=2, error_score="raise").fit(X, y)
    assert search.best_estimator_.solver.tol in (1e-2, 1e-5)
    assert type(search.best_estimator_.solver.tol) is float
    assert estimator.solver is present
    assert clone(search.best_estimator_).solver == search.best_estimator_.solver


def test_parameters_of_components_are_listed_and_set_after_those_that_choose_them():
    model = SFRRegressor()
    assert model.get_params()["solver__max_rounds"] == 10_000
    assert "solver__penalty" not in model.get_params()
    model.set_params(solver__penalty=0.5, solver="admm")
    assert model.solver == ADMM(penalty=0.5)
    assert "unlabeled__weight" not in model.set_params(unlabeled=None).get_params()
    assert SFRRegressor(solver="nonsense").get_params(deep=True)["solver"] == "nonsense"
    with pytest.raises(ValueError, match=r"solver=ADMM\(penalty=0.5\) has no argument 'n_pairs'; it has tol"):
        model.set_params(solver__n_pairs=3)
    with pytest.raises(ValueError, match="Invalid parameter 'solvent'"):
        model.set_params(solvent__tol=3)


def test_explanations_are_methods_of_the_fitted_estimator(tmp_path):
    X, _, y = make_table(0)
    model = SFRRegressor(random_state=0)
    for ask in (model.explain, lambda: model.explain_prediction(X[0]), model.simplify, lambda: model.save("x")):
        with pytest.raises(NotFittedError):
            ask()
    model.fit(X, y)
    assert str(model.explain(X)) == str(model.model_.explain(X))
    assert str(model.explain_prediction(X[0])) == str(model.model_.explain_prediction(X[0]))
    assert str(model.simplify(X, y, similarity=0.9)) == str(model.model_.simplify(X, y, similarity=0.9))
    np.testing.assert_array_equal(dsfr.load(model.save(tmp_path / "m.dsfr")).predict(X), model.predict(X))


def test_every_component_checks_all_its_arguments():
    """An argument without a rule would be a hole; those whose rule depends on another check it themselves."""
    own = {(InProcess, "topology"), (Dask, "client"), (RangeScaling, "lower"), (RangeScaling, "upper")}
    own |= {(FuzzyRules, "init")}
    own |= {(RangeScaling, "target_range")}
    for family in COMPONENTS.values():
        for kind in family.choices.values():
            for entry in fields(kind):
                assert "rule" in entry.metadata or (kind, entry.name) in own, (kind, entry.name)
