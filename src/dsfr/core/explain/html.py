"""Rules as a small table of HTML for notebooks: at most a dozen rules, texts of bounded length, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from dsfr.core.explain.words import one_line

MOST_RULES = 12
MOST_NOTES = 8
MOST_LETTERS = 400
"""Longer texts are cut."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule as a row of the table."""

    number: int
    share: float
    """Share of the rows; 0 to 1."""
    condition: str
    line: str


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    """A text on one line, cut after so many letters.

    >>> shortened("abcdefgh", 4), shortened("abc", 4)
    ('abc…', 'abc')
    """
    flat = one_line(" ".join(text.split()))
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def rules_html(title: str, rules: Sequence[RuleRow], notes: Sequence[str] = ()) -> str:
    """A heading, a table of the rules with bars of their shares, and notes below it."""
    parts = [f"<p><b>{escape(shortened(title))}</b></p>"]
    if rules:
        head = "".join(f'<th style="text-align:left">{name}</th>' for name in ("rule", "share of rows", "if", "then"))
        rows = "".join(map(_row, rules[:MOST_RULES]))
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    hidden = len(rules) - MOST_RULES
    more = [f"{hidden} more rules: print the explanation to see all."] if hidden > 0 else []
    parts += [f"<p>{escape(shortened(note))}</p>" for note in (*more, *notes[:MOST_NOTES])]
    return f"<div>{''.join(parts)}</div>"


def _row(rule: RuleRow) -> str:
    percent = f"{rule.share:.0%}"
    bar = (
        f'<span style="display:inline-block;width:{60 * min(max(rule.share, 0.0), 1.0):.0f}px;height:.7em;'
        f'background:#0072b2;margin-right:.4em"></span>{percent}'
    )
    cells = (str(rule.number), bar, escape(shortened(rule.condition)), escape(shortened(rule.line)))
    row = "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells)
    return f"<tr>{row}</tr>"
