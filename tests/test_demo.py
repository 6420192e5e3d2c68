"""What the demo says about its numbers follows from them."""

import pytest

from dsfr.paper.demo import AUTOMATIC, COMPETITORS, RULES, Fit, advice


def measured(**errors):
    """Fits of all methods on three folds: the error given for a method, else 0.9; no fold is like another."""
    names = {"rules": RULES, "auto": AUTOMATIC, "ridge": "ridge regression", "trees": "extra trees", "fr": "FR (paper)"}
    errors = {names[name]: error for name, error in errors.items()}
    wobble = {competitor.name: j % 3 for j, competitor in enumerate(COMPETITORS)}
    return [
        Fit(name, errors.get(name, 0.9) + 0.01 * ((fold + wobble[name]) % 3), None)
        for fold in range(3)
        for name in wobble
    ]


@pytest.mark.parametrize(
    ("errors", "said", "not_said"),
    [
        ({"rules": 0.3, "auto": 0.5}, ["RuleRegressor (dsfr fit --method rules)"], ["can be read"]),
        ({"rules": 0.5, "auto": 0.3}, ["AutoSFRRegressor (dsfr fit --method auto)", "0.200 ± "], ["uncertainty"]),
        ({"rules": 0.3, "auto": 0.295, "trees": 0.6}, ["--method auto", "higher (within the uncertainty). That"], []),
        ({"rules": 0.5, "auto": 0.5, "ridge": 0.2}, ["ridge regression, the best of other", "lower."], ["extra trees"]),
        ({"rules": 0.5, "auto": 0.4, "fr": 0.1}, ["--method auto"], ["method fr"]),
    ],
    ids=["rules", "auto", "no difference", "ridge is better", "every label is another task"],
)
def test_the_advice_names_the_lowest_error_and_its_option(errors, said, not_said):
    text = advice(measured(**errors))
    assert all(part in text for part in said), text
    assert not any(part in text for part in not_said), text
