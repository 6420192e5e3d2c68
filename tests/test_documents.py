"""Documents agree with stored results and with the code."""

import inspect
import re
from pathlib import Path

import click
import numpy as np
import pytest
from benchmarks.run import DOCUMENTS as MARKED
from benchmarks.run import with_results

from dsfr import AutoSFRRegressor, Dask, Ensemble, InProcess, LapWNNRegressor, SFRRegressor
from dsfr.cli import main
from dsfr.training import ADMM, ICR, Conjugate, Decentralized, FewRounds, FuzzyRules, Graph, RangeScaling, Sums
from tests.tables import make_table

ROOT = Path(__file__).parent.parent
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


@pytest.mark.parametrize("document", MARKED, ids=lambda path: path.name)
def test_documents_show_the_stored_results(document):
    text = document.read_text()
    assert with_results(text) == text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_exist(document):
    for link in re.findall(r"\]\((?!https?://)([^)#]+)", document.read_text()):
        assert (document.parent / link).exists(), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_imports_in_documents_work(document):
    for block in re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL):
        for line in re.findall(r"^(?:>>> )?((?:from|import) dsfr.*)$", block, flags=re.MULTILINE):
            exec(line, {})


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_source_files_named_in_documents_exist(document):
    for path in re.findall(r"`((?:\w+/)*\w+\.py)(?:::\w+)?`", document.read_text()):
        patterns = (path, f"src/dsfr/{path}", f"src/dsfr/{path}" if "/" in path else f"src/**/{path}")
        assert any(list(ROOT.glob(pattern)) for pattern in patterns), path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_within_sentences_exist_with_their_options(document):
    """Blocks are run (`test_documents_run.py`); of commands within sentences, names are checked."""
    for text in re.findall(r"`(dsfr [^`]+)`", document.read_text()):
        command, words = main, re.split(r"\\?\|", text)[0].replace("...", "").split()[1:]
        while words and isinstance(command, click.Group) and words[0] in command.commands:
            command = command.commands[words.pop(0)]
        assert command is not main or words[0].startswith("-"), text
        known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
        asked = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
        assert asked <= known, text


def test_some_baseline_is_ahead_by_leave_one_out_as_the_benchmarks_say():
    said = " ".join((ROOT / "docs" / "benchmarks.md").read_text().split())
    assert "by it, some baseline is ahead of SFR-ICR on every data set" in said
    lines = (ROOT / "docs" / "reproduction" / "summary.md").read_text().splitlines()
    header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    chosen = [j for j, name in enumerate(header) if name == "chosen by leave-one-out"]
    baselines = slice(header.index("ridge"), None)
    assert (len(rows), len(chosen), len(header[baselines])) == (6, 2, 4)
    for row in rows:
        assert min(map(float, row[baselines])) < min(float(row[j]) for j in chosen), row[0]


@pytest.mark.parametrize(
    "estimator",
    [
        SFRRegressor(),
        AutoSFRRegressor(),
        SFRRegressor(scaling="robust"),
        AutoSFRRegressor(ensemble=Ensemble(n_models=2)),
        AutoSFRRegressor(ensemble=Ensemble(n_models=2), target="log"),
    ],
)
def test_the_documented_prediction_in_plain_numpy_is_the_model_s(estimator, tmp_path):
    X, _, y = make_table(0)
    model = estimator.set_params(random_state=0).fit(X, y)
    path = model.save(tmp_path / "m.dsfr")
    text = (ROOT / "docs" / "model-file.md").read_text()
    code = re.search(r"```python\n(.*?)```", text, flags=re.DOTALL).group(1)
    lines = [line[4:] for line in code.splitlines() if line.startswith((">>> ", "... "))]
    namespace = {}
    exec("\n".join(lines), namespace)
    rows = np.vstack([X, 3.0 * X])
    np.testing.assert_allclose(namespace["predict"](path, rows), model.predict(rows), rtol=1e-10)


@pytest.mark.parametrize(
    "documented",
    [
        *(SFRRegressor, AutoSFRRegressor, LapWNNRegressor, InProcess, Dask),
        *(ADMM, Conjugate, Decentralized, FewRounds, Sums, ICR, Graph, FuzzyRules, RangeScaling),
    ],
)
def test_every_parameter_is_documented(documented):
    names = set(inspect.signature(documented).parameters)
    text = inspect.getdoc(documented).partition("Parameters\n---")[2].partition("Attributes\n---")[0]
    lines = re.findall(r"^(\w[\w, ]*)(?: : |$)", text.replace("\\\n", ""), flags=re.MULTILINE)
    assert names == {name.strip() for line in lines for name in line.split(",")}
