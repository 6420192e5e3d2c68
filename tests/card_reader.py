"""An independent reader of printed rules: from the text alone to predictions. Shares no code with the package."""

import json
import re

import numpy as np

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
NAME_IN_QUOTES = r'"(?:[^"\\]|\\.)*"'
NAME = rf"(?:{NAME_IN_QUOTES}|[^\W\d][\w. ]*?)"
TERM = rf"(?:{NAME}|{NUMBER})"


def plain(name):
    return json.loads(name) if name.startswith('"') else name


def rise(x, start, end):
    return np.clip((x - start) / (end - start), 0.0, 1.0)


def degree(meaning, x):
    """Degree to which a term holds, from the sentence that says what it means."""
    low = re.fullmatch(rf"below ({NUMBER}) fully, above ({NUMBER}) not at all", meaning)
    high = re.fullmatch(rf"above ({NUMBER}) fully, below ({NUMBER}) not at all", meaning)
    if low:
        return 1.0 - rise(x, *map(float, low.groups()))
    if high:
        return rise(x, float(high[2]), float(high[1]))
    between = rf"from ({NUMBER}) to ({NUMBER}) fully, below ({NUMBER}) or above ({NUMBER}) not at all"
    a, b, c, d = map(float, re.fullmatch(between, meaning).groups())
    return rise(x, c, a) - rise(x, b, d)


def alternatives(words):
    return [plain(term) for term in re.findall(rf"(?:^| or )({TERM})(?= or |$)", words)]


def among(words, column):
    """Whether the levels of a column are among those that a condition names, or not among them."""
    negated = words.startswith("not ")
    named = np.isin(column, alternatives(words.removeprefix("not ")))
    return (named != negated).astype(float)


def terms_of(line, rows):
    """Sum of the terms of a line, without its constant."""
    total = 0.0
    for sign, slope, name in re.findall(rf" ([+-]) ({NUMBER})\*({NAME})(?=,? [+-] |$)", line):
        total = total + float(sign + slope) * rows[plain(name)]
    for sign, size, name, level in re.findall(rf", ([+-]) ({NUMBER}) if ({NAME}) is ({TERM})(?=, [+-] |$)", line):
        total = total + float(sign + size) * among(level, rows[plain(name)])
    return total


def predict(text, rows):
    """Predictions of the printed rules; ``rows`` maps names of columns to numbers, or to texts of levels."""
    categories = {plain(name) for name in re.findall(rf"^  ({NAME}) is one of .*$", text, re.MULTILINE)}
    terms = {
        (plain(name), plain(term)): meaning
        for name, term, meaning in re.findall(rf"^  ({NAME}) is ({TERM}): (.*)$", text, re.MULTILINE)
    }
    rows = dict(rows)
    limit = rf"^  ({NAME}) counts as ({NUMBER}) where it is lower, as ({NUMBER}) where it is higher$"
    for name, low, high in re.findall(limit, text, re.MULTILINE):
        rows[plain(name)] = np.clip(rows[plain(name)], float(low), float(high))
    shared = re.search(r"^Shared part, the same in every rule\n  (.*)$", text, re.MULTILINE)
    total = 0.0
    for condition, line in re.findall(rf"^  (IF .*|ALWAYS)\n  THEN {NAME} = (.*)$", text, re.MULTILINE):
        strength, output = 1.0, float(re.match(NUMBER, line)[0])
        for name, words in re.findall(
            rf"(?:IF|AND) ({NAME}) is ((?:not )?{TERM}(?: or {TERM})*)(?= AND |$)", condition
        ):
            column = rows[plain(name)]
            if plain(name) in categories:
                strength = strength * among(words, column)
            else:
                strength = strength * sum(degree(terms[plain(name), term], column) for term in alternatives(words))
        output = output + terms_of(line, rows)
        if re.search(r" \+ shared part(?=, [+-] |$)", re.sub(NAME_IN_QUOTES, "", line)):
            output = output + terms_of(f", {shared[1]}", rows)
        total = total + strength * output
    held = re.search(rf"^  A result below ({NUMBER}) counts as \1, above ({NUMBER}) as \2$", text, re.MULTILINE)
    return np.clip(total, *map(float, held.groups())) if held else total
