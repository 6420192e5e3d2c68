"""Rules over shared terms in the Fuzzy Markup Language: sets bounded by straight lines."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from dsfr.core.explain.card import Card
from dsfr.export.fml_elements import AND_BY_PRODUCT, NAMESPACE, Identifiers, add_limits, clause
from dsfr.model.model import Model

Run = tuple[int, int]
"""First and last of adjacent terms of a feature."""


def linguistic_fml(model: Model) -> bytes:
    """Rules over shared terms; a condition on several adjacent terms has a set of its own, their sum.

    Values beyond the domain of a variable count as its end, as the model has it.
    """
    card = model.explain()
    assert isinstance(card, Card)
    ids = Identifiers()
    names = [ids.new(name) for name in (*model.feature_names, model.target_name)]
    system = ET.Element("fuzzySystem", {"xmlns": NAMESPACE, "name": ids.new(f"model of {model.target_name}")})
    add_limits(system, model.mixture.link)
    knowledge = ET.SubElement(system, "knowledgeBase")
    sets = [_variable(knowledge, ids, name, card, j) for j, name in enumerate(names[:-1])]
    lines = _lines(knowledge, ids, names[-1], card)
    base = ET.SubElement(
        system, "tskRuleBase", {"name": ids.new("rules"), "activationMethod": "PROD", **AND_BY_PRODUCT}
    )
    for k, line in enumerate(lines):
        named = {"name": ids.new(f"rule {k + 1}"), "connector": "and", "weight": "1.0", **AND_BY_PRODUCT}
        rule = ET.SubElement(base, "tskRule", named)
        antecedent = ET.SubElement(rule, "antecedent")
        for j, run in (card.rules.conditions(k) or {0: (0, int(card.rules.n_terms[0]) - 1)}).items():
            clause(antecedent, "clause", names[j], sets[j][run])
        then = ET.SubElement(ET.SubElement(rule, "tskConsequent"), "tskThen")
        clause(then, "tskClause", names[-1], line)
    ET.indent(system)
    text: bytes = ET.tostring(system, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _variable(knowledge: ET.Element, ids: Identifiers, name: str, card: Card, j: int) -> dict[Run, str]:
    """Add a feature with a set for every condition that rules have on it; the names of the sets."""
    ramps, limits = card.rules.ramps_of(j), card.predictor.limits
    far = max([abs(end) for ramp in ramps for end in ramp], default=1.0)
    low, high = (-10.0 * far, 10.0 * far) if limits is None else (float(limits.low[j]), float(limits.high[j]))
    attributes = {"name": name, "scale": "", "domainleft": repr(low), "domainright": repr(high), "type": "input"}
    variable = ET.SubElement(knowledge, "fuzzyVariable", attributes)
    every = (0, len(ramps))
    runs = {run for k in range(len(card)) if (run := card.rules.conditions(k).get(j)) is not None}
    used = sorted(runs | ({every} if j == 0 and any(not card.rules.conditions(k) for k in range(len(card))) else set()))
    sets: dict[Run, str] = {}
    for first, last in used:
        sets[first, last] = ids.new(f"{name} {' or '.join(card.terms[j][first : last + 1])}")
        term = ET.SubElement(variable, "fuzzyTerm", {"name": sets[first, last], "complement": "false"})
        below, above = ramps[first - 1] if first else None, ramps[last] if last < len(ramps) else None
        _shape(term, below, above, (low, high))
    return sets


def _shape(
    term: ET.Element, below: Sequence[float] | None, above: Sequence[float] | None, domain: tuple[float, float]
) -> None:
    if below is None and above is None:
        kind, numbers = "rectangularShape", list(domain)
    elif below is None and above is not None:
        kind, numbers = "leftLinearShape", list(above)
    elif below is not None and above is None:
        kind, numbers = "rightLinearShape", list(below)
    else:
        kind, numbers = "trapezoidShape", [*(below or ()), *(above or ())]
    ET.SubElement(term, kind, {f"param{i + 1}": repr(value) for i, value in enumerate(numbers)})


def _lines(knowledge: ET.Element, ids: Identifiers, name: str, card: Card) -> list[str]:
    """Add the target with the line of every rule; the names of the lines."""
    attributes = {"name": name, "scale": "", "type": "output", "combination": "WA"}
    variable = ET.SubElement(knowledge, "tskVariable", attributes)
    lines = [ids.new(f"line {k + 1}") for k in range(len(card))]
    for line, weights in zip(lines, card.lines.tolist(), strict=True):
        term = ET.SubElement(variable, "tskTerm", {"name": line, "order": "1"})
        for value in weights:
            ET.SubElement(term, "tskValue").text = repr(value)
    return lines
