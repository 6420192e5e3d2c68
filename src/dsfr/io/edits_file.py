"""Prescriptions for rules in a small file: a part of YAML, two levels deep.

    age:
      condition: no
    blood pressure:
      thresholds: [[130, 150]]
      words: [usual, high]
    "bmi (kg)":
      slope: "+"

Values are JSON, ``yes`` and ``no``, or plain text; lists may hold plain words. A ``#`` at the start of a line begins a
comment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dsfr.storage.atomic import replacing
from dsfr.training.distillation.prescriptions import check_prescription

_ENTRY = re.compile(r'( *)("(?:[^"\\]|\\.)*"|[^":#\s][^":]*):(?: +(.*?))? *')
_YES_OR_NO = {"yes": True, "no": False, "true": True, "false": False}
MAX_BYTES = 1_000_000
"""A file of prescriptions is short."""


class EditsFileError(ValueError):
    """A file of prescriptions that cannot be read: names the line."""


class FileEdits(dict[str, dict[str, Any]]):
    """Prescriptions by feature that know the line of each feature in their file."""

    def __init__(self, path: str | os.PathLike[str] = "", *given: Any) -> None:
        super().__init__(*given)
        self.path = os.fspath(path)
        self.lines: dict[str, int] = {}

    def place(self, feature: str) -> str:
        """File and line of a feature."""
        return f"{self.path}, line {self.lines[feature]}"


def read_edits(path: str | os.PathLike[str]) -> FileEdits:
    """Prescriptions by feature, each checked; whether there are such features is not known here.

    Raises
    ------
    EditsFileError
        Naming the line.
    """
    if Path(path).stat().st_size > MAX_BYTES:
        raise EditsFileError(f"{path} has more than {MAX_BYTES} bytes: it is no file of prescriptions")
    edits = FileEdits(path)
    feature: str | None = None
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            feature = _take(line, edits, feature)
        except ValueError as error:
            raise EditsFileError(f"{path}, line {number}: {error}") from None
        edits.lines.setdefault(str(feature), number)
    return edits


def _take(line: str, edits: dict[str, dict[str, Any]], feature: str | None) -> str | None:
    """Add one line to the prescriptions; the feature that the next one may belong to."""
    found = _ENTRY.fullmatch(line)
    if found is None:
        raise ValueError(f"{line.strip()!r} must be 'feature:', or below it 'condition: no' and the like")
    indent, key, value = len(found[1]), found[2].strip(), found[3]
    key = json.loads(key) if key.startswith('"') else key
    if indent == 0:
        if value:
            raise ValueError(f"{key!r} is a feature: write what it is to be on lines of their own, two spaces in")
        if key in edits:
            raise ValueError(f"{key!r} is there twice")
        edits[key] = {}
        return str(key)
    if feature is None:
        raise ValueError(f"{key!r} belongs to no feature: begin with the name of one, without spaces before it")
    if key in edits[feature]:
        raise ValueError(f"{key!r} of {feature!r} is there twice")
    edits[feature][key] = _value(value or "")
    check_prescription(key, edits[feature][key])
    return feature


def _value(text: str) -> Any:
    text = text.strip()
    if text.lower() in _YES_OR_NO:
        return _YES_OR_NO[text.lower()]
    try:
        return json.loads(text)
    except ValueError:
        pass
    if text.startswith("[") and text.endswith("]") and "[" not in text[1:]:
        return [_unquoted(part.strip()) for part in text[1:-1].split(",")]
    if text.startswith("["):
        raise ValueError(f"{text!r} is no list of pairs of numbers such as [[130, 150]]")
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def write_edits(edits: Mapping[str, Mapping[str, Any]], path: str | os.PathLike[str]) -> Path:
    """Write prescriptions so that `read_edits` reads them."""
    lines = ["# Prescriptions for dsfr fit --rules: condition (yes, no), thresholds, slope (+, -, 0), words."]
    for name, entry in edits.items():
        lines.append(f"{json.dumps(name)}:")
        lines += [f"  {key}: {json.dumps(value)}" for key, value in entry.items()]
    with replacing(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return Path(path)
