"""The report: what was run, the table, the claims, the figures, and how to read them. Made of stored results alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.paper.reproduction import reading
from dsfr.paper.reproduction.claims import Claim, Evidence, table_claims
from dsfr.paper.reproduction.curves import HELD, figure_claims
from dsfr.paper.reproduction.document import Block, Figure, Heading, Paragraph, Points, Table, to_markdown, to_page
from dsfr.paper.reproduction.figures import NAMES, draw_figures, require_matplotlib
from dsfr.paper.reproduction.stored import REQUIRED, Results
from dsfr.paper.reproduction.summary import baseline_cells, table_cells
from dsfr.paper.reproduction.suspicions import UNTESTED, suspicions
from dsfr.paper.reproduction.tables import setting_table, short_table
from dsfr.storage.atomic import replacing

__all__ = ["REQUIRED", "render", "require_figures", "write_report"]

FIGURES = "reproduction"
"""Folder of figures and short table beside the report."""
CAPTIONS = {
    "overview": "Test NRMSE of all cells of Table II, mean and standard deviation; 1 is predicting the mean",
    "convergence": "Objective per round, mean and deviation over {runs} runs",
    "parameters": "Distributed SFR-ICR over one parameter, the others at {held:g}, mean and deviation over {runs} runs "
    "(above) and {few} (below)",
    "pairs": "Distributed SFR-ICR over the number of interpolated pairs of each agent, {runs} runs",
    "rules": "Distributed SFR-ICR over the number of rules, {runs} runs",
    "agents": "SFR-ICR over the number of agents with {labels} labels spread over them, {runs} runs",
    "owners": "SFR-ICR with {agents} owners who are not alike, {runs} runs",
}


def require_figures() -> None:
    """Check, before long work, that figures can be drawn."""
    require_matplotlib()


def write_report(results: str | Path, folder: str | Path) -> list[Path]:
    """Figures, ``reproduction.md``, ``.html`` and a short table from the results of a folder; nothing is recomputed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    evidence = read_evidence(results)
    figures = draw_figures(evidence, folder / FIGURES)
    blocks = render(evidence)
    texts = {
        "reproduction.md": to_markdown(blocks),
        "reproduction.html": to_page(blocks, folder),
        f"{FIGURES}/summary.md": to_markdown([summary(evidence)]),
    }
    for name, text in texts.items():
        with replacing(folder / name) as file:
            file.write(text.encode())
    return [*figures, *(folder / name for name in texts)]


def summary(evidence: Evidence) -> Table:
    """The short table, for other documents."""
    n_agents = int(evidence.results.spec("fits")["agents"])
    return short_table(dict(evidence.cells), baseline_cells(evidence.results), n_agents)


def read_evidence(results: str | Path) -> Evidence:
    """Stored results, summarised once."""
    stored = Results.read(results)
    return Evidence(stored, table_cells(stored))


def render(evidence: Evidence) -> list[Block]:
    """The document."""
    shown = figure_claims(evidence)
    return [
        Heading(1, "Reproduction of the paper"),
        Paragraph(reading.OPENING),
        *_what_was_run(evidence),
        Heading(2, "Reading"),
        Points(reading.findings(evidence)),
        *_table(evidence),
        *_claims(evidence, shown),
        Heading(2, "Figures"),
        *[block for name in NAMES[1:] for block in _figure(evidence, name, shown.get(name, []))],
        Heading(2, "Why numbers differ"),
        Points(reading.differences(evidence)),
    ]


def _what_was_run(evidence: Evidence) -> list[Block]:
    about = evidence.results.about
    first, spec = about["grid"], evidence.results.spec("grid")
    machine, total = first["machine"], sum(one["core_seconds"] for one in about.values())
    walls = [one["wall_seconds"] for one in about.values()]
    wall = f", {sum(walls) / 60:.0f} minutes on the clock with {first['jobs']} jobs" if all(walls) else ""
    versions = ", ".join(f"{name} {machine[name]}" for name in ("python", "numpy", "scipy", "scikit-learn"))
    return [
        Heading(2, "What was run"),
        Points(
            [
                f"dsfr {first['version']}, seed {spec['seed']}, commit {_commits(about)}.",
                f"{spec['repetitions']} repetitions of {spec['folds']}-fold cross-validation, {spec['labels']} labels "
                f"({spec['labels'] // spec['agents']} for each of {spec['agents']} agents), {spec['rules']} rules, "
                f"fuzzifier {spec['fuzzifier']}, threshold {spec['tol']:g}, parameters from "
                f"{{{', '.join(f'{v:g}' for v in spec['grid'])}}}.",
                f"{machine['processor']}, {machine['cores']} cores, {versions}; one thread per job, on a machine that "
                f"others used too. The times of all units add up to {total / 60:.0f} minutes{wall}; idle cores need "
                "less.",
            ]
        ),
    ]


def _commits(about: Mapping[str, Mapping[str, Any]]) -> str:
    """The commit of the source, or each with its experiments where these were run with several."""
    by_commit: dict[str, list[str]] = {}
    for name, told in about.items():
        by_commit.setdefault((told["git"] or "unknown")[:12], []).append(name)
    if len(by_commit) == 1:
        return f"`{next(iter(by_commit))}`"
    return "; ".join(f"`{commit}` ({', '.join(sorted(names))})" for commit, names in by_commit.items())


def _table(evidence: Evidence) -> list[Block]:
    cells = dict(evidence.cells)
    return [
        Heading(2, "Table II"),
        Paragraph(reading.table_notes(evidence)),
        _captioned("overview", evidence, []),
        Heading(3, "Centralised"),
        setting_table(cells, "centralised", baseline_cells(evidence.results), evidence.test_ratio),
        Heading(3, f"Distributed, {evidence.results.spec('fits')['agents']} agents"),
        setting_table(cells, "distributed", {}, evidence.test_ratio),
    ]


def _claims(evidence: Evidence, shown: dict[str, list[Claim]]) -> list[Block]:
    claims = [*table_claims(evidence), *(claim for found in shown.values() for claim in found)]
    header = ("claim of the paper, in our words", "by its own numbers", "in our runs")
    rows = [[claim.sentence, claim.in_paper, claim.in_ours] for claim in claims]
    doubts = [[claim.sentence, claim.in_paper, claim.in_ours] for claim in suspicions(evidence)]
    return [
        Heading(2, "Claims"),
        Paragraph(reading.CRITERIA),
        Table(header, rows, sentences=True),
        Heading(2, "Statements about the paper's experiments"),
        Table(("it was said", "by the printed table", "in our runs"), doubts, sentences=True),
        Paragraph("Said of the authors' program, which our runs cannot confirm or refute:"),
        Points(UNTESTED),
    ]


def _figure(evidence: Evidence, name: str, claims: list[Claim]) -> list[Block]:
    titles = {"owners": "Owners who are not alike (not in the paper)"}
    return [
        Heading(3, titles.get(name, name.capitalize())),
        _captioned(name, evidence, claims),
        *_owner_table(evidence, name),
    ]


def _captioned(name: str, evidence: Evidence, claims: list[Claim]) -> Figure:
    experiment = {"overview": "fits", "parameters": "grid"}.get(name, name)
    runs, few = (_n_runs(evidence, one) for one in (experiment, "penalties"))
    said = " ".join(f"Claim of the paper, in our words: {claim.sentence} We see: {claim.in_ours}" for claim in claims)
    spec = evidence.results.spec(experiment)
    caption = (
        CAPTIONS[name].format(runs=runs, few=few, held=HELD, **spec)
        + ". "
        + reading.caption_note(evidence, name)
        + said
    )
    return Figure(f"{FIGURES}/{name}.png", caption.replace("**", "").strip())


def _n_runs(evidence: Evidence, experiment: str) -> int:
    spec = evidence.results.spec(experiment)
    return int(spec["repetitions"] * spec["test_folds"])


def _owner_table(evidence: Evidence, name: str) -> list[Block]:
    """Rounds and errors of owners who are not alike."""
    if name != "owners":
        return []
    rows = []
    for partition in evidence.results.spec("owners")["partitions"]:
        found = evidence.results.where("owners", partition=partition)
        numbers = [np.median([row[column] for row in found]) for column in ("rounds", "kilobytes")]
        converged = np.mean([row["converged"] for row in found])
        rows.append([partition, *(f"{number:.0f}" for number in numbers), f"{100 * converged:.0f}%"])
    return [Table(("owners by", "rounds (median)", "kB (median)", "converged"), rows)]
