"""Odd tables and settings: a result that can be used and saved, or a clear error, and never a warning of numpy's."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, RuleRegressor, SFRRegressor
from dsfr.core.solve.cholesky import SingularSystemError
from dsfr.report import write_report
from dsfr.training import ADMM, Conjugate, Sums
from tests.test_cli import refused, run
from tests.test_forged_models import use

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning", "ignore::UserWarning"
)

KINDS = {
    "normal": lambda v: v,
    "constant": lambda v: np.full(len(v), -1e99),
    "tiny": lambda v: v * 1e-310,
    "small": lambda v: v * 1e-160,
    "large": lambda v: np.clip(v, -1.0, 1.0) * 1e100,
    "far from zero": lambda v: 1e15 + v,
    "rare": lambda v: np.where(np.arange(len(v)) == 0, 1e99, 0.0),
    "rare and tiny": lambda v: np.where(np.arange(len(v)) == 0, 1e-310, 0.0),
    "wide": lambda v: np.exp(200.0 * np.clip(v, -1.1, 1.1)),
    "whole": np.round,
    "one far off": lambda v: np.where(np.arange(len(v)) == 0, 1e60, v),
}
kinds = st.sampled_from(sorted(KINDS))
ridges = st.sampled_from([1e-10, 1e-6, 0.1, 1e8])
plain = st.fixed_dictionaries(
    {
        "n_rules": st.sampled_from([1, 2, 5]),
        "unlabeled": st.sampled_from(["icr", "graph", None]),
        "ridge": ridges,
        "unlabeled__weight": st.sampled_from([0.0, 0.1, 1e6]),
        "unlabeled__pairs": st.sampled_from(["random", "local"]),
        "rules__fuzzifier": st.sampled_from([1.01, 1.1, 2.0, 30.0]),
        "rules__width_scale": st.sampled_from([1e-3, 1.0, 1e3]),
        "rules__firing": st.sampled_from(["sum", "mean"]),
        "scaling": st.sampled_from(["range", "robust"]),
        "solver": st.sampled_from([Conjugate(), Sums(), Sums(acceleration=None), ADMM(), ADMM(acceleration=None)]),
        "solver__max_rounds": st.just(100),
    }
)
sure = st.fixed_dictionaries(
    {
        "tune": st.sampled_from(["evidence", "loo"]),
        "uncertainty": st.just(True),
        "ensemble": st.builds(
            Ensemble, n_models=st.sampled_from([1, 2]), relevance=st.sampled_from([None, "evidence", "slopes"])
        ),
        "target": st.sampled_from(["auto", None]),
        "scaling": st.sampled_from(["range", "robust"]),
        "n_rules": st.sampled_from([1, 3]),
    }
)


def with_parameters(estimator, told):
    """The estimator with those parameters that it has: there are no pairs without a penalty of pairs."""
    estimator.set_params(**{name: value for name, value in told.items() if "__" not in name})
    known = estimator.get_params()
    return estimator.set_params(**{name: value for name, value in told.items() if "__" in name and name in known})


estimators = st.one_of(
    plain.map(lambda told: with_parameters(SFRRegressor(random_state=0), told)),
    sure.map(lambda told: AutoSFRRegressor(rules="gaussian", unlabeled="icr", solver="sums", random_state=0, **told)),
    st.sampled_from([1, 2]).map(lambda n: AutoSFRRegressor(ensemble=Ensemble(n_models=n), random_state=0)),
    ridges.map(lambda ridge: SFRRegressor(solver="few-rounds", ridge=ridge, random_state=0)),
    st.builds(
        RuleRegressor,
        max_rules=st.sampled_from([1, 3, 5]),
        max_terms=st.sampled_from([None, 0, 1]),
        tolerance=st.sampled_from([None, 0.0, 0.05]),
        teacher=st.sampled_from([None, SFRRegressor(n_rules=2), AutoSFRRegressor(ensemble=Ensemble(n_models=1))]),
        random_state=st.just(0),
    ),
    ridges.map(lambda ridge: LapWNNRegressor(n_nodes=5, ridge=ridge, random_state=0)),
)


def table(seed, n_rows, of_columns, of_target, n_hidden):
    rng = np.random.default_rng(seed)
    X = np.column_stack([KINDS[kind](rng.standard_normal(n_rows)) for kind in of_columns])
    y = KINDS[of_target](rng.standard_normal(n_rows))
    y[rng.permutation(n_rows)[: min(n_hidden, n_rows - 1)]] = np.nan
    return X, y


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.sampled_from([1, 2, 3, 6, 20, 60]),
    of_columns=st.lists(kinds, min_size=3, max_size=3),
    of_target=kinds,
    n_hidden=st.sampled_from([0, 10, 50]),
    n_agents=st.sampled_from([1, 3]),
    estimator=estimators,
)
def test_odd_tables_give_a_usable_model_or_a_clear_error(
    tmp_path, seed, n_rows, of_columns, of_target, n_hidden, n_agents, estimator
):
    X, y = table(seed, n_rows, of_columns, of_target, n_hidden)
    try:
        fitted = estimator.set_params(n_agents=min(n_agents, n_rows)).fit(X, y)
    except SingularSystemError:
        return
    far = np.array([[1e300, -1e300, 1e300], [0.0, 1e50, -1e-300]])
    assert np.isfinite(fitted.predict(X)).all()
    assert np.isfinite(fitted.predict(far)).all()
    assert np.isfinite(fitted.score(far, np.array([1.0, 2.0])))
    loaded = dsfr.load(fitted.save(tmp_path / "m.dsfr"))
    use(loaded, tmp_path)
    if isinstance(fitted, SFRRegressor):
        str(loaded.explain(far))
        write_report(loaded, tmp_path / "far.html", far, np.array([1.0, 2.0]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("kind", [SFRRegressor, AutoSFRRegressor])
@pytest.mark.parametrize("n_agents", [1, 3])
def test_targets_too_large_to_compute_with_are_refused(sign, kind, n_agents):
    X = np.arange(20.0)[:, None]
    y = np.where(np.arange(20) % 2, 1.0, sign * 1.7e308)
    with pytest.raises(ValueError, match=r"y has a target of -?1.7e\+308; targets must lie between .* Make it NaN if"):
        kind(n_agents=n_agents).fit(X, y)
    with pytest.raises(
        ValueError, match=r"X has values up to 1.7e\+308 in size in column 1 .* features must lie between"
    ):
        kind(n_agents=n_agents).fit(np.column_stack([X, y]), X[:, 0])


def test_the_largest_targets_are_learnt_like_others():
    X = np.random.default_rng(0).standard_normal((60, 2))
    y = X[:, 0] / np.abs(X[:, 0]).max()
    plain, large = (AutoSFRRegressor(random_state=0).fit(X, scale * y).predict(X) for scale in (1.0, 1e100))
    np.testing.assert_allclose(large / 1e100, plain, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("feature_scale", [1e-90, 1.0, 1e90])
def test_short_rules_of_the_largest_targets_can_be_used(tmp_path, feature_scale):
    """Without limits of the teacher, their steep lines are held where they could not be computed with."""
    X = np.random.default_rng(0).standard_normal((60, 3))
    y, X = 1e99 * np.clip(X[:, 0], -1.0, 1.0), feature_scale * X
    fitted = RuleRegressor(teacher=SFRRegressor(n_rules=2), random_state=0).fit(X, y)
    loaded = dsfr.load(fitted.save(tmp_path / "m.dsfr"))
    use(loaded, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert np.corrcoef(loaded.predict(X), y)[0, 1] > 0.9


def test_single_precision_refuses_what_it_cannot_hold():
    X = np.array([[1.0], [1e39], [2.0]])
    with pytest.raises(ValueError, match=r"beyond 3.4e\+38, the largest number of precision='single'"):
        SFRRegressor(precision="single").fit(X, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("method", ["auto", "rules"])
@pytest.mark.parametrize("of_target", ["normal", "large", "tiny", "constant", "rare"])
def test_the_command_line_is_silent_on_odd_tables(tmp_path, of_target, method):
    X, y = table(0, 40, ["large", "tiny", "one far off"], of_target, 10)
    source, model = tmp_path / "odd.csv", tmp_path / "m.dsfr"
    np.savetxt(source, np.column_stack([X, y]), delimiter=",", header="a,b,c,y", comments="", fmt="%.17g")
    source.write_text(source.read_text().replace("nan", ""))
    assert run("fit", source, "--target", "y", "-o", model, "--method", method).exit_code == 0
    for command in (
        ("predict", model, source),
        ("explain", model, source),
        ("explain", model, "--row", f"{source}:1"),
        ("report", model, source, "-o", tmp_path / "r.html"),
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert "Warning" not in result.output


def test_the_command_line_says_that_targets_are_too_large(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,1.7e308\n2,-1.7e308\n3,1\n")
    told = refused("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.dsfr")
    assert "targets must lie between -1e+100 and 1e+100" in told
