"""The report of the reproduction, made of stored results alone: what was run, tables, claims, figures, differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.paper.reproduction import notes
from dsfr.paper.reproduction.claims import Claim, Evidence, table_claims
from dsfr.paper.reproduction.deviations import deviation_notes, deviation_table
from dsfr.paper.reproduction.document import bullets, figure, heading, join_blocks, table, to_html
from dsfr.paper.reproduction.figure_claims import FIXED_VALUE, figure_claims
from dsfr.paper.reproduction.figures import NAMES, draw_figures, require_matplotlib
from dsfr.paper.reproduction.findings import findings
from dsfr.paper.reproduction.loading import REQUIRED, Results, n_runs
from dsfr.paper.reproduction.paper_admm import admm_notes, admm_table
from dsfr.paper.reproduction.statements import UNTESTED, statements
from dsfr.paper.reproduction.summary import baseline_cells, table_cells
from dsfr.paper.reproduction.tables import setting_table, short_table
from dsfr.storage.atomic import replacing

__all__ = ["REQUIRED", "render", "require_figures", "write_report"]

BEGIN, END = "<!-- deviations -->", "<!-- end of deviations -->"
"""Marks of the generated table in ``theory.md``."""
FIGURES = "reproduction"
"""Folder of the figures and of the short table, beside the report."""
CAPTIONS = {
    "overview": "Test NRMSE of all cells of Table II, mean and standard deviation; predicting the mean has NRMSE 1",
    "convergence": "Objective per round, mean and standard deviation over {runs} runs",
    "parameters": "Distributed SFR-ICR over one parameter, the others fixed at {fixed:g}, mean and standard deviation "
    "over {runs} runs{few}",
    "pairs": "Distributed SFR-ICR over the number of interpolated pairs of each agent, {runs} runs",
    "rules": "Distributed SFR-ICR over the number of rules, {runs} runs",
    "agents": "SFR-ICR over the number of agents, which share {labels} labels, {runs} runs",
    "owners": "SFR-ICR with {agents} agents whose rows are distributed differently, {runs} runs",
}


def require_figures() -> None:
    """Check, before a long computation, that figures can be drawn."""
    require_matplotlib()


def write_report(results: str | Path, folder: str | Path) -> list[Path]:
    """Write figures, ``reproduction.md``, ``.html`` and a short table from stored results; nothing is recomputed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    evidence = read_evidence(results)
    figures = draw_figures(evidence, folder / FIGURES)
    markdown = render(evidence)
    texts = {
        "reproduction.md": markdown,
        "reproduction.html": to_html(markdown, folder),
        f"{FIGURES}/summary.md": summary(evidence),
    }
    theory = folder / "theory.md"
    if theory.exists():
        texts["theory.md"] = with_deviations(theory.read_text(), evidence)
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    return [*figures, *(folder / name for name in texts)]


def with_deviations(theory: str, evidence: Evidence) -> str:
    """The document with the present table of deviations between its two marks."""
    before, _, rest = theory.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"theory.md has no place for the table of deviations: {BEGIN} and {END} must mark it")
    return before + "\n\n".join([BEGIN, deviation_notes(evidence), deviation_table(evidence), END]) + after


def summary(evidence: Evidence) -> str:
    """The short table, for other documents."""
    n_agents = int(evidence.results.spec("fits")["agents"])
    return join_blocks([short_table(evidence.cells, baseline_cells(evidence.results), n_agents)])


def read_evidence(results: str | Path) -> Evidence:
    """Stored results of a folder and their summary statistics."""
    stored = Results.read(results)
    return Evidence(stored, table_cells(stored))


def render(evidence: Evidence) -> str:
    """The report as Markdown."""
    by_figure = figure_claims(evidence)
    return join_blocks(
        [
            heading(1, "Reproduction of the paper"),
            notes.OPENING,
            heading(2, "What was run"),
            bullets(_what_was_run(evidence)),
            heading(2, "Findings"),
            bullets(findings(evidence)),
            *_main_tables(evidence),
            *_claims(evidence, by_figure),
            heading(2, "Figures"),
            *[block for name in NAMES[1:] for block in _figure_section(evidence, name, by_figure.get(name, []))],
            heading(2, "Why numbers differ"),
            bullets(notes.differences(evidence)),
            heading(2, "Deviations from the paper, one at a time"),
            deviation_notes(evidence),
            deviation_table(evidence),
        ]
    )


def _what_was_run(evidence: Evidence) -> list[str]:
    metadata, spec = evidence.results.metadata, evidence.results.spec("grid")
    total = sum(one["core_seconds"] for one in metadata.values())
    return [
        f"dsfr {_by_value(metadata, _version)}, seed {spec['seed']}, commit {_by_value(metadata, _commit)}. The tests "
        "compute a few cells of every experiment again with the present code, and fail if they differ from the stored "
        "ones.",
        f"{spec['repetitions']} repetitions of {spec['folds']}-fold cross-validation, {spec['labels']} labels "
        f"({spec['labels'] // spec['agents']} for each of {spec['agents']} agents), {spec['rules']} rules, "
        f"fuzzifier {spec['fuzzifier']}, convergence threshold {spec['tol']:g}, parameters from "
        f"{{{', '.join(f'{v:g}' for v in spec['grid'])}}}.",
        f"Runs on each data set: {_by_value(metadata, _runs)}.",
        f"{_by_value(metadata, _processor)}; {_by_value(metadata, _packages)}; one thread per job, on a shared "
        f"machine. The computation took {total / 60:.0f} minutes of processor time.",
    ]


def _by_value(metadata: Mapping[str, Mapping[str, Any]], value_of: Callable[[Mapping[str, Any]], str]) -> str:
    """A value of all experiments; where they differ, each value with its experiments."""
    by_value: dict[str, list[str]] = {}
    for name, about in metadata.items():
        by_value.setdefault(value_of(about), []).append(name)
    if len(by_value) == 1:
        return next(iter(by_value))
    return "; ".join(f"{value} ({', '.join(sorted(names))})" for value, names in by_value.items())


def _commit(about: Mapping[str, Any]) -> str:
    return f"`{(about['git'] or 'unknown')[:12]}`"


def _runs(about: Mapping[str, Any]) -> str:
    return str(n_runs(about["spec"]))


def _version(about: Mapping[str, Any]) -> str:
    return str(about["version"])


def _processor(about: Mapping[str, Any]) -> str:
    return str(about["machine"]["processor"])


def _packages(about: Mapping[str, Any]) -> str:
    machine = about["machine"]
    versions = (f"{name} {machine[name]}" for name in ("python", "numpy", "scipy", "scikit-learn"))
    return f"{machine['cores']} cores, {', '.join(versions)}"


def _main_tables(evidence: Evidence) -> list[str]:
    return [
        heading(2, "Table II"),
        notes.table_notes(evidence),
        _captioned_figure("overview", evidence, []),
        heading(3, "Centralised"),
        setting_table(evidence.cells, "centralised", baseline_cells(evidence.results), evidence.test_ratio),
        heading(3, f"Distributed, {evidence.results.spec('fits')['agents']} agents"),
        setting_table(evidence.cells, "distributed", {}, evidence.test_ratio),
        heading(3, "Distributed, by the paper's ADMM and by ours"),
        admm_notes(evidence),
        admm_table(evidence),
    ]


def _claims(evidence: Evidence, by_figure: dict[str, list[Claim]]) -> list[str]:
    claims = [*table_claims(evidence), *(claim for found in by_figure.values() for claim in found)]
    return [
        heading(2, "Claims"),
        notes.CRITERIA,
        _claim_table(("claim of the paper, in our words", "by its own numbers", "in our runs"), claims),
        heading(2, "Statements about the paper's experiments"),
        _claim_table(("statement", "by the printed table", "in our runs"), statements(evidence)),
        "Statements about the authors' program, which our runs can neither confirm nor refute:",
        bullets(UNTESTED),
    ]


def _claim_table(header: tuple[str, str, str], claims: list[Claim]) -> str:
    return table(header, [[claim.sentence, claim.in_paper, claim.in_ours] for claim in claims], numeric=False)


def _figure_section(evidence: Evidence, name: str, claims: list[Claim]) -> list[str]:
    titles = {"owners": "Agents with different distributions (not in the paper)"}
    return [
        heading(3, titles.get(name, name.capitalize())),
        _captioned_figure(name, evidence, claims),
        *([_partition_table(evidence)] if name == "owners" else []),
    ]


def _captioned_figure(name: str, evidence: Evidence, claims: list[Claim]) -> str:
    experiment = {"overview": "fits", "parameters": "grid"}.get(name, name)
    runs, below = (evidence.results.n_runs(one) for one in (experiment, "penalties"))
    few = f" (above) and {below} (below)" if below != runs else ""
    title = CAPTIONS[name].format(runs=runs, few=few, fixed=FIXED_VALUE, **evidence.results.spec(experiment))
    verdicts = [f"Claim of the paper, in our words: {claim.sentence} Our runs: {claim.in_ours}" for claim in claims]
    caption = f"{title}. {notes.caption_note(evidence, name)}{' '.join(verdicts)}"
    return figure(f"{FIGURES}/{name}.png", caption.replace("**", "").strip())


def _partition_table(evidence: Evidence) -> str:
    """Rounds, traffic and convergence by how the rows are divided between agents."""
    rows = []
    for partition in evidence.results.spec("owners")["partitions"]:
        found = evidence.results.where("owners", partition=partition)
        numbers = [np.median([row[column] for row in found]) for column in ("rounds", "kilobytes")]
        converged = np.mean([row["converged"] for row in found])
        rows.append([partition, *(f"{number:.0f}" for number in numbers), f"{100 * converged:.0f}%"])
    return table(("rows divided by", "rounds (median)", "kB (median)", "converged"), rows)
