"""A document as blocks, printed as Markdown or as a page of HTML that needs no other file."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top; }
th:first-child, td:first-child, .text td, .text th { text-align: left; }
thead th { border-bottom: 2px solid #888; position: sticky; top: 0; background: #fff; }
img { max-width: 100%; } figure { margin: 1.5rem 0; } figcaption { color: #444; font-size: 0.9rem; }
code { background: #f3f3f3; padding: 0 0.2rem; }
"""


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; 1 is the document's title."""

    level: int
    text: str

    def markdown(self) -> str:
        """As Markdown."""
        return f"{'#' * self.level} {self.text}"

    def page(self, _: Path) -> str:
        """As HTML."""
        return f"<h{self.level}>{_inline(self.text)}</h{self.level}>"


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    text: str

    def markdown(self) -> str:
        """As Markdown."""
        return self.text

    def page(self, _: Path) -> str:
        """As HTML."""
        return f"<p>{_inline(self.text)}</p>"


@dataclass(frozen=True, slots=True)
class Points:
    """A list."""

    items: Sequence[str]

    def markdown(self) -> str:
        """As Markdown."""
        return "\n".join(f"- {item}" for item in self.items)

    def page(self, _: Path) -> str:
        """As HTML."""
        return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in self.items) + "</ul>"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text; numbers to the right unless it is a table of sentences."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    sentences: bool = False

    def markdown(self) -> str:
        """As Markdown."""
        rest = "---" if self.sentences else "--:"
        lines = [self.header, ["---", *[rest] * (len(self.header) - 1)], *self.rows]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def page(self, _: Path) -> str:
        """As HTML."""
        head = "".join(f"<th>{_inline(cell)}</th>" for cell in self.header)
        body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        kind = ' class="text"' if self.sentences else ""
        return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True, slots=True)
class Figure:
    """A picture with its caption."""

    path: str
    """Relative to the document."""
    caption: str

    def markdown(self) -> str:
        """As Markdown."""
        return f"![{self.caption.split('. ')[0]}]({self.path})\n\n*{self.caption}*"

    def page(self, folder: Path) -> str:
        """As HTML, the picture inside."""
        data = base64.b64encode((folder / self.path).read_bytes()).decode()
        alt = html.escape(self.caption.split(". ")[0])
        image = f'<img alt="{alt}" src="data:image/png;base64,{data}">'
        return f"<figure>{image}<figcaption>{_inline(self.caption)}</figcaption></figure>"


Block = Heading | Paragraph | Points | Table | Figure


def to_markdown(blocks: Sequence[Block]) -> str:
    """The document as Markdown."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def to_page(blocks: Sequence[Block], folder: Path) -> str:
    """The document as one HTML file; pictures are read from ``folder``."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    body = "\n".join(block.page(folder) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}\n</body></html>\n"
    )


def _inline(text: str) -> str:
    """Bold, italics, code and links; everything else is text."""
    safe = html.escape(text, quote=False)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", safe)
    safe = re.sub(r"\*([^*]+)\*", r"<em>\1</em>", safe)
    return re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r'<a href="\2">\1</a>', safe)
