"""The HTML page: templates of this folder, filled with escaped text and one JSON object."""

from __future__ import annotations

import html
import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from dsfr import __version__
from dsfr.core.explain.card import Card
from dsfr.core.explain.words import one_line
from dsfr.core.features.membership import MEMBERSHIPS
from dsfr.model.explanation import Explanation, explain_structure
from dsfr.model.model import Model
from dsfr.report.card_payload import payload_of_card
from dsfr.report.data import ReportData
from dsfr.report.payload import payload_of
from dsfr.storage.atomic import replacing

SCRIPTS = (
    "expectation.js",
    "deviations.js",
    "charts.js",
    "state.js",
    "whatif.js",
    "effects.js",
    "rules.js",
    "tree.js",
    "curves.js",
    "page.js",
)


def write_report(model: Model, path: str | os.PathLike[str], X: Any = None, y: Any = None) -> Path:
    """Write a model's page; rows ``X`` and targets ``y`` (NaN where unknown) add histograms, typical rows, errors."""
    data = None if X is None else ReportData.of(X, y, model)
    page = render(model, data)
    with replacing(path) as file:
        file.write(page.encode())
    return Path(path)


def render(model: Model, data: ReportData | None = None) -> str:
    """The page as text.

    Raises
    ------
    ValueError
        If the model has neither rules nor effects.
    """
    rules = _explained(model, data)
    target = one_line(model.target_name)
    slots = {
        "version": html.escape(__version__),
        "title": html.escape(f"{target}: a model in {_named(rules)}"),
        "heading": html.escape(target),
        "rules": html.escape(str(rules)),
        "style": _template("style.css"),
        "script": "\n".join([_template("predict.js"), _memberships(), *map(_template, SCRIPTS)]),
        "payload": script_json(
            payload_of_card(model, rules, data) if isinstance(rules, Card) else payload_of(model, rules, data)
        ),
    }
    # One pass: text that was filled in is not searched again, even if a name contains braces.
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: slots[slot[1]], _template("page.html"))


def _explained(model: Model, data: ReportData | None) -> Explanation | Card:
    """The whole model in words; typical rows have the names of the data."""
    if model.is_student:
        return model.explain()
    X, names = (None, None) if data is None else (data.X, data.row_names)
    return explain_structure(model.structure, model.columns, model.target_name, X, all_models=True, row_names=names)


def _named(explained: Explanation | Card) -> str:
    if isinstance(explained, Card):
        return f"{len(explained)} rule{'s' * (len(explained) != 1)}"
    parts = [*(["effects"] if explained.effects else []), *([f"{len(explained)} rules"] if explained else [])]
    return " and ".join(parts)


def script_json(value: Any) -> str:
    r"""JSON that cannot end the script element it stands in, nor open a comment there.

    >>> script_json({"name": "</script><!--"})
    '{"name": "\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, allow_nan=False, sort_keys=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _memberships() -> str:
    """Logarithms of the membership functions by name, in JavaScript: code of the registered classes, not data."""
    functions = (f"{json.dumps(name)}: (z) => {kind.javascript}" for name, kind in MEMBERSHIPS.items())
    return f"const LOG_MEMBERSHIPS = {{ {', '.join(functions)} }};\n"


def _template(name: str) -> str:
    return files("dsfr.report").joinpath(name).read_text(encoding="utf-8")
