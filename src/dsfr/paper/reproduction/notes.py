"""Explanatory text of the report: introduction, columns of the tables, captions, differences from the paper."""

from __future__ import annotations

from collections.abc import Iterator

from dsfr.paper.experiments.folds import DIRICHLET_CONCENTRATION
from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import Evidence, cell_name
from dsfr.paper.reproduction.figure_claims import grid_rows
from dsfr.paper.reproduction.published import CORES, SETTINGS, SIZES, TITLES
from dsfr.paper.reproduction.summary import MEDIAN_GAP, few_runs_shift_the_mean, group_by
from dsfr.training import Graph

OPENING = (
    "This page is generated. `dsfr reproduce` runs the experiments of *Distributed Semi-supervised Fuzzy Regression "
    "with Interpolation Consistency Regularization* (specs in `experiments/`), stores the results as tidy tables and "
    "renders this page from them. All tables, findings and verdicts are computed. `dsfr reproduce --render --output "
    "RESULTS --report DIR` renders the page again without running the experiments."
)

CRITERIA = (
    "(C) means centralised, (D) distributed. Every verdict is computed from the numbers of this page. The criteria for "
    "the verdicts on our runs were written before the results were known. Measures marked *post hoc* were added "
    "afterwards, because the first criteria did not show everything; for the number of agents two were tried (a limit "
    "on the medians, which failed too, and the one that is shown). Post hoc measures decide no verdict, with one "
    "exception: convergence by the loss is judged by its *relative* change per round, which was chosen after the "
    "counts by the absolute change, given as well, had been seen. The medians in text and "
    "figures were added afterwards as well."
)

COLUMNS = {"penalties": ("dataset", "parameter"), "rules": ("dataset", "labels")}
"""Columns that tell the curves of an experiment apart, where a data set has several."""


def caption_note(evidence: Evidence, name: str) -> str:
    """What the caption of a figure explains besides its title."""
    spec = evidence.results.spec({"overview": "fits", "parameters": "penalties"}.get(name, name))
    fixed = f"Ridge {spec['ridge']:g}, consistency {spec['consistency']:g}. "
    drawn = f"Bands: one standard deviation to both sides, cut at 0. {_dashed(evidence, name)}"
    notes = {
        "overview": "Error bars are cut at the edge of a panel. ",
        "convergence": "Above: objective of fuzzy c-means at the agents' own centers, divided by its value for all "
        "rows at the agreed centers (below 1 while the agents of ADMM do not agree). Below: relative excess of the "
        "objective of the weights over its minimum. ",
        "parameters": f"Below: plain ADMM, stopped after {spec['max_rounds']} rounds. {drawn}",
        "pairs": f"{fixed}{drawn}",
        "rules": f"{fixed}{drawn}",
        "agents": f"{fixed}{drawn}",
        "owners": "The rows are divided between agents at random, by ranges of the first feature, by cluster, or by "
        f"Dirichlet({DIRICHLET_CONCENTRATION:g}) shares; the {spec['labels']} labels are divided as evenly as the "
        f"agents' rows allow. {fixed}",
    }
    return notes[name]


def _dashed(evidence: Evidence, name: str) -> str:
    """Where the figure shows medians beside means."""
    curves = _curves(evidence, name)
    shifted = dict.fromkeys(TITLES[dataset] for dataset, rows, x in curves if few_runs_shift_the_mean(rows, x))
    if not shifted:
        return ""
    return (
        f"Dashed: the median, where it differs by more than {MEDIAN_GAP:g} from the mean, which a few runs shift "
        f"({', '.join(shifted)}). "
    )


def _curves(evidence: Evidence, name: str) -> Iterator[tuple[str, list[Row], str]]:
    """Data set, runs and varied number of every curve of a figure of errors."""
    if name == "parameters":
        for dataset in evidence.results.spec("penalties")["datasets"]:
            yield from ((dataset, grid_rows(evidence, dataset, varied), varied) for varied in ("ridge", "weight"))
    experiment, varied = ("penalties", "value") if name == "parameters" else (name, name)
    if name in ("parameters", "pairs", "rules", "agents"):
        grouped = group_by(evidence.results.rows[experiment], *COLUMNS.get(experiment, ("dataset",)))
        yield from ((key[0], rows, varied) for key, rows in grouped.items())


def differences(evidence: Evidence) -> list[str]:
    """Why our numbers differ from the paper's."""
    spec = evidence.results.spec("fits")
    return [
        "**Choice of the grid value.** The paper does not say how it chose its parameters. Our column *best on test "
        "folds* takes the value with the lowest mean error on the test rows, one per cell. This is optimistic for "
        "every method, most for those with two parameters. *Chosen by leave-one-out* uses training labels only and "
        "chooses anew in every fold; the mean and deviation of the target are those of all labels.",
        "**Targets** are standardised here, so that a ridge has the same meaning on every data set. The paper's grid "
        "therefore covers another range of ridges.",
        f"**Graphs** of SFR-G and LapWNN connect the {Graph().n_neighbors} nearest neighbours here and all rows in "
        "the paper; the same smoothness weight acts on fewer edges.",
        f"**LapWNN** follows the description in the paper and its source: {spec['nodes']} random wavelets, each a "
        "product over all features. With many features such products are almost 0 on most of the cube, and the model "
        "learns little more than the mean. The paper does not give its number of nodes.",
        "**Scaling.** Features are scaled by the ranges of the training rows, because a user does not have the test "
        "rows. The paper seems to normalise each data set as a whole, test rows included.",
        "**King County prices** are the original ones; the authors' copy rounds prices above a million.",
        _table_one(),
        "**NRMSE.** The paper divides by an estimated variance of the targets that it does not define; we use the "
        "sample variance of the test targets.",
        "**p-values** are those of paired t-tests over all runs. Folds share training rows, so these p-values are too "
        "small; the corrected p-values account for the shared rows. The paper does not say which runs it tested.",
        "**Seconds** are processor time of one fit in one process on the machine above, with the agents one after "
        f"another; the paper used {CORES} cores.",
    ]


def _table_one() -> str:
    """Sizes printed in the paper that do not add up."""
    wrong = []
    for dataset, (samples, *parts) in SIZES.items():
        if sum(parts) != samples:
            wrong.append(f"those of {TITLES[dataset]} add up to {sum(parts):,}, not to its {samples:,} samples")
    found = "; ".join(wrong) or "all add up to the samples"
    return (
        f"**Table I of the paper** gives labelled, unlabelled and test rows of {len(SIZES)} data sets: {found}. We use "
        "all rows."
    )


def table_notes(evidence: Evidence) -> str:
    """Meaning of the columns, and the largest difference between fits and closed form."""
    gaps = {setting: max(cell.gap for key, cell in evidence.cells.items() if key[1] == setting) for setting in SETTINGS}
    spec = evidence.results.spec("baselines")
    return (
        "Mean ± standard deviation of the test NRMSE over all runs. *best on test folds*, seconds, rounds and "
        "kilobytes come from full fits at the grid value in the last columns; *chosen by leave-one-out* comes from "
        "the closed form of the same statistics. Fits and closed form agree: over all runs the NRMSE differs by at "
        f"most {gaps['centralised']:.1e} centralised and {gaps['distributed']:.1e} distributed. "
        f"{_convergence(evidence)} p: paired t-test against SFR-ICR in the same column. p, corrected: the same test "
        "with the correction of Nadeau and Bengio (2003) for runs that share training rows. Baselines, in italics, "
        f"learn from the same {spec['labels']} labels; ridge has {len(spec['alphas'])} penalties to choose from, the "
        "Gaussian processes choose by marginal likelihood."
    )


def _convergence(evidence: Evidence) -> str:
    shares = {key: cell.converged for key, cell in evidence.cells.items() if cell.converged < 1}
    if not shares:
        return "All fits converged."
    cells = [f"{key[2]} on {cell_name(key[0], key[1])} {100 * share:.0f}%" for key, share in shares.items()]
    return f"Not all fits converged: {', '.join(cells)}."
