"""The data of the page, for display and computation, as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from dsfr import __version__
from dsfr.core.arrays import Array
from dsfr.core.explain.rules import Rule
from dsfr.core.explain.structure import Structure
from dsfr.core.explain.words import LABEL_EDGES, LABELS, one_line, readable
from dsfr.core.prediction.errors import relative_error
from dsfr.core.prediction.link import learnt_name
from dsfr.core.prediction.mixture import Member
from dsfr.core.scaling.affine import Ranges
from dsfr.estimators.parameters import read_parameters
from dsfr.model.explanation import Explanation
from dsfr.model.model import Model
from dsfr.report.data import ReportData
from dsfr.report.effects import effect_members, effects_section, member_units
from dsfr.report.notes import caveats_of, notes_of
from dsfr.report.relevance import by_relevance
from dsfr.report.reproduce import reproduction_of
from dsfr.training.component import as_source

COVERAGES = (0.5, 0.8, 0.9, 0.95)
N_BINS = 36
GRID = np.linspace(0.0, 1.0, 201)
"""Quantiles of a feature that the page gets, for the words beside its slider."""
MOST_POINTS = 1500
"""Largest number of points in the plot of predicted against true values; longer tables are thinned evenly."""

Payload = dict[str, Any]


def payload_of(model: Model, rules: Explanation, data: ReportData | None) -> Payload:
    """The page's data: the model for computing, and texts as Python prints them."""
    structure, base = model.structure, model.structure.rules
    among = structure.synthetic_rows() if data is None else data.X
    return {
        "features": [one_line(name) for name in model.feature_names],
        "categories": categories_of(model),
        **target_of(model),
        "lead": _lead(model, structure),
        "words": list(LABELS),
        "word_edges": list(LABEL_EDGES),
        "members": [] if base is None else [_rule_member(member) for member in base.members],
        "effect_members": [] if structure.effects is None else effect_members(structure.effects),
        "effects": None if rules.effects is None else effects_section(rules.effects),
        "groups": [] if structure.effects is None else list(map(list, structure.effects.groups)),
        "reference": structure.typical_row.tolist(),
        "start": structure.start,
        "rules_start": 0.0 if base is None else base.mean_output,
        "first_row": _first_row(structure, among).tolist(),
        "interval": interval_of(model),
        "density": density_of(model),
        "rules": [_rule(rule) for rule in rules],
        "rules_hint": _rules_hint(data),
        "columns": [
            column_of(structure.domain, among, j, with_histogram=data is not None) for j in range(among.shape[1])
        ],
        "order": by_relevance(model, structure.typical_row, among),
        "tiles": tiles_of(model, _size_tiles(structure), data),
        "fit": fit_of(model, data),
        "record": record_of(model),
        "caveats": caveats_of(model),
        "notes": notes_of(model, data),
        "settings": settings_of(model),
        "reproduce": reproduce_of(model),
    }


def target_of(model: Model) -> Payload:
    """The target, what is learnt of it, and how predictions follow from that; no link where they are the same."""
    link = model.mixture.link
    return {
        "target": one_line(model.target_name),
        "learnt": one_line(learnt_name(model.target_name, link)),
        "link": None if link.is_identity else asdict(link),
    }


def _first_row(structure: Structure, among: Array) -> Array:
    """The largest rule's center, or else a row: at the typical row all contributions would be near zero."""
    base = structure.rules
    row: Array = among[0] if base is None else base.centers[int(np.argmax(base.shares))]
    return row


def _lead(model: Model, structure: Structure) -> str:
    base, effects = structure.rules, structure.effects
    parts, how = [], []
    if effects is not None:
        has_triples = any(len(group) > 2 for group in effects.groups)
        parts.append(f"effects of single inputs{', pairs and triples' if has_triples else ' and pairs'}")
        how.append(f"The effects have {effects.share:.0%} of a prediction: they are added up.")
    if base is not None:
        several = f", the average of {len(base.members)} models," if len(base.members) > 1 else ""
        parts.append(f"{base.n_rules} if-then rules{several}")
        what = "A prediction" if effects is None else "The rest"
        how.append(f"{what} is the average of the rules' lines, weighted by how well each rule's conditions fit.")
    named = " and ".join(parts)
    inputs = f"predict {one_line(model.target_name)} from {len(model.columns.names)} inputs."
    return f"{named[0].upper()}{named[1:]} {inputs} {' '.join(how)}"


def _rules_hint(data: ReportData | None) -> str:
    among = "rows drawn from the model" if data is None else "the rows of the data"
    return (
        f"Words say where a set's center lies among {among}: very low under a tenth of them, low under three tenths, "
        "high and very high alike from above. A rule leaves out inputs that hardly change its firing, and terms that "
        "hardly move its line."
    )


def interval_of(model: Model) -> Payload | None:
    """Half widths of intervals by coverage in percent; None without uncertainty."""
    known = {f"{coverage:.0%}": half for coverage, half in model.half_widths(COVERAGES).items()}
    if not known or model.mixture.scores is None:
        return None
    factor_of = model.mixture.scores.input_factor
    inputs = {f"{coverage:.0%}": factor_of(coverage) for coverage in COVERAGES if f"{coverage:.0%}" in known}
    first = "90%" if "90%" in known else max(known)
    scores, typical = model.mixture.scores, model.mixture.scores.typical_deviation
    return {
        "half_widths": known,
        "first": first,
        "input_factors": inputs,
        "deviation": typical,
        "by_rule": scores.rule_deviations.tolist() if scores.rule_deviations is not None and typical > 0.0 else None,
        "n_labels": float(scores.counts[-1]),
    }


def density_of(model: Model) -> Payload | None:
    """Distribution of the inputs, by which unknown ones are completed; None if the model does not know it."""
    density = model.mixture.density
    if density is None:
        return None
    correlation = None if density.correlation is None else density.correlation.tolist()
    numbers = {name: values.tolist() for name, values in density.arrays().items()}
    return {**numbers, "correlation": correlation}


def _rule_member(member: Member) -> Payload:
    rules = member.predictor.basis.rules
    return {
        **member_units(member),
        "centers": rules.centers.tolist(),
        "widths": rules.widths.tolist(),
        "membership": rules.membership,
        "weights": member.predictor.weights.reshape(rules.n_rules, -1).tolist(),
    }


def _rule(rule: Rule) -> Payload:
    conditions = [
        {
            "feature": j,
            "name": one_line(rule.condition_name(j)),
            "label": rule.labels[j],
            "importance": float(rule.importance[j]),
            "about": rule.about(j),
        }
        for j in range(len(rule.feature_names))
        if rule.matters[j]
    ]
    return {
        "number": rule.number,
        "member": rule.member,
        "share": rule.share,
        "share_text": f"{rule.share:.0%} of the rows",
        "mean": rule.mean_output,
        "mean_text": f"{rule.share:.0%} of rows · mean output {readable(rule.mean_output)}",
        "conditions": conditions,
        "then": {
            "constant": f"{one_line(rule.target_name)} = {readable(rule.constant)}",
            "terms": rule.line_terms(),
            "features": [j for j, is_shown in enumerate(rule.terms) if is_shown],
        },
        "search": str(rule).lower(),
        "center": rule.centers.tolist(),
        "width": rule.widths.tolist(),
        "typical": [
            {"number": str(name), "values": row}
            for name, row in zip(rule.typical_names, rule.typical_rows.tolist(), strict=True)
        ],
    }


def column_of(domain: Ranges, among: Array, j: int, *, with_histogram: bool) -> Payload:
    """Range of a feature's slider and plots, quantiles for its words, and its histogram."""
    low, high = float(domain.low[j]), float(domain.high[j])
    if high <= low:
        low, high = low - 1.0, high + 1.0
    column: Payload = {"low": low, "high": high, "quantiles": np.quantile(among[:, j], GRID).tolist()}
    is_whole = with_histogram and bool((among[:, j] == np.floor(among[:, j])).all()) and high - low >= 1.0
    if is_whole:
        column |= {"low": float(np.ceil(low)), "high": float(np.floor(high))}
    column["step"] = 1 if is_whole else "any"
    column["histogram"] = None
    # A column of large numbers that hardly differ has fewer of them than bins.
    if with_histogram and high - low > N_BINS * np.spacing(max(abs(low), abs(high))):
        counts, edges = np.histogram(among[:, j], bins=N_BINS, range=(low, high))
        column["histogram"] = {"counts": counts.tolist(), "edges": edges.tolist()}
    return column


def categories_of(model: Model) -> list[Payload]:
    """Levels of every category, and the features that indicate some of them."""
    found: dict[str, Payload] = {}
    for j, indicator in model.columns.indicators.items():
        levels = list(indicator.levels)
        entry = found.setdefault(
            indicator.column, {"name": one_line(indicator.column), "levels": levels, "features": {}}
        )
        entry["features"][str(j)] = levels.index(indicator.level)
    return [{**entry, "levels": [one_line(level) for level in entry["levels"]]} for entry in found.values()]


def _size_tiles(structure: Structure) -> list[tuple[str, str, str]]:
    base, effects = structure.rules, structure.effects
    tiles = [] if effects is None else [("Effects", f"{effects.share:.0%}", "of the prediction")]
    if base is not None:
        tiles.append(("Rules", str(base.n_rules), f"of {len(base.members)} models" if len(base.members) > 1 else ""))
    return tiles


def tiles_of(model: Model, sizes: list[tuple[str, str, str]], data: ReportData | None) -> list[Payload]:
    """Numbers at the top of the page."""
    training = model.training
    tiles = [
        *sizes,
        ("Inputs", str(len(model.columns.names)), ""),
        ("Training rows", _count(training, "n_samples"), f"{_count(training, 'n_labeled')} labelled"),
    ]
    if is_distributed(model):
        tiles += [("Agents", _count(training, "n_agents"), ""), ("Rounds", _count(training, "rounds"), _sent(training))]
    interval = model.half_widths(COVERAGES)
    if 0.9 in interval:
        tiles.append(
            (
                "90% interval",
                f"× or ÷ {np.exp(interval[0.9]):.3g}" if model.mixture.link.is_log else f"± {readable(interval[0.9])}",
                "of a typical row, from errors on labels left out one at a time",
            )
        )
    scores, error = model.mixture.scores, _error(model, data)
    if scores is not None:
        note = f"± {readable(float(f'{scores.standard_error:.2g}'))}; root mean square on the labels"
        tiles.append(("Leave-one-out error", readable(scores.deviation), note))
    if error is not None:
        note = f"on {error[1]:,} labelled rows; 1 = predicting the mean. Too low if these are training rows."
        tiles.append(("NRMSE", f"{error[0]:.3f}", note))
    return [{"name": name, "value": value, "note": note} for name, value, note in tiles]


def is_distributed(model: Model) -> bool:
    """Whether several agents trained the model; a file without the number may come from several."""
    return bool(model.training.get("n_agents", 2) != 1)


def record_of(model: Model) -> Payload:
    """History of the rounds, and with several agents what was sent."""
    shown = ("history", "ledger", "agents") if is_distributed(model) else ("history",)
    return {
        name: list(model.training.get(name, ())) if name in shown else [] for name in ("history", "ledger", "agents")
    }


def _count(training: Mapping[str, Any], name: str) -> str:
    value = training.get(name)
    return f"{value:,}" if isinstance(value, int) else "?"


def _sent(training: Mapping[str, Any]) -> str:
    n_bytes = training.get("bytes")
    if not isinstance(n_bytes, int):
        return ""
    return f"{n_bytes / 1e3:,.1f} kB sent" if n_bytes < 1e6 else f"{n_bytes / 1e6:,.1f} MB sent"


def _error(model: Model, data: ReportData | None) -> tuple[float, int] | None:
    if data is None or data.y is None:
        return None
    error = relative_error(data.y, model.predict(data.X))
    return None if error is None else (error, int(np.count_nonzero(~np.isnan(data.y))))


def fit_of(model: Model, data: ReportData | None) -> Payload | None:
    """Pairs of true and predicted values."""
    if data is None or data.y is None or np.isnan(data.y).all():
        return None
    known = np.flatnonzero(~np.isnan(data.y))
    shown = known[np.unique(np.linspace(0, len(known) - 1, MOST_POINTS).round().astype(np.int64))]
    points = np.column_stack([data.y[shown], model.predict(data.X[shown])])
    error = _error(model, data)
    summary = "" if error is None else f" NRMSE {error[0]:.4f} on {error[1]:,} labelled rows."
    half = model.half_widths([0.9]).get(0.9)
    if half is not None:
        low, high = model.interval(data.X[known], 0.9)
        held = (low <= data.y[known]) & (data.y[known] <= high)
        summary += f" Their 90% intervals hold {held.mean():.1%} of them; the band is that of a typical row."
    part = "" if len(shown) == len(known) else f" {len(shown):,} of them are drawn."
    return {
        "points": points.tolist(),
        "half_width": half,
        "hint": f"Each point is a labelled row of the data; on the dashed line predictions are right.{summary}{part} "
        "If the model was trained on these rows, the error is too low.",
    }


def reproduce_of(model: Model) -> Payload:
    """The call that trains the model again, if it is known."""
    code = reproduction_of(model)
    same = (
        f"The same rows, owners and dsfr {__version__} give the same model. Arguments not named are at their defaults."
    )
    unknown = "This version of dsfr does not know the estimator or the components that the model was trained with."
    return {"hint": same if code else unknown, "code": code}


def settings_of(model: Model) -> list[list[str]]:
    """Names and values of the estimator's parameters, components as their calls."""
    stored = {name: value for name, value in model.settings.items() if name != "estimator"}
    try:
        shown = {name: as_source(value) for name, value in read_parameters(stored).items()}
    except ValueError:  # a component of another version, or of a plug-in
        shown = {name: str(value) for name, value in stored.items()}
    return [[name, value] for name, value in sorted(shown.items())]
