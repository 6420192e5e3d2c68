"""IEEE 1855 (Fuzzy Markup Language): the rules as a first-order Takagi-Sugeno-Kang system in XML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np

from dsfr.core.explain.rules import Rule
from dsfr.core.features.effects import Effects
from dsfr.core.features.membership import Gaussian
from dsfr.export.fml_elements import AND_BY_PRODUCT, NAMESPACE, Identifiers, add_limits, clause
from dsfr.export.fml_linguistic import linguistic_fml
from dsfr.model.explanation import Explanation
from dsfr.model.model import Model


def to_fml(model: Model) -> bytes:
    """The model in the Fuzzy Markup Language, sets as ``exp(-(x - c)^2 / (2 s^2))``, lines with the constant first.

    Every feature keeps one term for each different set, and every rule names a set for every feature, so that the
    system predicts what the model predicts, for values within the variables' domains. The language has no limits of a
    result: where a model has some, a comment names them, and a reader must apply them. Missing
    values are not part of the language.

    Raises
    ------
    ValueError
        If the model has several members, sets that are not Gaussian or a target that is learnt as its logarithm, which
        the language cannot express, or no rules.
    """
    if len(model.members) > 1:
        raise ValueError(
            f"this model is the average of {len(model.members)} models, and FML describes one: export to .onnx, or "
            "train a single one"
        )
    if model.mixture.link.is_log:
        raise ValueError("this model predicts the exponential of its rules, which FML cannot express: export to .onnx")
    if model.is_student:
        return linguistic_fml(model)
    if isinstance(model.predictor.basis, Effects):
        raise ValueError(
            "this model has effects of single features and pairs, and FML describes rules of clusters: export to .onnx"
        )
    membership = model.predictor.basis.rules.membership
    if membership != Gaussian.name:
        raise ValueError(f"membership={membership!r} has no shape in FML: export to .onnx, or train with Gaussian sets")
    rules = model.explain()
    assert isinstance(rules, Explanation)
    ids = Identifiers()
    names = [ids.new(name) for name in (*model.feature_names, model.target_name)]
    system = ET.Element("fuzzySystem", {"xmlns": NAMESPACE, "name": ids.new(f"model of {model.target_name}")})
    add_limits(system, model.mixture.link)
    knowledge = ET.SubElement(system, "knowledgeBase")
    domain = model.rule_base.domain
    terms = [
        _input(knowledge, ids, name, rules, j, (float(domain.low[j]), float(domain.high[j])))
        for j, name in enumerate(names[:-1])
    ]
    lines = _output(knowledge, ids, names[-1], rules)
    _rule_base(system, ids, names, rules, terms, lines)
    ET.indent(system)
    text: bytes = ET.tostring(system, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _input(
    knowledge: ET.Element, ids: Identifiers, name: str, rules: Sequence[Rule], j: int, domain: tuple[float, float]
) -> dict[tuple[float, float], str]:
    """Add a feature with its distinct sets; the name of each."""
    variable = ET.SubElement(
        knowledge,
        "fuzzyVariable",
        {"name": name, "scale": "", "domainleft": repr(domain[0]), "domainright": repr(domain[1]), "type": "input"},
    )
    terms: dict[tuple[float, float], str] = {}
    for rule in rules:
        shape = (float(rule.centers[j]), float(rule.widths[j]))
        if shape in terms:
            continue
        terms[shape] = ids.new(f"{name} {rule.labels[j]}")
        term = ET.SubElement(variable, "fuzzyTerm", {"name": terms[shape], "complement": "false"})
        ET.SubElement(term, "gaussianShape", {"param1": repr(shape[0]), "param2": repr(shape[1] / float(np.sqrt(2.0)))})
    return terms


def _output(knowledge: ET.Element, ids: Identifiers, name: str, rules: Sequence[Rule]) -> list[str]:
    """Add the target with a line for every rule; the names of the lines."""
    attributes = {"name": name, "scale": "", "type": "output", "combination": "WA"}
    variable = ET.SubElement(knowledge, "tskVariable", attributes)
    lines = [ids.new(f"line {rule.number}") for rule in rules]
    for rule, line in zip(rules, lines, strict=True):
        term = ET.SubElement(variable, "tskTerm", {"name": line, "order": "1"})
        for value in (rule.intercept, *rule.coefficients.tolist()):
            ET.SubElement(term, "tskValue").text = repr(value)
    return lines


def _rule_base(
    system: ET.Element,
    ids: Identifiers,
    names: Sequence[str],
    rules: Sequence[Rule],
    terms: Sequence[dict[tuple[float, float], str]],
    lines: Sequence[str],
) -> None:
    attributes = {"name": ids.new("rules"), "activationMethod": "PROD", **AND_BY_PRODUCT}
    base = ET.SubElement(system, "tskRuleBase", attributes)
    for rule, line in zip(rules, lines, strict=True):
        named = {"name": ids.new(f"rule {rule.number}"), "connector": "and", "weight": "1.0", **AND_BY_PRODUCT}
        made = ET.SubElement(base, "tskRule", named)
        antecedent = ET.SubElement(made, "antecedent")
        for j, sets in enumerate(terms):
            clause(antecedent, "clause", names[j], sets[float(rule.centers[j]), float(rule.widths[j])])
        then = ET.SubElement(ET.SubElement(made, "tskConsequent"), "tskThen")
        clause(then, "tskClause", names[-1], line)
