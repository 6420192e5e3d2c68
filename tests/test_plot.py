"""Plots show the model's numbers, draw where they are told, and refuse what they cannot show."""

import builtins

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from dsfr import AutoSFRRegressor, SFRRegressor, plot
from tests.tables import make_table, owners_of
from tests.test_explain import average_of, model_of, predictor_of, rows_of


@pytest.fixture(scope="module")
def fitted():
    X, y, hidden = make_table(0)
    frame = pd.DataFrame(X, columns=["speed", "$angle$", "depth"])
    estimator = SFRRegressor(random_state=0).fit(frame, pd.Series(hidden, name="noise"), agents=owners_of(0, 120, 3))
    return estimator, frame, y


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")  # figures of tests that ran before in the same process
    yield
    plt.close("all")


def drawn(ax):
    ax.figure.canvas.draw()
    return ax


def test_every_plot_draws_on_the_axes_given_and_returns_them(fitted):
    estimator, X, y = fitted
    model = estimator.model_
    for draw in (
        lambda ax: plot.memberships(model, "$angle$", X, ax=ax),
        lambda ax: plot.rule_map(model, X, ax=ax),
        lambda ax: plot.rule_map(model, X, ("speed", 2), ax=ax),
        lambda ax: plot.convergence(model, ax=ax),
        lambda ax: plot.convergence(estimator.history_, "clusters", ax=ax),
        lambda ax: plot.communication(model, ax=ax),
        lambda ax: plot.communication(estimator.ledger_, "agent", ax=ax),
        lambda ax: plot.predictions(model, X, y, ax=ax),
        lambda ax: plot.response(model, "speed", X, ax=ax),
    ):
        ax = plt.subplots()[1]
        assert drawn(draw(ax)) is ax
        assert draw(None) is not ax
        plt.close("all")


@pytest.mark.parametrize(("n_rules", "named"), [(5, 5), (40, 40), (100, 0)])
def test_sets_of_many_rules_leave_room_for_the_plot(n_rules, named):
    ax = drawn(plot.memberships(model_of(predictor_of(0, n_rules=n_rules)), "x0"))
    legend = ax.get_legend()
    assert len(ax.lines) == n_rules
    assert (0 if legend is None else len(legend.get_texts())) == named
    if legend is not None:
        box, room = legend.get_window_extent(), ax.figure.bbox
        assert box.y0 >= 0
        assert (box.x1, box.y1) <= (room.x1, room.y1)
    assert ax.get_window_extent().width > 0.4 * ax.figure.bbox.width


def test_sets_are_the_model_s(fitted):
    model = fitted[0].model_
    lines = {line.get_label(): line.get_xydata() for line in plot.memberships(model, "depth").lines}
    for rule in model.explain():
        x, degree = lines[f"rule {rule.number}"].T
        np.testing.assert_allclose(degree, np.exp(-(((x - rule.centers[2]) / rule.widths[2]) ** 2)))


def test_a_response_without_rows_goes_through_the_typical_row(fitted):
    model = fitted[0].model_
    x, y = plot.response(model, "speed").lines[-1].get_xydata().T
    rows = np.tile(model.rule_base.typical_row, (len(x), 1))
    rows[:, 0] = x
    np.testing.assert_allclose(y, model.predict(rows))
    at = [1.0, 2.0, 3.0]
    x, y = plot.response(model, 0, at=at).lines[-1].get_xydata().T
    np.testing.assert_allclose(y, model.predict(np.column_stack([x, np.tile(at[1:], (len(x), 1))])))


def test_a_response_over_rows_is_their_mean(fitted):
    estimator, X, _ = fitted
    x, y = plot.response(estimator.model_, "speed", X).lines[-1].get_xydata().T
    moved = X.assign(speed=x[7])
    assert y[7] == pytest.approx(estimator.predict(moved).mean())


def test_bands_of_a_response_hold_the_middle_of_the_rows_curves(fitted):
    estimator, X, _ = fitted
    ax = plot.response(estimator.model_, "speed", X)
    for band, parts in zip(ax.collections, ([0.05, 0.95], [0.25, 0.75]), strict=True):
        outline = band.get_paths()[0].vertices
        at = outline[len(outline) // 4, 0]
        ends = np.unique(outline[outline[:, 0] == at, 1])
        curves = estimator.predict(X.assign(speed=at))
        np.testing.assert_allclose(ends, np.quantile(curves, parts), rtol=1e-9)


def test_points_are_true_and_predicted_values(fitted):
    estimator, X, y = fitted
    some = np.where(np.arange(len(y)) % 2, y, np.nan)
    points = plot.predictions(estimator.model_, X, some).collections[0].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([y, estimator.predict(X)])[1::2])


def test_intervals_are_drawn_where_the_model_knows_them():
    model = average_of(2)
    X = rows_of(2, model.predictor)
    half = model.half_width(0.8)
    bars = plot.predictions(model, X, model.predict(X), coverage=0.8).collections[0].get_segments()
    np.testing.assert_allclose([bar[1][1] - bar[0][1] for bar in bars], 2 * half, rtol=1e-6)
    ax = plot.response(model, 0, coverage=0.8)
    _, y = ax.lines[-1].get_xydata().T
    outline = ax.collections[0].get_paths()[0].vertices
    assert outline[:, 1].max() == pytest.approx(y.max() + half)
    assert outline[:, 1].min() == pytest.approx(y.min() - half)


def test_bars_are_the_ledger_s_bytes(fitted):
    estimator = fitted[0]
    for by in ("task", "agent"):
        ax = plot.communication(estimator.ledger_, by)
        total = 1e3 * sum(bar.get_width() for bar in ax.patches)
        traffic = estimator.ledger_.agents.values()
        agents = sum(entry.bytes_received + entry.bytes_sent for entry in traffic)
        assert total == pytest.approx(estimator.ledger_.bytes if by == "task" else agents)
        n_bars = len(ax.patches) // 2
        both = np.array([bar.get_width() for bar in ax.patches]).reshape(2, n_bars).sum(axis=0)
        heights = [bar.get_y() for bar in ax.patches[:n_bars]]
        assert (np.diff(both) <= 0).all()
        assert (np.diff(heights) < 0).all()  # the busiest on top


def test_the_history_s_numbers_are_drawn():
    X, _, y = make_table(0)
    estimator = SFRRegressor(random_state=0, n_agents=3, solver="admm").fit(X, y)
    lines = {line.get_label(): line.get_ydata() for line in plot.convergence(estimator.history_, "weights").lines}
    expected = [info.primal_residual for info in estimator.history_ if info.stage == "weights"]
    np.testing.assert_allclose(lines["primal residual"], [value for value in expected if value > 0])


def test_rounds_of_several_models_go_on_counting():
    X, _, y = make_table(0)
    history = AutoSFRRegressor(random_state=0).fit(X, y).history_
    for line in plot.convergence(history, "clusters").lines:
        assert (np.diff(line.get_xdata()) > 0).all()


def test_ellipses_in_two_features_are_the_sets(fitted):
    estimator, X, _ = fitted
    rule = estimator.model_.explain()[0]
    outline = plot.rule_map(estimator.model_, X, ("speed", "depth")).lines[0].get_xydata()
    assert np.ptp(outline[:, 0]) == pytest.approx(2 * rule.widths[0], rel=1e-2)
    assert np.ptp(outline[:, 1]) == pytest.approx(2 * rule.widths[2], rel=1e-2)


def test_one_feature_and_one_rule_have_a_map_too():
    model = model_of(predictor_of(0, n_rules=1, n_features=1))
    drawn(plot.rule_map(model, np.linspace(0, 1, 9)[:, None]))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda m, X, y: plot.memberships(m, "wind"), "feature='wind' must be one of speed"),
        (lambda m, X, y: plot.memberships(m, 3), "feature=3"),
        (lambda m, X, y: plot.predictions(m, X, y[:3]), "one target for each"),
        (lambda m, X, y: plot.predictions(m, X, np.nan * y), "no known target"),
        (lambda m, X, y: plot.response(m, 0, X, at=[1, 2, 3]), "give one of them"),
        (lambda m, X, y: plot.communication(m, "round"), "by='round'"),
        (lambda m, X, y: plot.convergence([]), "no history"),
        (lambda m, X, y: plot.convergence(m, "dreams"), "stage='dreams' must be one of clusters, weights"),
        (lambda m, X, y: plot.communication(model_of(predictor_of(0))), "nothing was sent"),
    ],
)
def test_what_cannot_be_shown_is_refused(fitted, draw, message):
    with pytest.raises(ValueError, match=message):
        draw(fitted[0].model_, fitted[1], fitted[2])


def test_without_matplotlib_the_cure_is_told(fitted, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **named):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *arguments, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"dsfr\[report\]"):
        plot.memberships(fitted[0].model_, 0)
