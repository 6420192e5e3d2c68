"""Every block of Python and of shell commands in every document is run; `EXCEPTIONS` has what is not, and why."""

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from tests.documents import EXCEPTIONS, ROOT, Block, blocks_of, run_python, run_shell

mpl.use("Agg")

DOCUMENTS = [
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if blocks_of(path.read_text()) and path.name
]
TAKE_LONG = ("README.md", "clusters.md", "install.md")
"""Documents that start processes, or run the demo."""
COMPLETE = ("tutorial.md", "messy-table.md")
"""Documents that a reader follows from an empty folder: they make all that they use."""
OWN_FILES = ("README.md",)
"""Documents that speak of the reader's files, and make all values that they use."""


def tables(folder):
    """Files and values that how-tos speak of without making them: a table of houses, parts of it, rows and owners."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 10, (90, 3)), columns=["rooms", "age", "area"])
    price = pd.Series(np.where(X["age"] < 5, 3 * X["rooms"], X["area"]), name="y").where(np.arange(90) < 40)
    owner = np.array(["north", "east", "south"])[np.arange(90) % 3]
    for name in ("rows", "new"):
        (folder / name).mkdir()
        for part in range(2):
            X.assign(y=price, site=owner)[part::2].to_parquet(folder / name / f"part-{part}.parquet")
    X.assign(y=price).to_csv(folder / "rows.csv", index=False)
    X.assign(price=price, region=owner).to_csv(folder / "houses.csv", index=False)
    X.assign(region=owner).to_csv(folder / "new.csv", index=False)
    for part in range(5):
        X.assign(y=price)[part::5].to_parquet(folder / f"site-{part}.parquet")
    values = {"X_new": X[:5], "y_new": X["rooms"][:5], "Y": pd.DataFrame({"first": price, "second": 2 * price})}
    return {"np": np, "X": X, "y": price, "frame": X, "owner": owner, "price": price, "rng": rng} | values


@pytest.mark.parametrize(
    "document",
    [pytest.param(path, marks=[pytest.mark.slow] if path.name in TAKE_LONG else []) for path in DOCUMENTS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
@pytest.mark.filterwarnings("ignore")
def test_the_blocks_of_a_document_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {} if document.name in COMPLETE else tables(tmp_path)
    namespace = {} if document.name in OWN_FILES else given
    for block in blocks_of(document.read_text()):
        if block.kind == "bash" and str(document.relative_to(ROOT)) in EXCEPTIONS:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if block.kind == "bash":
                run_shell(block)
            else:
                printed = run_python(block, namespace, document.name)
                if block.printed is not None:
                    assert printed.strip() == block.printed.strip()


def test_exceptions_are_needed_and_name_who_runs_them_instead():
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in DOCUMENTS}
    code = "\n".join(block.code for text in texts.values() for block in blocks_of(text))
    assert all(name in texts or re.search(rf"^{re.escape(name)}\b", code, re.MULTILINE) for name in EXCEPTIONS)
    named = {name for reason in EXCEPTIONS.values() for name in re.findall(r"(?:tests|\.ci)/[\w/.]*\w", reason)}
    assert all((ROOT / name).exists() for name in named), named
    for document in EXCEPTIONS.keys() & texts.keys():
        (runs,) = re.findall(r"tests/[\w/.]*\w", EXCEPTIONS[document])
        assert f'"{document.rpartition("/")[2]}"' in (ROOT / runs).read_text()


def test_the_runner_fails_where_a_block_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code, kind in (
        ("1 / 0\n", "python"),
        (">>> 1 + 1\n3\n", "python"),
        ("dsfr magic\n", "bash"),
        ("rm x\n", "bash"),
        ("pip install 'dsfr[magic]'\n", "bash"),
        ("pip install dfsr\n", "bash"),
        ("make magic\n", "bash"),
        (". .venv/bin/python\n", "bash"),
    ):
        block = Block(kind, code, None, 1)
        with pytest.raises((AssertionError, ZeroDivisionError)):
            run_shell(block) if kind == "bash" else run_python(block, {}, "a")


def test_the_readme_is_short_and_shows_rules_first():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    first = blocks_of(text)[1]
    assert "RuleRegressor" in first.code
    assert first.printed is not None
    assert sum(bool(line.strip()) for line in first.code.splitlines()) <= 8
    assert text.count("![") == 1
