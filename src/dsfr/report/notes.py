"""Warnings and remarks about the data and the model."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.scaling.affine import Ranges
from dsfr.io.columns import listed
from dsfr.model.model import Model
from dsfr.model.participants import participant_notes
from dsfr.report.data import ReportData

RARE = 0.01
"""A rule with a smaller share of the rows gets a remark."""
MOST_NAMED = 8
HIGH_PRICE = 0.05
"""A larger increase of the error by readability is said at the top of the page."""
OUTSIDE = 1e-9
"""Rows farther outside a feature's range than this part of it count as outside."""

UNCONVERGED = "Training stopped at its largest number of rounds before it had converged."

Note = dict[str, str]


def notes_of_student(model: Model, domain: Ranges, data: ReportData | None) -> list[Note]:
    """Warnings first, then remarks, on rules over shared terms."""
    notes = [*map(_remark, _of_training(model)), *_of_data(model, domain, data)]
    return sorted(notes, key=lambda note: note["level"] != "warning")


def notes_of(model: Model, data: ReportData | None) -> list[Note]:
    """Warnings first, then remarks."""
    base = model.structure.rules
    rules = [] if base is None else _of_rules(base)
    notes = [
        *map(_remark, _of_training(model)),
        *rules,
        *_of_ranges(model),
        *_of_data(model, model.structure.domain, data),
    ]
    return sorted(notes, key=lambda note: note["level"] != "warning")


def caveats_of(model: Model) -> list[str]:
    """What a reader must know before reading numbers: it stands near the top of the page."""
    found = [UNCONVERGED] if model.training.get("termination") == "max_rounds" else []
    n_labeled = model.training.get("n_labeled")
    n_weights = sum(member.predictor.weights.size for member in model.members)
    if isinstance(n_labeled, int) and n_labeled < n_weights:
        found.append(
            f"{n_labeled} labels determine {n_weights} weights: the ridge and the unlabelled rows decide the rest, and "
            "single slopes should not be read as measured effects."
        )
    return found


def caveats_of_student(model: Model) -> list[str]:
    """The same for rules over shared terms: no signal, few labels, a high price."""
    record, n_labeled = model.training["student"], model.training.get("n_labeled")
    found = [UNCONVERGED] if model.training.get("termination") == "max_rounds" else []
    if not record["is_signal"]:
        found.append("The labels carry no signal: the mean predicts as well, and that is what the model does.")
    elif isinstance(n_labeled, int):
        found.append(
            f"The rules were learnt from {n_labeled} labels: they describe what the model predicts, and single slopes "
            "should not be read as measured effects."
        )
    if record["is_signal"] and record["price"] > HIGH_PRICE:
        found.append(f"Readability has a price here: {record['price']:.0%} more error than the model behind the rules.")
    return found


def _of_training(model: Model) -> list[str]:
    return [*model.target_notes(), *participant_notes(model.training)]


def _warning(text: str) -> Note:
    return {"level": "warning", "text": text}


def _remark(text: str) -> Note:
    return {"level": "remark", "text": text}


def _of_rules(base: RuleBase) -> Iterator[Note]:
    rare = np.flatnonzero(base.row_shares < RARE)
    if len(rare):
        named = listed([f"{k + 1} ({base.row_shares[k]:.2%})" for k in rare.tolist()], most=MOST_NAMED)
        yield _remark(f"Rules that stand for few rows: {named}; dsfr simplify may drop them.")


def _of_ranges(model: Model) -> Iterator[Note]:
    domain = model.structure.domain
    for j in np.flatnonzero(domain.high <= domain.low).tolist():
        yield _warning(f"{model.feature_names[j]} was constant in training: its effect is unknown.")


def _of_data(model: Model, domain: Ranges, data: ReportData | None) -> Iterator[Note]:
    if data is None:
        yield _remark(
            "Made without data: low and high refer to rows drawn from the model, and there are no "
            "histograms, typical rows or errors."
        )
        return
    if data.n_incomplete:
        yield _warning(f"{data.n_incomplete} rows of the data lack some feature and were left out.")
    yield from _of_columns(model, domain, data)
    n_repeated = len(data.X) - len(np.unique(data.X, axis=0))
    if n_repeated:
        yield _remark(f"{n_repeated} rows of the data repeat the inputs of another row.")
    if data.y is None:
        yield _remark(f"The data have no column {model.target_name}: there are no errors.")
    elif np.isnan(data.y).any():
        yield _remark(f"{int(np.isnan(data.y).sum())} of {len(data.y)} rows of the data are unlabelled.")


def _of_columns(model: Model, ranges: Ranges, data: ReportData) -> Iterator[Note]:
    room = OUTSIDE * (ranges.high - ranges.low)
    rows = data.X
    outside = (rows < ranges.low - room) | (rows > ranges.high + room)
    if outside.any():
        counts = sorted(zip(outside.sum(axis=0).tolist(), model.feature_names, strict=True), reverse=True)
        named = listed([f"{name} ({count})" for count, name in counts if count], most=MOST_NAMED)
        n_outside = int(outside.any(axis=1).sum())
        limits = model.predictor.limits
        if limits is None:
            where = f"outside the ranges of training, in {named}: there the model extrapolates."
        elif (outside & (rows >= limits.low) & (rows <= limits.high)).any():
            where = f"beyond the training rows, in {named}: there the model extrapolates, up to its limits."
        else:
            where = f"beyond the model's limits, in {named}: they are clipped to the limits."
        yield _warning(f"{n_outside} of {len(data.X)} rows lie {where}")
    constant = [name for name, width in zip(model.feature_names, np.ptp(data.X, axis=0), strict=True) if width == 0]
    if constant and len(data.X) > 1:
        yield _remark(f"Constant in the data: {listed(constant, most=MOST_NAMED)}.")
