"""Every block of Python and of shell commands in every document is run, or says why it is not."""

import re
import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from tests.documents import ROOT, Block, blocks_of, run_python, run_shell

mpl.use("Agg")

DOCUMENTS = [
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if blocks_of(path.read_text()) and path.name
]
TAKE_LONG = ("clusters.md", "install.md")
"""Documents that start processes, or run the demo."""
COMPLETE = ("README.md", "tutorial.md", "messy-table.md")
"""Documents that a reader follows from an empty folder: they make all that they use."""
MOST_SKIPPED = 7
"""Blocks that are not run, in all documents together."""


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
    namespace = {} if document.name in COMPLETE else tables(tmp_path)
    blocks = blocks_of(document.read_text())
    for block in blocks:
        if block.reason is not None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if block.kind == "bash":
                run_shell(block)
            else:
                printed = run_python(block, namespace, document.name)
                if block.printed is not None:
                    assert printed.strip() == block.printed.strip()


def test_blocks_that_are_not_run_say_why_and_are_few():
    skipped = [block for path in DOCUMENTS for block in blocks_of(path.read_text()) if block.reason is not None]
    assert all(len(block.reason.split()) >= 4 for block in skipped)
    assert len(skipped) <= MOST_SKIPPED
    named = {name for block in skipped for name in re.findall(r"(?:tests|\.ci)/[\w/.]*\w", block.reason)}
    assert all((ROOT / name).exists() for name in named), named


def test_the_runner_fails_where_a_block_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for code, kind in (
        ("1 / 0\n", "python"),
        (">>> 1 + 1\n3\n", "python"),
        ("dsfr magic\n", "bash"),
        ("rm x\n", "bash"),
        ("pip install 'dsfr[magic]'\n", "bash"),
        ("pip install dfsr\n", "bash"),
    ):
        block = Block(kind, code, None, None, 1)
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
