"""Claims of the paper's results section, in our words, with verdicts for its own table and for our runs.

Every verdict is computed, from the published numbers and from the stored results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dsfr.paper.experiments.selection import Cell
from dsfr.paper.reproduction.loading import Results
from dsfr.paper.reproduction.published import DATASETS, METHODS, PAPER, REDUCTIONS, SETTINGS, SIGNIFICANCE_LEVEL, TITLES
from dsfr.paper.reproduction.summary import REFERENCE, TableCell

Means = Mapping[Cell, float]
SEMI_SUPERVISED = tuple(method for method in METHODS if method != "FR")
NOT_IN_TABLE = "The paper shows it in a figure, without numbers."
POST_HOC = "Post hoc:"
"""Marks a measure that was added after the results were known; it never decides a verdict."""
ROUNDING = 0.05
"""Tolerance, in per cent, between a printed average and the average of the printed means."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Stored results and their summary statistics, from which verdicts are computed."""

    results: Results
    cells: Mapping[Cell, TableCell]

    @property
    def best_on_test(self) -> Means:
        """Our means at the grid values with the lowest error on the test folds."""
        return {cell: found.best_on_test.mean for cell, found in self.cells.items()}

    @property
    def by_leave_one_out(self) -> Means:
        """Our means with the grid value chosen on training labels."""
        return {cell: found.by_leave_one_out.mean for cell, found in self.cells.items()}

    @property
    def test_ratio(self) -> float:
        """Test rows divided by training rows of a fold, for the correction of p-values."""
        return 1.0 / (float(self.results.spec("fits")["folds"]) - 1.0)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and its verdicts."""

    sentence: str
    """In our words, not the paper's."""
    in_paper: str
    """Whether it follows from the paper's own numbers."""
    in_ours: str
    """Whether it holds in our runs."""


PRINTED: Means = {cell: found.mean for cell, found in PAPER.items()}


def yes_or_no(holds: bool) -> str:
    """A verdict in bold."""
    return f"**{'Yes' if holds else 'No'}**"


def cell_name(dataset: str, setting: str) -> str:
    """Title of a data set with the initial of the setting.

    >>> cell_name("airfoil", "distributed")
    'Airfoil (D)'
    """
    return f"{TITLES[dataset]} ({setting[0].upper()})"


def list_datasets(values: Mapping[str, float], number_format: str = "") -> str:
    """Titles of data sets, each with its number.

    >>> list_datasets({"airfoil": 0.5, "ch": 2.0}, ".2f")
    'Airfoil 0.50, CH 2.00'
    """
    return ", ".join(f"{TITLES[name]} {value:{number_format}}" for name, value in values.items())


def table_claims(evidence: Evidence) -> list[Claim]:
    """Claims about the main table."""
    both: list[tuple[str, Callable[[Means], str]]] = [
        (
            "SFR-ICR is the clear outstanding performer in both settings (best of the four semi-supervised methods).",
            _outstanding,
        ),
        ("SFR-ICR has a smaller NRMSE than s-SFR and SFR-G.", _better_than_variants),
        ("FR, with every label, is a lower bound of the error of SFR-ICR.", _bounded_by_fr),
        ("SFR-G outperformed LapWNN on all data sets in the distributed scenario.", _graph_beats_lapwnn),
        ("Distributed SFR-ICR performed better than centralised on all data sets except CH.", _distributed_better),
    ]
    claims = [Claim(sentence, check(PRINTED), _in_our_runs(check, evidence)) for sentence, check in both]
    reductions = [_reduction(evidence, other) for other in REDUCTIONS]
    return [_significance(evidence), *claims, *reductions, _time(evidence)]


def _in_our_runs(check: Callable[[Means], str], evidence: Evidence) -> str:
    return f"{check(evidence.best_on_test)} By leave-one-out: {check(evidence.by_leave_one_out)}"


def _verdict(exceptions: list[str], n_checked: int) -> str:
    """Yes, or no with the exceptions."""
    if not exceptions:
        return f"**Yes**, {n_checked} of {n_checked}."
    return f"**No**: {n_checked - len(exceptions)} of {n_checked}; not {', '.join(exceptions)}."


def _outstanding(means: Means) -> str:
    exceptions = []
    for dataset in DATASETS:
        for setting in SETTINGS:
            found = {method: means[dataset, setting, method] for method in SEMI_SUPERVISED}
            winner = min(found, key=found.__getitem__)
            if winner != REFERENCE:
                exceptions.append(f"{cell_name(dataset, setting)} where {winner} is best")
    return _verdict(exceptions, len(DATASETS) * len(SETTINGS))


def _better_than_variants(means: Means) -> str:
    pairs = [(d, s, m) for d in DATASETS for s in SETTINGS for m in ("s-SFR", "SFR-G")]
    exceptions = [f"{m} on {cell_name(d, s)}" for d, s, m in pairs if means[d, s, REFERENCE] >= means[d, s, m]]
    return _verdict(exceptions, len(pairs))


def _bounded_by_fr(means: Means) -> str:
    pairs = [(d, s) for d in DATASETS for s in SETTINGS]
    return _verdict([cell_name(d, s) for d, s in pairs if means[d, s, "FR"] > means[d, s, REFERENCE]], len(pairs))


def _graph_beats_lapwnn(means: Means) -> str:
    behind = [d for d in DATASETS if means[d, "distributed", "SFR-G"] >= means[d, "distributed", "LapWNN"]]
    return _verdict([TITLES[dataset] for dataset in behind], len(DATASETS))


def _distributed_better(means: Means) -> str:
    """The claim excludes CH, so five data sets are checked."""
    checked = [dataset for dataset in DATASETS if dataset != "ch"]
    changes = {d: means[d, "distributed", REFERENCE] - means[d, "centralised", REFERENCE] for d in checked}
    return _verdict([f"{TITLES[d]} ({change:+.4f})" for d, change in changes.items() if change >= 0], len(checked))


def _reduction(evidence: Evidence, other: str) -> Claim:
    """The printed average must follow from the printed means; ours may be at most one percentage point smaller."""
    claimed = REDUCTIONS[other]
    printed, *ours = (
        _mean_reduction(means, other) for means in (PRINTED, evidence.best_on_test, evidence.by_leave_one_out)
    )
    verdicts = [f"{yes_or_no(found >= claimed - 1.0)}: {found:.2f}%." for found in ours]
    return Claim(
        f"SFR-ICR reduced the distributed NRMSE of {other} by {claimed:.2f}% on average of all data sets.",
        f"{yes_or_no(abs(printed - claimed) < ROUNDING)}: {printed:.2f}%.",
        f"{verdicts[0]} By leave-one-out: {verdicts[1]}",
    )


def _mean_reduction(means: Means, other: str) -> float:
    """Reduction of another method's error by distributed SFR-ICR in per cent, averaged over data sets."""
    ratios = [means[d, "distributed", REFERENCE] / means[d, "distributed", other] for d in DATASETS]
    return 100 * (1 - float(np.mean(ratios)))


def _significance(evidence: Evidence) -> Claim:
    printed = {cell: found.p_value for cell, found in PAPER.items() if found.p_value is not None}
    plain, corrected = _p_values(evidence)
    lost = sum(p < SIGNIFICANCE_LEVEL <= corrected[cell] for cell, p in plain.items())
    return Claim(
        f"All p-values are smaller than {SIGNIFICANCE_LEVEL:g}, so SFR-ICR and the other methods differ significantly.",
        _all_significant(printed),
        f"{_all_significant(plain)} With the correction of Nadeau and Bengio for runs that share training rows, {lost} "
        f"of {len(plain)} lose their significance: {_all_significant(corrected)}",
    )


def _p_values(evidence: Evidence) -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Plain and corrected p-values of every method against SFR-ICR, at the grid values best on the test folds."""
    plain, corrected = {}, {}
    for cell, found in evidence.cells.items():
        reference = evidence.cells[cell[0], cell[1], REFERENCE].best_on_test
        if cell[2] != REFERENCE:
            plain[cell] = found.best_on_test.p_value(reference)
            corrected[cell] = found.best_on_test.corrected_p_value(reference, evidence.test_ratio)
    return plain, corrected


def _all_significant(p_values: Mapping[Cell, float]) -> str:
    above = [f"{m} on {cell_name(d, s)} {p:.2g}" for (d, s, m), p in p_values.items() if p >= SIGNIFICANCE_LEVEL]
    return _verdict(above, len(p_values))


def _time(evidence: Evidence) -> Claim:
    ours = {cell: found.seconds for cell, found in evidence.cells.items()}
    printed = {cell: found.seconds for cell, found in PAPER.items()}
    return Claim("SFR-ICR costs far less time than other methods, centralised.", _fastest(printed), _fastest(ours))


def _fastest(seconds: Mapping[Cell, float]) -> str:
    wins = {
        method: sum(seconds[d, "centralised", REFERENCE] < seconds[d, "centralised", method] for d in DATASETS)
        for method in METHODS[:-1]
    }
    texts = [f"faster than {method} on {count} of {len(DATASETS)}" for method, count in wins.items()]
    return f"{yes_or_no(min(wins.values()) == len(DATASETS))}: {', '.join(texts)}."
