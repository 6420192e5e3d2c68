"""Claims of the paper's results section, in our words: whether they follow from its own table, and hold in our runs.

Every verdict is computed, from the stored paper numbers and from the stored results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dsfr.paper.experiments.selection import Cell
from dsfr.paper.reproduction.paper import DATASETS, LEVEL, METHODS, PAPER, REDUCTIONS, SETTINGS, TITLES
from dsfr.paper.reproduction.stored import Results
from dsfr.paper.reproduction.summary import OURS, TableCell

Means = Mapping[Cell, float]
SEMI_SUPERVISED = tuple(method for method in METHODS if method != "FR")
ROUNDING = 0.05
"""Per cent that a printed average may differ from that of the printed means."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What verdicts are computed from."""

    results: Results
    cells: Mapping[Cell, TableCell]

    @property
    def best(self) -> Means:
        """Our means at the grid values best on the test folds."""
        return {cell: found.best.mean for cell, found in self.cells.items()}

    @property
    def honest(self) -> Means:
        """Our means with the grid value chosen on training labels."""
        return {cell: found.honest.mean for cell, found in self.cells.items()}

    @property
    def test_ratio(self) -> float:
        """Test over training rows of a fold, for the correction of p-values."""
        return 1.0 / (float(self.results.spec("fits")["folds"]) - 1.0)


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim and what became of it."""

    sentence: str
    """In our words, not the paper's."""
    in_paper: str
    """Whether it follows from the paper's own numbers."""
    in_ours: str
    """Whether it holds in our runs."""


PRINTED: Means = {cell: found.mean for cell, found in PAPER.items()}


def table_claims(evidence: Evidence) -> list[Claim]:
    """Claims about the main table."""
    both: list[tuple[str, Callable[[Means], str]]] = [
        (
            "SFR-ICR is the clear outstanding performer in both settings (best of the four semi-supervised methods).",
            _outstanding,
        ),
        ("SFR-ICR has a smaller NRMSE than s-SFR and SFR-G.", _ahead_of_variants),
        ("FR, with every label, is a lower bound of the error of SFR-ICR.", _bounded_by_fr),
        ("SFR-G outperformed LapWNN on all data sets in the distributed scenario.", _graph_beats_lapwnn),
        ("Distributed SFR-ICR performed better than centralised on all data sets except CH.", _distributed_better),
    ]
    claims = [Claim(sentence, check(PRINTED), _on_ours(check, evidence)) for sentence, check in both]
    reductions = [_reduction(evidence, other) for other in REDUCTIONS]
    return [_significance(evidence), *claims, *reductions, _time(evidence)]


def _on_ours(check: Callable[[Means], str], evidence: Evidence) -> str:
    return f"{check(evidence.best)} By leave-one-out: {check(evidence.honest)}"


def _verdict(exceptions: list[str], n_checked: int) -> str:
    """Yes, or no with the exceptions."""
    if not exceptions:
        return f"**Yes**, {n_checked} of {n_checked}."
    return f"**No**: {n_checked - len(exceptions)} of {n_checked}; not {', '.join(exceptions)}."


def _name(dataset: str, setting: str) -> str:
    return f"{TITLES[dataset]} ({setting[0].upper()})"


def _outstanding(means: Means) -> str:
    exceptions = []
    for dataset in DATASETS:
        for setting in SETTINGS:
            found = {method: means[dataset, setting, method] for method in SEMI_SUPERVISED}
            winner = min(found, key=found.__getitem__)
            if winner != OURS:
                exceptions.append(f"{_name(dataset, setting)} where {winner} is best")
    return _verdict(exceptions, len(DATASETS) * len(SETTINGS))


def _ahead_of_variants(means: Means) -> str:
    pairs = [(d, s, m) for d in DATASETS for s in SETTINGS for m in ("s-SFR", "SFR-G")]
    exceptions = [f"{m} on {_name(d, s)}" for d, s, m in pairs if means[d, s, OURS] >= means[d, s, m]]
    return _verdict(exceptions, len(pairs))


def _bounded_by_fr(means: Means) -> str:
    pairs = [(d, s) for d in DATASETS for s in SETTINGS]
    return _verdict([_name(d, s) for d, s in pairs if means[d, s, "FR"] > means[d, s, OURS]], len(pairs))


def _graph_beats_lapwnn(means: Means) -> str:
    behind = [d for d in DATASETS if means[d, "distributed", "SFR-G"] >= means[d, "distributed", "LapWNN"]]
    return _verdict([TITLES[dataset] for dataset in behind], len(DATASETS))


def _distributed_better(means: Means) -> str:
    """Said of all but CH, so there are five to check."""
    checked = [dataset for dataset in DATASETS if dataset != "ch"]
    changes = {d: means[d, "distributed", OURS] - means[d, "centralised", OURS] for d in checked}
    return _verdict([f"{TITLES[d]} ({change:+.4f})" for d, change in changes.items() if change >= 0], len(checked))


def _reduction(evidence: Evidence, other: str) -> Claim:
    """The paper's own average must be the printed one; ours holds if it is no more than a point smaller."""
    said = REDUCTIONS[other]
    printed, *ours = (_mean_reduction(means, other) for means in (PRINTED, evidence.best, evidence.honest))
    verdicts = [f"**{'Yes' if found >= said - 1.0 else 'No'}**: {found:.2f}%." for found in ours]
    return Claim(
        f"SFR-ICR reduced the distributed NRMSE of {other} by {said:.2f}% on average of all data sets.",
        f"**{'Yes' if abs(printed - said) < ROUNDING else 'No'}**: {printed:.2f}%.",
        f"{verdicts[0]} By leave-one-out: {verdicts[1]}",
    )


def _mean_reduction(means: Means, other: str) -> float:
    """Per cent by which distributed SFR-ICR is below another method, averaged over data sets."""
    ratios = [means[d, "distributed", OURS] / means[d, "distributed", other] for d in DATASETS]
    return 100 * (1 - float(np.mean(ratios)))


def _significance(evidence: Evidence) -> Claim:
    printed = {cell: found.p_value for cell, found in PAPER.items() if found.p_value is not None}
    plain, corrected = _p_values(evidence)
    lost = sum(p < LEVEL <= corrected[cell] for cell, p in plain.items())
    return Claim(
        f"All p-values are smaller than {LEVEL:g}, so SFR-ICR and the other methods differ significantly.",
        _all_significant(printed),
        f"{_all_significant(plain)} With the correction of Nadeau and Bengio for runs that share training rows, {lost} "
        f"of {len(plain)} lose their significance: {_all_significant(corrected)}",
    )


def _p_values(evidence: Evidence) -> tuple[dict[Cell, float], dict[Cell, float]]:
    """Of every method against SFR-ICR at the grid values best on the test folds: plain, and corrected."""
    plain, corrected = {}, {}
    for cell, found in evidence.cells.items():
        reference = evidence.cells[cell[0], cell[1], OURS].best
        if cell[2] != OURS:
            plain[cell] = found.best.p_value(reference)
            corrected[cell] = found.best.corrected_p_value(reference, evidence.test_ratio)
    return plain, corrected


def _all_significant(p_values: Mapping[Cell, float]) -> str:
    above = [f"{m} on {_name(d, s)} {p:.2g}" for (d, s, m), p in p_values.items() if p >= LEVEL]
    return _verdict(above, len(p_values))


def _time(evidence: Evidence) -> Claim:
    ours = {cell: found.seconds for cell, found in evidence.cells.items()}
    printed = {cell: found.seconds for cell, found in PAPER.items()}
    return Claim("SFR-ICR costs far less time than other methods, centralised.", _fastest(printed), _fastest(ours))


def _fastest(seconds: Mapping[Cell, float]) -> str:
    slower = []
    for method in METHODS[:-1]:
        wins = sum(seconds[d, "centralised", OURS] < seconds[d, "centralised", method] for d in DATASETS)
        slower.append(f"faster than {method} on {wins} of {len(DATASETS)}")
    everywhere = all(text.endswith(f"{len(DATASETS)} of {len(DATASETS)}") for text in slower)
    return f"**{'Yes' if everywhere else 'No'}**: {', '.join(slower)}."
