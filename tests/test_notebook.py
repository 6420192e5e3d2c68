"""What a notebook shows of estimators, models, rules and explanations: short, bounded, escaped."""

import html
import re

import numpy as np
import pandas as pd
import pytest

from dsfr import AutoSFRRegressor, LapWNNRegressor, RuleRegressor, SFRRegressor
from dsfr.core.explain.html import MOST_RULES

MOST_TEXT = 500
MOST_HTML = 20_000
HOSTILE = "<script>alert(1)</script>"


def table(n_features, n_rows=120, prefix="x"):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, n_features)), columns=[f"{prefix}{j}" for j in range(n_features)])
    y = pd.Series(np.where(X.iloc[:, 0] > 0, 3 * X.iloc[:, 0], X.iloc[:, -1]), name="y")
    return X, y.where(np.arange(n_rows) < 60)


@pytest.mark.parametrize(
    "estimator",
    [
        RuleRegressor(random_state=0),
        AutoSFRRegressor(random_state=0),
        SFRRegressor(n_rules=15, random_state=0),
        LapWNNRegressor(random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.filterwarnings("ignore:.*at most two rows")
def test_what_is_shown_is_bounded(estimator):
    assert "<div" in estimator._repr_html_()
    X, y = table(12)
    fitted = estimator.fit(X, y)
    shown = [fitted, fitted.model_]
    if not isinstance(estimator, LapWNNRegressor):
        explained = fitted.explain(X)
        shown += [explained, *(explained if isinstance(explained, tuple) else ())]
        shown += [fitted.explain_prediction(X.iloc[0].tolist())]
    if getattr(explained := shown[2] if len(shown) > 2 else None, "effects", None) is not None:
        shown += [explained.effects, *explained.effects.features]
    for each in shown:
        assert len(repr(each)) <= MOST_TEXT, repr(each)
        if hasattr(each, "_repr_html_"):
            assert len(each._repr_html_()) <= MOST_HTML
    bundle = fitted._repr_mimebundle_()
    assert bundle["text/plain"] == repr(fitted)
    assert fitted.model_._repr_html_() in bundle["text/html"]


def test_the_table_has_rules_shares_and_price():
    X, y = table(3)
    card = RuleRegressor(random_state=0).fit(X, y).rules_
    page = card._repr_html_()
    rows = re.findall(r"<tr><td.*?</tr>", page)
    assert len(rows) == len(card) > 1
    for k, row in enumerate(rows):
        text = html.unescape(re.sub(r"<[^>]*>", " ", row))
        assert card.condition(k).removeprefix("IF ") in text
        assert "IF " not in text  # the column says so
        assert card.line_text(k) in text
        assert f"{card.predictor.shares[k]:.0%}" in text
    assert "Price of readability" in page


def test_many_rules_are_counted_and_not_listed():
    X, y = table(2)
    explained = SFRRegressor(n_rules=20, random_state=0).fit(X, y).explain(X)
    page = explained._repr_html_()
    assert len(re.findall(r"<tr><td", page)) == MOST_RULES
    assert f"{20 - MOST_RULES} more rules" in page


@pytest.mark.parametrize("estimator", [RuleRegressor(random_state=0), SFRRegressor(random_state=0)])
def test_names_are_escaped(estimator):
    X, y = table(2, prefix=HOSTILE)
    fitted = estimator.fit(X, y.rename(HOSTILE))
    for page in (fitted._repr_html_(), fitted.model_._repr_html_(), fitted.explain()._repr_html_()):
        assert "<script" not in page
        assert "&lt;script&gt;" in page
