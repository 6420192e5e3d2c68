"""The data of the page of rules over shared terms: the decision card first, then the price of readability."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.explain.card import SHARED_TITLE, Card, in_full
from dsfr.core.explain.tree_words import Division, tree_in_words
from dsfr.core.explain.words import one_line, quoted, readable
from dsfr.core.scaling.affine import Ranges
from dsfr.model.model import Model
from dsfr.report.data import ReportData
from dsfr.report.notes import caveats_of_student, notes_of_student
from dsfr.report.payload import (
    categories_of,
    column_of,
    density_of,
    fit_of,
    interval_of,
    record_of,
    reproduce_of,
    settings_of,
    target_of,
    tiles_of,
)
from dsfr.report.relevance import by_relevance

N_TYPICAL = 3
"""Typical rows shown for each rule."""

RULES_HINT = "A row between two words belongs partly to both. The strengths of the rules add up to 1."

Payload = dict[str, Any]


def payload_of_card(model: Model, card: Card, data: ReportData | None) -> Payload:
    """The page's data: the model for computing, and texts as Python prints them."""
    record = model.training["student"]
    typical = np.array(record["typical_row"], dtype=np.float64)
    domain = _domain(card, typical, data)
    among = typical[None] if data is None else data.X
    price = 100.0 * float(record["price"])
    start = float(card.predictor.shares @ np.array(card.outputs) / card.predictor.shares.sum())
    return {
        "features": [one_line(name) for name in model.feature_names],
        "categories": categories_of(model),
        **target_of(model),
        "lead": card.introduction().replace("\n", " "),
        "words": sorted({name for names in card.terms for name in names}),
        "word_edges": [],
        "terms": [{"names": list(names), "ramps": card.rules.ramps_of(j)} for j, names in enumerate(card.terms)],
        "members": [_member(card)],
        "effect_members": [],
        "effects": None,
        "groups": [],
        "reference": typical.tolist(),
        "start": start,
        "rules_start": start,
        "first_row": _first_row(card, typical, domain, data).tolist(),
        "interval": interval_of(model),
        "density": density_of(model),
        "rules": [_rule(card, k, typical, domain, data) for k in range(len(card))],
        "shared": _shared(card),
        "limits": [one_line(text) for text in (*card.limits(), *card.errors())],
        "rules_hint": RULES_HINT if len(card) > 1 else "",
        "columns": [column_of(domain, among, j, with_histogram=data is not None) for j in range(len(typical))],
        "order": by_relevance(model, typical, _spread_rows(domain, data), _conditioned(card)),
        "tree": _tree(card),
        "tiles": tiles_of(model, _sizes(card, price), data),
        "price": {"notes": list(card.notes), "curve": [[e["n_rules"], 100.0 * e["price"]] for e in record["curve"]]},
        "fit": fit_of(model, data),
        "record": record_of(model),
        "caveats": caveats_of_student(model),
        "notes": notes_of_student(model, domain, data),
        "settings": settings_of(model),
        "reproduce": reproduce_of(model),
    }


def _sizes(card: Card, price: float) -> list[tuple[str, str, str]]:
    """How much there is to read, and its price in per cent."""
    return [
        ("Rules", str(len(card)), f"{price:.1f}% more error than the teacher"),
        ("To read", str(card.to_read), "conditions, terms and constants"),
    ]


def _shared(card: Card) -> Payload | None:
    """The part of the lines that is the same in every rule; None if there is none."""
    terms = card.shared_terms()
    return {"title": SHARED_TITLE, "terms": list(terms.values())} if terms else None


def _domain(card: Card, typical: Array, data: ReportData | None) -> Ranges:
    """Limits of the model or, where it has none, the range of data, ramps and the typical row."""
    if card.predictor.limits is not None:
        return card.predictor.domain
    rows = typical[None] if data is None else np.append(data.X, typical[None], axis=0)
    low, high = rows.min(axis=0), rows.max(axis=0)
    for j in range(len(typical)):
        ends = [end for ramp in card.rules.ramps_of(j) for end in ramp]
        low[j], high[j] = min([low[j], *ends]), max([high[j], *ends])
    return Ranges(low, high)


def _spread_rows(domain: Ranges, data: ReportData | None) -> Array:
    """Rows by which features are compared: those of the data, or else the ends of the domain."""
    return np.stack([domain.low, domain.high]) if data is None else data.X


def _conditioned(card: Card) -> list[int]:
    """Features with conditions, in the order of the columns."""
    return [int(feature) for feature in np.unique(card.rules.ramp_features)]


def _first_row(card: Card, typical: Array, domain: Ranges, data: ReportData | None) -> Array:
    """A row of the largest rule: at the typical row, all contributions would be zero."""
    largest = int(np.argmax(card.predictor.shares))
    numbers = _typical(card, largest, data)
    row: Array = data.X[numbers[0]] if data is not None and len(numbers) else _center(card, largest, typical, domain)
    return row


def _tree(card: Card) -> Payload | None:
    """Conditions as nested divisions with the meanings of their words; None for one rule."""
    tree = tree_in_words(card)
    return _division(tree) if isinstance(tree, Division) else None


def _division(node: Division | int) -> Payload:
    if isinstance(node, int):
        return {"rule": node + 1, "leaves": 1}
    return {
        "name": one_line(node.name),
        "edges": list(map(one_line, node.edges)),
        "between": node.between,
        "parts": list(map(_division, node.parts)),
        "leaves": node.n_leaves,
    }


def _member(card: Card) -> Payload:
    limits = card.predictor.limits
    n_features = card.rules.n_features
    return {
        "share": 1.0,
        "limits": None if limits is None else [limits.low.tolist(), limits.high.tolist()],
        "middle": [0.0] * n_features,
        "half": [1.0] * n_features,
        "conditions": [_conditions(card, k) for k in range(len(card))],
        "weights": card.lines.tolist(),
        "mean": 0.0,
        "scale": 1.0,
    }


def _conditions(card: Card, rule: int) -> list[Payload]:
    """The ramps between which each condition of a rule holds."""
    found = []
    for j, (first, last) in card.rules.conditions(rule).items():
        ramps = card.rules.ramps_of(j)
        above, below = ramps[first - 1] if first else None, ramps[last] if last < len(ramps) else None
        found.append({"feature": j, "above": above, "below": below})
    return found


def _rule(card: Card, rule: int, typical: Array, domain: Ranges, data: ReportData | None) -> Payload:
    share = float(card.predictor.shares[rule])
    center = _center(card, rule, typical, domain)
    constant, terms = in_full(float(card.lines[rule, 0])), card.printed_terms(rule)
    numbers = _typical(card, rule, data)
    return {
        "number": rule + 1,
        "member": 1,
        "share": share,
        "share_text": f"{share:.0%} of the rows",
        "mean": card.outputs[rule],
        "mean_text": f"{share:.0%} of rows · mean output {readable(card.outputs[rule])}",
        "conditions": [
            {"feature": j, "name": one_line(name), "label": label, "importance": 1.0, "about": ""}
            for j, name, label in _distinct(card, rule)
        ],
        "then": {
            "constant": f"{quoted(card.target_name)} = {constant}",
            "terms": [text for _, text in terms],
            "features": [feature for feature, _ in terms],
        },
        "search": card.rule_text(rule).lower(),
        "center": center.tolist(),
        "width": [1.0] * len(center),
        "typical": [] if data is None else [_named_row(data, n) for n in numbers.tolist()],
    }


def _named_row(data: ReportData, n: int) -> Payload:
    return {"number": str(data.row_names[n]), "values": data.X[n].tolist()}


def _distinct(card: Card, rule: int) -> list[tuple[int, str, str]]:
    """Feature, name and label of every condition; of the conditions on one category, one."""
    found = {}
    for j, label, text in card.clauses(rule):
        found[text] = j, card.indicators[j].column if j in card.indicators else card.feature_names[j], label
    return list(found.values())


def _center(card: Card, rule: int, typical: Array, domain: Ranges) -> Array:
    """The typical row, moved to where the conditions of a rule hold fully."""
    center = typical.copy()
    for condition in _conditions(card, rule):
        j, above, below = condition["feature"], condition["above"], condition["below"]
        low = above[1] if above else domain.low[j]
        high = below[0] if below else domain.high[j]
        center[j] = np.clip(typical[j], min(low, high), max(low, high))
    return center


def _typical(card: Card, rule: int, data: ReportData | None) -> IntArray:
    """Numbers of the rows on which a rule is strongest, the first of equal ones."""
    if data is None:
        return np.empty(0, dtype=np.int64)
    strengths = card.rules.strengths(card.predictor.within_limits(data.X))[:, rule]
    return np.argsort(-strengths, kind="stable")[:N_TYPICAL]
