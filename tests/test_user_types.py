"""Programs of users are checked with the types of the package: right ones pass, wrong ones do not."""

import textwrap

import pytest

import dsfr

api = pytest.importorskip("mypy.api")

RIGHT = """
    from pathlib import Path

    import numpy as np
    import dsfr
    from dsfr import AutoSFRRegressor, InProcess, RuleRegressor, SFRRegressor

    X = np.zeros((10, 2))
    y = np.zeros(10)
    model: RuleRegressor = RuleRegressor(max_rules=3, engine=InProcess(), random_state=0).fit(X, y)
    low, high = model.predict_interval(X, coverage=0.9)
    width: float = float((high - low).mean())
    text: str = str(model.rules_)
    n_rules: int = len(model.rules_)
    score: float = SFRRegressor().fit(X, y).score(X, y)
    path: Path = AutoSFRRegressor().fit(X, y).save("model.dsfr")
    loaded: dsfr.Model = dsfr.load(path)
    share: dict[str, float] = loaded.explain_prediction([1.0, 2.0]).contributions
"""
WRONG = {
    "a parameter that does not exist": "from dsfr import RuleRegressor\nRuleRegressor(rules=3)",
    "a parameter of another type": "from dsfr import RuleRegressor\nRuleRegressor(max_rules='many')",
    "a method that does not exist": "import dsfr\ndsfr.load('m.dsfr').explane()",
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """Messages of mypy --strict about each program, in one run."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "right.py").write_text(textwrap.dedent(RIGHT))
    for number, code in enumerate(WRONG.values()):
        (folder / f"wrong_{number}.py").write_text(f"{code}\n")
    root = dsfr.__file__.removesuffix("src/dsfr/__init__.py")
    told = ["--strict", "--config-file", "", "--cache-dir", f"{root}.mypy_cache", "--follow-imports", "silent"]
    output, errors, _ = api.run([*told, *map(str, sorted(folder.glob("*.py")))])
    assert not errors, errors
    return output.splitlines()


@pytest.mark.slow
def test_right_programs_pass(checked):
    assert [line for line in checked if "right.py" in line] == []


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(WRONG)), ids=list(WRONG))
def test_wrong_programs_are_found(checked, number):
    assert any(f"wrong_{number}.py" in line and "error" in line for line in checked), checked
