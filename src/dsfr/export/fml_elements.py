"""Elements of the Fuzzy Markup Language that all kinds of rules share."""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ET

from dsfr.core.prediction.link import Link

NAMESPACE = "http://www.ieee1855.org"
AND_BY_PRODUCT = {"andMethod": "PROD"}


class Identifiers:
    """Unique identifiers of plain letters, as the standard's schema requires."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def new(self, name: str) -> str:
        """An unused identifier similar to the given name."""
        folded = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", folded).strip("_") or "unnamed"
        plain = plain if plain[0].isalpha() else f"_{plain}"
        chosen, number = plain, 2
        while chosen in self._taken:
            chosen, number = f"{plain}_{number}", number + 1
        self._taken.add(chosen)
        return chosen


def clause(parent: ET.Element, kind: str, variable: str, term: str) -> None:
    """Add that a variable is a term."""
    made = ET.SubElement(parent, kind)
    ET.SubElement(made, "variable").text = variable
    ET.SubElement(made, "term").text = term


def add_limits(system: ET.Element, link: Link) -> None:
    """Add a comment with the limits of the result, if it has any."""
    if not link.is_identity:
        text = f"A result below {link.low!r} counts as {link.low!r}, above {link.high!r} as {link.high!r}."
        system.append(ET.Comment(text.replace("--", "- -")))
