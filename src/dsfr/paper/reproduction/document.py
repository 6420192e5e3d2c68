"""Blocks of a Markdown document, and the document as an HTML page with embedded figures."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from pathlib import Path

from markdown_it import MarkdownIt

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #888; position: sticky; top: 0; background: #fff; }
img { max-width: 100%; } code { background: #f3f3f3; padding: 0 0.2rem; }
"""


def heading(level: int, text: str) -> str:
    """A heading; level 1 is the title of the document."""
    return f"{'#' * level} {text}"


def bullets(items: Sequence[str]) -> str:
    """A bulleted list."""
    return "\n".join(f"- {item}" for item in items)


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: bool = True) -> str:
    """A table; columns after the first are aligned to the right if they are numeric."""
    alignment = ["---", *["--:" if numeric else "---"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (header, alignment, *rows))


def figure(path: str, caption: str) -> str:
    """A picture with its caption below; the first sentence of the caption is the alternative text."""
    return f"![{caption.split('. ')[0]}]({path})\n\n*{caption}*"


def join_blocks(blocks: Sequence[str]) -> str:
    """The document, ended by a newline."""
    return "\n\n".join(blocks) + "\n"


def to_html(markdown: str, folder: Path) -> str:
    """The document as one HTML file; figures are read from ``folder`` and embedded.

    HTML in the text is escaped.
    """
    title = markdown.partition("\n")[0].removeprefix("# ")
    body = MarkdownIt("js-default").render(markdown)
    body = re.sub(r'<img src="([^"]+)"', lambda found: f'<img src="{_data_uri(folder / found[1])}"', body)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>\n'
        f"<body>\n{body}</body></html>\n"
    )


def _data_uri(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
