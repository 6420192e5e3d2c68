"""The stored results are complete, the page shows them, and the code still computes them."""

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate
from scipy.stats import t as student

from dsfr.cli import main
from dsfr.paper.datasets import load_values
from dsfr.paper.experiments.deviations import ALL, DEVIATIONS
from dsfr.paper.experiments.results import ResultsError, read_results
from dsfr.paper.experiments.spec import read_specs
from dsfr.paper.reproduction import figures
from dsfr.paper.reproduction.claims import PRINTED, table_claims
from dsfr.paper.reproduction.deviations import ENTRIES, deviation_table
from dsfr.paper.reproduction.document import heading, join_blocks, to_html
from dsfr.paper.reproduction.figure_claims import figure_claims
from dsfr.paper.reproduction.loading import REQUIRED, Results, check_complete
from dsfr.paper.reproduction.notes import caption_note
from dsfr.paper.reproduction.published import DATASETS, METHODS, PAPER, SETTINGS, SIZES
from dsfr.paper.reproduction.report import read_evidence, render, summary, with_deviations, write_report
from dsfr.paper.reproduction.summary import Errors
from tests.invented import EXPERIMENTS, invent

DOCS = Path(__file__).parent.parent / "docs"
COMMITTED = DOCS / "reproduction" / "results"


@pytest.fixture(scope="module")
def evidence():
    return read_evidence(COMMITTED)


@pytest.fixture(scope="module")
def invented(tmp_path_factory):
    return invent(tmp_path_factory.mktemp("invented"))


def test_every_cell_has_fifty_runs(evidence):
    assert set(evidence.cells) == {(d, s, m) for d in DATASETS for s in SETTINGS for m in METHODS}
    for cell in evidence.cells.values():
        assert len(cell.best_on_test.by_run) == len(cell.by_leave_one_out.by_run) == 50
    for spec in read_specs(EXPERIMENTS):
        about = evidence.results.metadata[spec.name]
        assert about["spec"]["repetitions"] == spec.repetitions
        assert tuple(about["spec"]["values"]) == spec.values
        assert about["fingerprint"] == (spec.fingerprint(_fingerprint(evidence, spec.needs)))


def _fingerprint(evidence, needs):
    return evidence.results.metadata[needs]["fingerprint"] if needs else ""


def test_the_page_is_what_the_stored_results_render(evidence):
    assert (DOCS / "reproduction.md").read_text() == render(evidence)
    assert (DOCS / "reproduction" / "summary.md").read_text() == summary(evidence)
    theory = (DOCS / "theory.md").read_text()
    assert theory == with_deviations(theory, evidence)
    for name in figures.NAMES:
        assert (DOCS / "reproduction" / f"{name}.png").stat().st_size > 5000


def test_the_stored_errors_are_within_bounds(evidence):
    limits = {
        ("airfoil", "SFR-ICR"): 0.745,
        ("ccpp", "SFR-ICR"): 0.285,
        ("wmsl", "SFR-ICR"): 0.766,
        ("airfoil", "FR"): 0.67,
        ("ccpp", "FR"): 0.25,
        ("kch", "FR"): 0.57,
    }
    for (dataset, method), limit in limits.items():
        assert 0.2 < np.median(evidence.cells[dataset, "centralised", method].best_on_test.values) < limit


def test_stored_fits_agree_with_the_closed_form(evidence):
    assert max(cell.gap for (_, setting, _), cell in evidence.cells.items() if setting == "centralised") < 2e-6
    assert max(cell.gap for cell in evidence.cells.values() if cell.converged == 1.0) < 0.02


differences = arrays(np.float64, st.integers(3, 60), elements=st.floats(-1.0, 1.0))


@given(differences, st.floats(0.01, 1.0))
def test_the_corrected_t_test_has_a_larger_variance_than_the_paired_one(values, ratio):
    """Nadeau and Bengio: the variance of the mean grows from 1/n to 1/n + test over training rows."""
    assume(np.std(values) > 1e-3)
    n = len(values)
    runs = [(i, 0) for i in range(n)]
    ours, other = Errors(dict(zip(runs, 1.0 + values, strict=True))), Errors(dict.fromkeys(runs, 1.0))
    assert ours.corrected_p_value(other, 0.0) == pytest.approx(ours.p_value(other), abs=1e-9)
    statistic = values.mean() / np.sqrt((1 / n + ratio) * values.var(ddof=1))
    density = integrate.quad(lambda x: student.pdf(x, n - 1), 0.0, abs(statistic), limit=200)[0]
    corrected = ours.corrected_p_value(other, ratio)
    assert corrected == pytest.approx(1 - 2 * density, abs=1e-6)
    assert corrected >= ours.p_value(other) - 1e-12


def test_p_values_of_constant_differences():
    same = Errors({(i, 0): 1.0 for i in range(5)})
    assert same.corrected_p_value(same, 0.25) == 1.0
    assert same.corrected_p_value(Errors({(i, 0): 2.0 for i in range(5)}), 0.25) == 0.0


def test_the_correction_uses_the_ratio_of_test_to_training_rows(evidence):
    assert evidence.test_ratio == pytest.approx(0.25)


def test_the_page_marks_paraphrases_and_errors_of_the_paper(evidence):
    """No paraphrase is in quotation marks; the page names a misprint and sizes that do not add up."""
    text = render(evidence)
    claims = [*table_claims(evidence), *(claim for found in figure_claims(evidence).values() for claim in found)]
    assert all(f'"{claim.sentence}"' not in text for claim in claims)
    assert "prints mu = 1. We read gamma = 1" in text
    assert "those of KCH add up to 21,563, not to its 21,613 samples" in text
    assert {name for name, (total, *parts) in SIZES.items() if sum(parts) != total} == {"kch"}


def test_captions_say_where_medians_are_drawn_and_how_many_runs_there_are(evidence):
    """A data set is named if, and only if, a few of its runs shift the mean."""
    assert "from the mean, which a few runs shift (WMSL)" in caption_note(evidence, "agents")
    rows = [{**row, "nrmse": 1.0} for row in evidence.results.rows["agents"]]
    calm = replace(evidence, results=replace(evidence.results, rows={**evidence.results.rows, "agents": rows}))
    assert "Dashed" not in caption_note(calm, "agents")
    spec = {**evidence.results.spec("penalties"), "test_folds": 5, "repetitions": 10}
    metadata = {**evidence.results.metadata, "penalties": {**evidence.results.metadata["penalties"], "spec": spec}}
    even = replace(evidence, results=replace(evidence.results, metadata=metadata))
    assert "mean and standard deviation over 50 runs. Below: plain ADMM" in render(even)


def test_every_measured_deviation_is_in_the_table_once(evidence):
    assert sorted(name for entry in ENTRIES for name in entry.measured) == sorted([*DEVIATIONS, ALL])
    assert all(entry.measured or entry.effect for entry in ENTRIES)
    assert deviation_table(evidence).count("\n") == len(ENTRIES) + 1
    assert "mean NRMSE with 100 to 500,000 pairs, as they are: Airfoil" in deviation_table(evidence)


def test_missing_runs_raise(invented, tmp_path):
    shutil.copytree(invented, tmp_path / "results")
    path = tmp_path / "results" / "fits.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(ResultsError, match="'fits' have 9 runs of airfoil, centralised, FR, not 10"):
        Results.read(tmp_path / "results")
    kept = [row for row in table.to_pylist() if row["method"] != "FR" or row["dataset"] != "ch"]
    pq.write_table(pa.Table.from_pylist(kept), path)
    with pytest.raises(ResultsError, match="'fits' have 8 points of ch, not 10"):
        Results.read(tmp_path / "results")
    path.unlink()
    with pytest.raises(ResultsError, match="no complete results of 'fits'"):
        Results.read(tmp_path / "results")


@pytest.mark.parametrize("name", REQUIRED)
def test_every_experiment_is_checked_for_completeness(invented, name):
    rows = read_results(invented, name)
    spec = Results.read(invented).spec(name)
    check_complete(name, rows, spec)
    lost = [row for row in rows if (row["dataset"], row["repetition"]) != (spec["datasets"][0], 1)]
    with pytest.raises(ResultsError, match="runs of"):
        check_complete(name, lost, spec)


@pytest.mark.slow
def test_the_report_of_a_quick_run_is_complete(invented, tmp_path):
    paths = write_report(invented, tmp_path)
    assert all(path.exists() for path in paths)
    text = (tmp_path / "reproduction.md").read_text()
    for link in re.findall(r"\]\((?!https?://)([^)#]+)\)", text):
        assert (tmp_path / link).exists()
    page = (tmp_path / "reproduction.html").read_text()
    assert page.count("data:image/png;base64,") == len(figures.NAMES)
    assert not re.search(r'src="(?!data:)|<script|href="http', page)
    assert page.count("<tr>") == page.count("</tr>")
    assert "nan" not in re.sub(r"<img[^>]*>", "", page).lower().split()


@pytest.mark.slow
def test_rendering_does_not_change_results(invented, tmp_path):
    before = {path.name: path.read_bytes() for path in invented.iterdir()}
    result = CliRunner().invoke(main, ["reproduce", "--render", "-o", str(invented), "--report", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert before == {path.name: path.read_bytes() for path in invented.iterdir()}


def test_figures_without_matplotlib_raise_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = CliRunner().invoke(main, ["reproduce", "--render"])
    assert result.exit_code == 2
    assert "pip install 'dsfr[reproduce]'" in result.stderr


def test_the_published_table_is_complete():
    assert len(PAPER) == len(DATASETS) * len(METHODS) * len(SETTINGS)
    assert PRINTED["kch", "distributed", "SFR-ICR"] == 0.6673
    assert PAPER["ccpp", "centralised", "SFR-G"].p_value == 0.0811
    assert {cell for cell, found in PAPER.items() if found.p_value is None} == {
        (d, s, "SFR-ICR") for d in DATASETS for s in SETTINGS
    }


def test_verdicts_on_the_published_numbers(evidence):
    verdicts = {claim.sentence: claim.in_paper for claim in table_claims(evidence)}
    by_start = {words: text for sentence, text in verdicts.items() for words in [sentence[:30]]}
    assert by_start["All p-values are smaller than "].startswith("**No**: 45 of 48")
    assert by_start["SFR-G outperformed LapWNN on a"] == "**No**: 5 of 6; not WMSL."
    assert by_start["Distributed SFR-ICR performed "].startswith("**No**: 3 of 5")
    reductions = [text for sentence, text in verdicts.items() if "reduced the distributed NRMSE" in sentence]
    assert reductions == ["**No**: 31.65%.", "**No**: 21.25%.", "**Yes**: 19.44%."]


@pytest.mark.skipif(not os.environ.get("DSFR_DATA_HOME"), reason="DSFR_DATA_HOME does not name the data sets")
def test_one_row_of_wmsl_is_an_outlier():
    values = load_values("wmsl")
    second, first = np.sort(values.X[:, values.feature_names.index("TotalHours")])[-2:]
    assert first == 40 * second


def test_markdown_is_rendered_and_html_is_escaped(tmp_path):
    text = join_blocks([heading(1, "A <b>title</b>"), "**bold**, *slanted*, `code`, <script>"])
    page = to_html(text, tmp_path)
    assert "<strong>bold</strong>, <em>slanted</em>, <code>code</code>, &lt;script&gt;" in page
    assert "<script>" not in page
    assert "<b>" not in page
